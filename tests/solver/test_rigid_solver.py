"""The solver's getters and setters over several entities, its resets, its errors; with stand-ins for the kernels."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from types import ModuleType
from typing import Any

import mujoco
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kernel_doubles
from kernel_doubles import ARM_AND_BALL, KinematicsDouble
from pluriverse import rotations
from pluriverse.solver.state import STATUS_NON_FINITE, STATUS_SOLVER_LIMIT
from pluriverse.solver.states import SimState

N_ENVS = [0, 1, 2, 3, 4, 7]


@pytest.fixture
def make(gs_cpu: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Builds a scene of a ground plane, an arm with a free base, and a box: dofs 0..11 and 12..17."""
    kernel_doubles.install(monkeypatch)

    def build(n_envs: int = 3, **options: Any) -> Any:
        scene = gs_cpu.Scene(show_FPS=False, **options)
        scene.add_entity(gs_cpu.morphs.Plane(), name="ground")
        scene.add_entity(gs_cpu.morphs.MJCF(file=ARM_AND_BALL), name="arm")
        scene.add_entity(gs_cpu.morphs.Box(size=(0.1, 0.2, 0.3), pos=(1, 2, 3)), name="box")
        scene.build(n_envs=n_envs)
        return scene

    return build


def batched(tensor: torch.Tensor, n_envs: int) -> torch.Tensor:
    return tensor if n_envs else tensor[None]


def randomize(solver: Any, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    rng, model = np.random.default_rng(seed), KinematicsDouble.mj_model
    qpos, qvel = rng.normal(size=(max(solver.n_envs, 1), model.nq)), rng.normal(size=(max(solver.n_envs, 1), model.nv))
    for q in qpos:
        mujoco.mj_normalizeQuat(model, q)
    solver.set_qpos(qpos)
    solver.set_dofs_velocity(qvel)
    return torch.tensor(qpos, dtype=torch.float32), torch.tensor(qvel, dtype=torch.float32)


@pytest.mark.parametrize("n_envs", N_ENVS)
def test_shapes_dtype_and_freshness_of_every_getter(make: Any, n_envs: int) -> None:
    solver = make(n_envs).rigid_solver
    lead = (n_envs,) if n_envs else ()
    nq, nv, n_links, n_geoms = 14 + 7, 12 + 6, 6, 8
    shapes = {
        "get_qpos": (nq,),
        "get_dofs_position": (nv,),
        "get_dofs_velocity": (nv,),
        "get_dofs_acc": (nv,),
        "get_dofs_control_force": (nv,),
        "get_dofs_act_gain": (nv,),
        "get_links_pos": (n_links, 3),
        "get_links_quat": (n_links, 4),
        "get_links_vel": (n_links, 3),
        "get_links_ang": (n_links, 3),
        "get_geoms_pos": (n_geoms, 3),
        "get_geoms_quat": (n_geoms, 4),
        "get_geoms_friction": (n_geoms,),
        "get_geoms_friction_ratio": (n_geoms,),
        "get_gravity": (3,),
        "get_time": (),
    }
    for name, shape in shapes.items():
        got = getattr(solver, name)()
        assert got.shape == lead + shape, name
        assert got.dtype == torch.float32, name
        before = got.clone()
        solver.step()
        assert torch.equal(got, before), f"{name} returned memory that a step changes"
    for name in ("get_dofs_limit", "get_dofs_force_range", "get_dofs_act_bias"):
        assert all(isinstance(t, torch.Tensor) for t in getattr(solver, name)())
    assert solver.get_error_envs_mask().shape == (max(n_envs, 1),)
    assert solver.get_unconverged_envs_mask().shape == (max(n_envs, 1),)
    if n_envs:
        assert solver.get_qpos(3).shape == (n_envs, 1)
        assert solver.get_links_pos([0, -1], n_envs - 1).shape == (1, 2, 3)


INDEX_FORMS = st.sampled_from([list, tuple, np.array, torch.tensor])


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
@pytest.mark.parametrize("n_envs", N_ENVS)
def test_set_and_get_touch_what_they_name_and_nothing_else(make: Any, scenes: dict, n_envs: int, data: Any) -> None:
    if n_envs not in scenes:
        scenes[n_envs] = make(n_envs)
    scene = scenes[n_envs]
    total = max(n_envs, 1)
    name = data.draw(st.sampled_from(["arm", "box"]))
    entity = scene.get_entity(name)
    kind = data.draw(st.sampled_from(["qpos", "dofs_velocity", "dofs_force", "dofs_kp", "links_friction"]))
    getter, setter, size = {
        "qpos": (entity.get_qpos, lambda *a: entity.set_qpos(*a, zero_velocity=False), entity.n_qs),
        "dofs_velocity": (entity.get_dofs_velocity, entity.set_dofs_velocity, entity.n_dofs),
        "dofs_force": (entity.get_dofs_control_force, entity.control_dofs_force, entity.n_dofs),
        "dofs_kp": (entity.get_dofs_act_gain, entity.set_dofs_act_gain, entity.n_dofs),
        "links_friction": (
            lambda *a: scene.rigid_solver.get_geoms_friction_ratio([link.geoms[0].idx for link in entity.links]),
            entity.set_friction_ratio,
            entity.n_links,
        ),
    }[kind]
    if kind == "dofs_force":
        entity.set_dofs_force_range(-100, 100)
    rows = data.draw(st.lists(st.integers(0, size - 1), unique=True, min_size=1))
    envs = data.draw(st.lists(st.integers(0, total - 1), unique=True, min_size=1)) if n_envs else [0]
    value = torch.randn(len(envs), len(rows), dtype=torch.float64).abs() + 0.1
    expected = {e.name: batched(e.get_qpos(), n_envs).clone() for e in scene.entities if e.name != name}
    before = batched(getter(), n_envs).clone()
    everything = data.draw(st.booleans()) and len(envs) == total
    env_index = None if not n_envs or (everything and envs == sorted(envs)) else data.draw(INDEX_FORMS)(envs)
    setter(value if n_envs else value[0], data.draw(INDEX_FORMS)(rows), env_index)
    before[np.ix_(envs, rows)] = value.float()
    torch.testing.assert_close(batched(getter(), n_envs), before)
    for other, qpos in expected.items():
        torch.testing.assert_close(batched(scene.get_entity(other).get_qpos(), n_envs), qpos)


@pytest.fixture(scope="module")
def scenes() -> dict[int, Any]:
    """The scenes of one property, built once: {n_envs: scene}."""
    return {}


@pytest.mark.parametrize("n_envs", [0, 3])
def test_links_are_mujocos(make: Any, n_envs: int) -> None:
    solver = make(n_envs).rigid_solver
    qpos, qvel = randomize(solver)
    model = KinematicsDouble.mj_model
    for env in range(max(n_envs, 1)):
        data = mujoco.MjData(model)
        data.qpos, data.qvel = qpos[env].double().numpy(), qvel[env].double().numpy()
        mujoco.mj_forward(model, data)
        com = np.zeros((model.nbody, 6))
        for body in range(model.nbody):
            mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_BODY, body, com[body], 0)
        for got, expected in (
            (solver.get_links_pos(), data.xpos[1:]),
            (solver.get_links_quat(), data.xquat[1:]),
            (solver.get_links_vel(ref="link_com"), com[1:, 3:]),
            (solver.get_links_ang(), com[1:, :3]),
            (solver.get_geoms_pos(), data.geom_xpos),
        ):
            np.testing.assert_allclose(batched(got, n_envs)[env], expected, atol=2e-5)
        rotation = np.zeros(9)
        for geom, quat in enumerate(batched(solver.get_geoms_quat(), n_envs)[env]):
            mujoco.mju_quat2Mat(rotation, quat.double().numpy())
            np.testing.assert_allclose(rotation, data.geom_xmat[geom], atol=1e-5)


def test_poses_are_computed_when_read_and_once(make: Any) -> None:
    scene = make()
    solver = scene.rigid_solver
    solver.step()
    assert KinematicsDouble.launches == 0
    solver.get_links_pos()
    solver.get_links_vel()
    assert KinematicsDouble.launches == 1
    for change in (
        scene.step,
        scene.reset,
        lambda: solver.set_qpos(0.1, 7),
        lambda: solver.set_dofs_position(0.1, 6),
        lambda: solver.set_dofs_velocity(0.1, 6),
        lambda: scene.get_entity("box").set_pos((0, 0, 1)),
        lambda: scene.get_entity("box").set_quat((1, 0, 0, 0)),
    ):
        change()
        launches = KinematicsDouble.launches
        solver.get_links_pos()
        assert KinematicsDouble.launches == launches + 1


def test_free_and_ball_rotations_are_euler_angles(make: Any) -> None:
    solver = make().rigid_solver
    position = solver.get_dofs_position()
    angles = torch.tensor([[0.3, -0.4, 0.5], [1.0, 0.2, -2.0], [-0.1, 1.2, 3.0]])
    position[:, :3] = 4.0
    position[:, 3:6] = angles  # base
    position[:, 7:10] = -angles  # ball
    position[:, 15:18] = 0.5 * angles  # box
    position[:, 6] = 0.7
    solver.set_dofs_position(position)
    torch.testing.assert_close(solver.get_dofs_position(), position, atol=2e-6, rtol=1e-5)
    qpos = solver.get_qpos()
    torch.testing.assert_close(qpos[:, 3:7], rotations.from_euler(angles.T).T)
    torch.testing.assert_close(qpos[:, 8:12], rotations.from_euler(-angles.T).T)
    assert (qpos[:, 7] == 0.7).all()
    for envs in (2, torch.tensor([False, False, True])):
        solver.set_dofs_position([[0.9, 5.0]], [5, 0], envs)  # one angle: the others stay
        position[2, 5], position[2, 0] = 0.9, 5.0
        torch.testing.assert_close(solver.get_dofs_position(), position, atol=2e-6, rtol=1e-5)
    torch.testing.assert_close(solver.get_dofs_position([9, 5, 6], [1]), position[1:2, [9, 5, 6]])


def test_setters_forget_warm_start_and_unfreeze_their_environments(make: Any) -> None:
    solver = make().rigid_solver
    for setter in (solver.set_qpos, solver.set_dofs_velocity, solver.set_dofs_position):
        solver.step()
        setter(0.0, 6, [1])
        assert solver.get_dofs_acc()[:, 0].tolist() == [3, 0, 3]


def test_unconverged_environments_are_known_until_they_are_reset(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def launch(self: Any, state: Any, n_steps: int) -> None:
        state.status[0, 0] |= STATUS_SOLVER_LIMIT
        state.status[0, 2] |= STATUS_SOLVER_LIMIT | STATUS_NON_FINITE

    monkeypatch.setattr(kernel_doubles.StepDouble, "launch", launch)
    solver = make().rigid_solver
    assert not solver.get_unconverged_envs_mask().any()
    solver.step()
    assert solver.get_unconverged_envs_mask().tolist() == [True, False, True]
    assert solver.get_error_envs_mask().tolist() == [False, False, True]
    solver.reset(envs_idx=[2])
    assert solver.get_unconverged_envs_mask().tolist() == [True, False, False]


@pytest.mark.parametrize(
    "envs_idx", [[0, 2], (0, -1), slice(0, 3, 2), range(0, 3, 2), np.array([True, False, True]), torch.tensor([2, 0])]
)
def test_partial_reset(make: Any, envs_idx: Any) -> None:
    scene = make()
    solver = scene.rigid_solver
    start, states = scene.get_state().rigid, {}
    randomize(solver)
    solver.set_geoms_friction_ratio(0.5)
    scene.step()
    before = {name: getattr(solver, name)() for name in ("get_qpos", "get_dofs_velocity", "get_links_pos", "get_time")}
    scene.reset(envs_idx=envs_idx)
    states = {name: getattr(solver, name)() for name in before}
    for name, initial in (
        ("get_qpos", start.qpos),
        ("get_dofs_velocity", start.dofs_vel),
        ("get_links_pos", start.links_pos),
        ("get_time", torch.zeros(3)),
    ):
        torch.testing.assert_close(states[name][[0, 2]], initial[[0, 2]])
        torch.testing.assert_close(states[name][1], before[name][1])
    assert solver.get_geoms_friction_ratio()[:, 0].tolist() == [1, 0.5, 1]
    assert solver.get_dofs_acc()[:, 0].tolist() == [0, 3, 0]


def test_reset_to_a_state_makes_it_the_initial_one(make: Any) -> None:
    scene = make()
    qpos, qvel = randomize(scene.rigid_solver)
    scene.rigid_solver.set_geoms_friction_ratio(0.25, 0)
    state = scene.get_state()
    for _ in range(3):
        scene.step()
    scene.reset(state)
    scene.step()
    scene.reset()
    torch.testing.assert_close(scene.rigid_solver.get_qpos(), qpos)
    torch.testing.assert_close(scene.rigid_solver.get_dofs_velocity(), qvel)
    assert scene.rigid_solver.get_geoms_friction_ratio()[0, :2].tolist() == [0.25, 1]
    assert len(state.solvers_state) == 8
    with pytest.raises(Exception, match="give what scene.get_state"):
        scene.reset(state.rigid)


def test_a_state_of_another_scene_is_refused(make: Any) -> None:
    two, three = make(2), make(3)
    with pytest.raises(Exception, match=r"state.qpos has shape \(2, 21\), this scene needs \(3, 21\)"):
        three.reset(two.get_state())
    with pytest.raises(Exception, match="state is a SimState; give what"):
        three.rigid_solver.set_state(0, three.get_state())


@pytest.mark.parametrize("field", ["qpos", "dofs_vel", "dofs_acc", "friction_ratio"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e39])
def test_a_bad_number_in_a_state_changes_nothing(make: Any, field: str, bad: float) -> None:
    scene = make()
    solver, state = scene.rigid_solver, scene.get_state()
    scene.step()
    before = solver.get_qpos()
    values = getattr(state.rigid, field).double()
    values[1, 2] = bad
    broken = SimState.of_rigid(dataclasses.replace(state.rigid, **{field: values}))
    for call in (lambda: scene.reset(broken), lambda: solver.set_state(0, broken.rigid)):
        with pytest.raises(Exception, match=rf"state.{field}\[1, 2\] is .*(allowed are|does not fit)"):
            call()
        torch.testing.assert_close(solver.get_qpos(), before)
    scene.reset()
    torch.testing.assert_close(solver.get_qpos(), state.rigid.qpos)


def test_a_getter_may_name_an_environment_twice(make: Any) -> None:
    scene = make()
    solver, box = scene.rigid_solver, scene.get_entity("box")
    qpos, _ = randomize(solver)
    torch.testing.assert_close(solver.get_qpos(envs_idx=[2, 0, 2]), qpos[[2, 0, 2]])
    assert box.get_pos([1, 1]).shape == (2, 3)
    for getter in (solver.get_time, solver.get_gravity, solver.get_links_pos, solver.get_dofs_limit):
        getter(envs_idx=[0, 0])
    assert solver.get_dofs_velocity([3, 3], [1, 1]).shape == (2, 2)
    for setter in (
        lambda envs: box.set_pos((0, 0, 1), envs),
        lambda envs: box.set_qpos(0.0, 0, envs),
        lambda envs: solver.set_gravity((0, 0, 1), envs),
        lambda envs: solver.set_geoms_friction(1.0, 0, envs),
        lambda envs: solver.set_links_friction_ratio(1.0, 0, envs),
        lambda envs: scene.reset(envs_idx=envs),
        lambda envs: solver.set_state(0, scene.get_state().rigid, envs),
        lambda envs: box.control_dofs_force(0.0, 0, envs),
    ):
        with pytest.raises(Exception, match="envs_idx names 2 more than once"):
            setter([2, 0, 2])


@pytest.mark.parametrize("n_envs", [0, 3])
def test_base_poses(make: Any, n_envs: int) -> None:
    scene = make(n_envs)
    box = scene.get_entity("box")
    box.set_dofs_velocity(1.0)
    box.set_pos((0, 0, 5), zero_velocity=False)
    assert (box.get_dofs_velocity() == 1).all()
    box.set_quat((0, 0, 0, 2))
    assert (box.get_dofs_velocity() == 0).all()
    assert box.get_pos().flatten().tolist() == [0, 0, 5] * max(n_envs, 1)
    assert box.get_quat().flatten().tolist() == [0, 0, 0, 1] * max(n_envs, 1)
    box.set_pos((0, 0, 1), relative=True)
    assert batched(box.get_pos(), n_envs)[0].tolist() == [1, 2, 4]
    if n_envs:
        box.set_pos(torch.arange(9).reshape(3, 3), torch.tensor([True, False, True]))
        assert box.get_pos().tolist() == [[0, 1, 2], [1, 2, 4], [6, 7, 8]]
        scene.rigid_solver.set_base_links_pos(torch.zeros(2, 3))  # the arm's base and the box
        assert (scene.get_entity("arm").get_pos() == 0).all()
    with pytest.raises(Exception, match=r"No free joint moves entity 'ground': link 0 \('plane_baselink'\)"):
        scene.get_entity("ground").set_pos((0, 0, 1))
    with pytest.raises(Exception, match="zeros has no direction"):
        box.set_quat((0, 0, 0, 0))
    with pytest.raises(Exception, match=r"pos: shape \(2,\)"):
        box.set_pos((0, 0))
    for length in (1e-30, 1e30):
        box.set_quat((0, length, 0, length))
        np.testing.assert_allclose(batched(box.get_quat(), n_envs)[0], [0, 0.5**0.5, 0, 0.5**0.5], rtol=1e-6)


def test_gravity_and_friction_of_single_environments(make: Any) -> None:
    scene = make()
    solver = scene.rigid_solver
    scene.sim.set_gravity((0, 0, -1.6), envs_idx=[1])
    torch.testing.assert_close(scene.sim.gravity[:, 2], torch.tensor([-9.81, -1.6, -9.81]))
    solver.set_geoms_friction([0.5, 0.6, 0.7], 0)
    solver.set_geoms_friction_ratio(2.0, 0, [0])
    torch.testing.assert_close(solver.get_geoms_friction()[:, 0], torch.tensor([0.5, 0.6, 0.7]))
    for bad in (0.001, 6.0):
        with pytest.raises(Exception, match=r"friction is .*; allowed are coefficients from 0.01 to 5"):
            solver.set_geoms_friction(bad)
    solver.set_geoms_friction(0.01)  # not below itself in float32
    for setter in (solver.set_geoms_friction_ratio, solver.set_links_friction_ratio):
        for bad in (-1, 0.0, 201, 1e9, torch.tensor([[1.0], [-1.0], [1.0]])):
            with pytest.raises(Exception, match=r"friction_ratio.* is .*; allowed are factors above 0 and up to 200"):
                setter(bad)


def test_constants_of_dofs(make: Any) -> None:
    solver = make().rigid_solver
    model, joint = KinematicsDouble.mj_model, KinematicsDouble.mj_model.dof_jntid
    lower, upper = solver.get_dofs_limit([6, 10])
    assert lower.tolist() == [-1, -np.inf]
    assert upper.tolist() == [1, np.inf]
    for got, expected in (
        (solver.get_dofs_armature(), model.dof_armature),
        (solver.get_dofs_damping(), model.dof_damping),
        (
            solver.get_dofs_stiffness(),
            model.jnt_stiffness[joint, 0] if model.jnt_stiffness.ndim > 1 else model.jnt_stiffness[joint],
        ),
        (solver.get_dofs_frictionloss(), model.dof_frictionloss),
        (solver.get_dofs_invweight(), model.dof_invweight0),
    ):
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-6)
    assert solver.get_dofs_armature([6], envs_idx=[0, 2]).shape == (2, 1)


def test_substeps(make: Any, gs_cpu: ModuleType) -> None:
    scene = make(sim_options=gs_cpu.options.SimOptions(dt=0.02, substeps=4))
    scene.step()
    assert (scene.substeps, scene.dt, scene.sim.substep_dt) == (4, 0.02, 0.005)
    assert scene.get_time().tolist() == pytest.approx([0.02] * 3)
    assert (scene.rigid_solver.get_dofs_velocity()[:, 6] == 8).all()  # the stand-in adds 2 in each physics step
    scene = make(rigid_options=gs_cpu.options.RigidOptions(dt=0.0025))
    assert scene.substeps == 4
    with pytest.raises(Exception, match="do not fit"):
        make(rigid_options=gs_cpu.options.RigidOptions(dt=0.003))


def test_everything_else_does_not_exist(make: Any) -> None:
    with pytest.raises(AttributeError, match="no attribute 'get_wings'"):
        make().rigid_solver.get_wings()


def test_closed_solver_says_so(make: Any, gs_cpu: ModuleType) -> None:
    scene = make()
    solver = scene.rigid_solver
    qpos = solver.get_qpos()
    gs_cpu.destroy()
    for call in (solver.get_qpos, solver.step, solver.reset, solver.get_error_envs_mask, scene.entities[1].get_qpos):
        with pytest.raises(Exception, match=r"closed, by gs.destroy\(\)"):
            call()
    assert qpos.isfinite().all()
