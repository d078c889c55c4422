"""Many bodies that touch, through the public API: stacks rest, piles stay in their container, a grasp holds."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

pytestmark = pytest.mark.full

HALF = 0.02  # of a cube's edge [m]
FLOOR = '<geom name="floor" type="plane" size="2 2 1"/>'
CUBE = '<geom type="box" size=".02 .02 .02"/>'


def built(gs: ModuleType, bodies: str, n_envs: int, *, dt: float = 0.01, option: str = "", after: str = "") -> Any:
    """A scene of one MJCF file."""
    text = (
        f'<mujoco><option timestep="{dt}" integrator="implicitfast" {option}/><worldbody>{bodies}</worldbody>{after}'
        "</mujoco>"
    )
    scene = gs.Scene(sim_options=gs.options.SimOptions(dt=dt), rigid_options=gs.options.RigidOptions(strict=True))
    scene.add_entity(gs.morphs.MJCF(file=text, use_file_options=True))
    scene.build(n_envs=n_envs)
    return scene


def free_bodies(count: int, geom: str) -> str:
    return "".join(f'<body pos="0 0 {i}"><freejoint/>{geom}</body>' for i in range(count))


def put(scene: Any, places: np.ndarray) -> None:
    """places: (n_envs, bodies, 3), upright."""
    upright = np.tile([1.0, 0.0, 0.0, 0.0], (*places.shape[:2], 1))
    scene.rigid_solver.set_qpos(torch.tensor(np.concatenate((places, upright), axis=2)).flatten(1))


def places(scene: Any, count: int) -> np.ndarray:
    """(n_envs, count, 3) of the first free bodies."""
    return scene.rigid_solver.get_qpos().numpy()[:, : 7 * count].reshape(-1, count, 7)[..., :3]


def run(scene: Any, seconds: float) -> None:
    for _ in range(round(seconds / scene.dt)):
        scene.step()


def towers(heights: list[int], most: int) -> np.ndarray:
    """(len(heights), most, 3): in environment e a tower of heights[e] cubes, the others apart on the floor."""
    found = np.zeros((len(heights), most, 3))
    for e, height in enumerate(heights):
        for i in range(most):
            found[e, i] = (0, 0, HALF * (2 * i + 1)) if i < height else (0.2 * (i + 1), 0.3, HALF)
    return found


def test_towers_of_two_to_ten_cubes_stand(gs_cpu: ModuleType) -> None:
    heights = list(range(2, 11))
    scene = built(gs_cpu, FLOOR + free_bodies(10, CUBE), len(heights))
    put(scene, towers(heights, 10))
    run(scene, 1.0)
    after_one = places(scene, 10)
    assert np.abs(scene.rigid_solver.get_dofs_velocity().numpy()).max() < 1e-3
    assert np.abs(after_one - towers(heights, 10)).max() < 0.5 * HALF  # nothing fell; a contact gives by 0.2 mm
    run(scene, 10.0)
    assert np.abs(places(scene, 10) - after_one).max() < 1e-4


def test_cubes_stay_in_a_container(gs_cpu: ModuleType) -> None:
    """4 x 4 x 4 cubes dropped loosely into a box that is a little wider than four of them."""
    side, count = 0.22, 64
    walls = "".join(
        f'<geom type="plane" size="1 1 1" pos="{x} {y} 0" zaxis="{-np.sign(x)} {-np.sign(y)} 0"/>'
        for x, y in ((-side / 2, 0), (side / 2, 0), (0, -side / 2), (0, side / 2))
    )
    scene = built(gs_cpu, FLOOR + walls + free_bodies(count, CUBE), 4, dt=0.005)
    grid = np.array([[x, y, z] for z in range(4) for y in range(4) for x in range(4)]) * (2 * HALF + 0.008)
    start = grid - [1.5 * 0.048, 1.5 * 0.048, -0.06]
    noise = np.random.default_rng(0).uniform(-0.002, 0.002, (4, count, 3))
    put(scene, start + noise)
    fastest = 0.0
    for _ in range(10):
        run(scene, 0.2)
        fastest = max(fastest, float(scene.rigid_solver.get_dofs_velocity().abs().max()))
    found = places(scene, count)
    assert np.isfinite(found).all()
    assert np.abs(found[..., :2]).max() < side / 2 - 0.9 * HALF
    assert found[..., 2].min() > 0.9 * HALF
    apart = np.linalg.norm(found[:, :, None] - found[:, None], axis=-1) + np.eye(count)
    assert apart.min() > 1.9 * HALF  # centres of cubes that touch by faces are 2 HALF apart
    assert fastest < np.sqrt(2 * 9.81 * 0.3) / HALF  # as fast as falling makes a corner, in rad/s
    assert np.median(np.abs(scene.rigid_solver.get_dofs_velocity().numpy())) < 0.01


def test_thin_plates_lie_on_each_other(gs_cpu: ModuleType) -> None:
    thickness = 0.001
    plate = f'<geom type="box" size=".05 .05 {thickness / 2}" density="2700" solref=".004 1"/>'
    scene = built(gs_cpu, FLOOR.replace("/>", ' solref=".004 1"/>') + free_bodies(3, plate), 1, dt=0.002)
    start = np.zeros((1, 3, 3))
    start[0, :, 2] = (thickness + 2e-4) * (0.5 + np.arange(3))
    put(scene, start)
    run(scene, 2.0)
    found = places(scene, 3)[0]
    assert np.abs(found[:, 2] - thickness * (0.5 + np.arange(3))).max() < 0.3 * thickness
    assert np.abs(found[:, :2]).max() < 1e-3


@pytest.mark.parametrize(("cone", "spread"), [("elliptic", 0.01), ("pyramidal", 0.5)])
def test_sliding_box_stops_where_coulomb_says(gs_cpu: ModuleType, cone: str, spread: float) -> None:
    """v^2 / (2 mu g), in every direction with elliptic cones; between its edges a pyramid is weaker by up to sqrt 2.

    Soft contacts let a sliding box rise by half a millimetre (MuJoCo: 0.49 and 0.89 mm); it does not hop.
    """
    mu, speed, count = 0.5, 1.0, 8
    body = f'<body pos="0 0 .02"><freejoint/><geom type="box" size=".1 .1 .02" friction="{mu}"/></body>'
    scene = built(
        gs_cpu,
        FLOOR.replace("/>", f' friction="{mu}"/>') + body,
        count,
        dt=0.002,
        option=f'cone="{cone}" impratio="10"',
    )
    run(scene, 0.5)
    start = places(scene, 1)[:, 0]
    angles = np.arange(count) * np.pi / 16
    velocity = np.zeros((count, 6))
    velocity[:, 0], velocity[:, 1] = speed * np.cos(angles), speed * np.sin(angles)
    scene.rigid_solver.set_dofs_velocity(torch.tensor(velocity))
    highest = 0.0
    for _ in range(50):
        run(scene, 0.01)
        highest = max(highest, float((places(scene, 1)[:, 0, 2] - start[:, 2]).max()))
    travelled = np.linalg.norm((places(scene, 1)[:, 0] - start)[:, :2], axis=1)
    expected = speed**2 / (2 * mu * 9.81)
    assert travelled[0] == pytest.approx(expected, rel=0.02)
    assert np.ptp(travelled) < spread * expected
    assert highest < 1e-3
    assert np.abs(scene.rigid_solver.get_dofs_velocity().numpy()).max() < 1e-3


def test_three_fingertips_hold_a_ball(gs_cpu: ModuleType) -> None:
    fingers = "".join(
        f"""<body pos="{0.06 * np.cos(a)} {0.06 * np.sin(a)} .3"><joint name="f{k}" type="slide" damping="5"
          axis="{-np.cos(a)} {-np.sin(a)} 0"/><geom size=".015" mass=".1" friction="1 .01 .001" condim="4"/></body>"""
        for k, a in enumerate(np.arange(3) * 2 * np.pi / 3)
    )
    ball = '<body pos="0 0 .3"><freejoint/><geom size=".04" mass=".1" friction="1 .01 .001" condim="4"/></body>'
    motors = "".join(f'<motor joint="f{k}" ctrlrange="0 10"/>' for k in range(3))
    scene = built(
        gs_cpu,
        FLOOR + ball + fingers,
        2,
        dt=0.002,
        option='cone="elliptic" impratio="100"',
        after=f"<actuator>{motors}</actuator>",
    )
    scene.rigid_solver.control_actuators(torch.tensor([[4.0] * 3, [0.05] * 3]))  # firm, and too weak
    run(scene, 0.2)
    start = places(scene, 1)[0, 0, 2]
    run(scene, 5.0)
    held, dropped = places(scene, 1)[:, 0, 2]
    assert abs(held - start) < 2e-3
    assert dropped < 0.1
