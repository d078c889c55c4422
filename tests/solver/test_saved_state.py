"""The worlds as a dictionary: everything that a step, a getter or a random stream depends on comes back bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

import pluriverse as gs

PANDA = "xml/franka_emika_panda/panda.xml"


def panda(n_envs: int = 4, **build: Any) -> tuple[gs.Scene, Any]:
    made = gs.Scene(show_FPS=False)
    made.add_entity(gs.morphs.Plane())
    robot = made.add_entity(gs.morphs.MJCF(file=PANDA))
    made.build(n_envs=n_envs, **build)
    return made, robot


def command_everything(made: gs.Scene, robot: Any) -> None:
    """Put every part of the state somewhere else than its default."""
    n = max(made.n_envs, 1)
    values = torch.linspace(0.5, 1.5, n)[:, None]
    robot.set_dofs_kp(values * 800.0, range(3))
    robot.set_dofs_kv(values * 60.0, range(3))
    robot.set_dofs_force_range(-values * 40.0, values * 50.0, range(4))
    made.rigid_solver.set_geoms_friction_ratio(values.expand(n, made.rigid_solver.n_geoms))
    made.sim.set_gravity(torch.tensor([0.3, 0.0, -7.0]) * values)
    robot.control_dofs_position(values * 0.4, range(3))
    robot.control_dofs_velocity(values * 0.1, range(3, 5))
    robot.control_dofs_force(values * 2.0, [5])
    made.reset(made.get_state(), envs_idx=[1])
    robot.control_dofs_position(0.1, [6], envs_idx=[0, 2])


def observe(made: gs.Scene, robot: Any) -> dict[str, torch.Tensor]:
    """Everything after some more steps, commands, gain changes and a reset."""
    for _ in range(20):
        made.step()
    robot.set_dofs_kp(700.0, range(2))  # rewrites the laws of running commands
    for _ in range(20):
        made.step()
    made.reset(envs_idx=[0])
    made.step()
    return {
        "qpos": robot.get_qpos(),
        "velocity": robot.get_dofs_velocity(),
        "force": robot.get_dofs_control_force(),
        "kp": robot.get_dofs_act_gain(),
        "range": robot.get_dofs_force_range()[0],
        "friction": made.rigid_solver.get_geoms_friction_ratio(),
        "gravity": made.rigid_solver.get_gravity(),
        "links": made.rigid_solver.get_links_pos(),
        "time": made.get_time(),
        "draw": made.random_stream("a").uniform(3),
        "t": torch.tensor(made.t),
    }


def assert_equal(expected: dict[str, torch.Tensor], found: dict[str, torch.Tensor]) -> None:
    for name, value in expected.items():
        assert torch.equal(value, found[name]), name


def test_another_scene_goes_on_bit_for_bit(gs_cpu: ModuleType, tmp_path: Path) -> None:
    made, robot = panda()
    command_everything(made, robot)
    made.random_stream("a").uniform(2, envs_idx=[1])
    for _ in range(15):
        made.step()
    made.save_checkpoint(tmp_path / "worlds.pt")
    expected = observe(made, robot)

    other, twin = panda()
    other.load_checkpoint(tmp_path / "worlds.pt")
    assert_equal(expected, observe(other, twin))
    made.load_checkpoint(tmp_path / "worlds.pt")  # into the scene that has gone on
    assert_equal(expected, observe(made, robot))


def test_who_commands_a_dof_comes_back(gs_cpu: ModuleType) -> None:
    made, robot = panda()
    robot.control_actuators(0.3, range(2))
    saved = made.state_dict()
    other, twin = panda()
    other.load_state_dict(saved)
    with pytest.raises(gs.GenesisException, match="control_dofs_.* cannot take"):
        twin.control_dofs_position(0.0, [0])
    twin.control_actuators(0.5, range(2))
    robot.control_actuators(0.5, range(2))
    for _ in range(5):
        made.step()
        other.step()
    assert torch.equal(robot.get_qpos(), twin.get_qpos())


def test_a_saved_state_is_a_copy(gs_cpu: ModuleType) -> None:
    made, robot = panda()
    saved = made.state_dict()
    before = {name: tensor.clone() for name, tensor in saved["envs"].items()}
    command_everything(made, robot)
    for _ in range(5):
        made.step()
    assert_equal(before, saved["envs"])


def test_a_frozen_environment_stays_frozen(gs_cpu: ModuleType) -> None:
    made, robot = panda()
    robot.set_dofs_velocity(1e30, envs_idx=[2])
    made.step()
    made.step()
    assert made.rigid_solver.get_error_envs_mask().tolist() == [False, False, True, False]
    other, _ = panda()
    other.load_state_dict(made.state_dict())
    assert other.rigid_solver.get_error_envs_mask().tolist() == [False, False, True, False]


def without(key: str) -> Callable[[dict[str, Any]], Any]:
    return lambda saved: saved["envs"].pop(key)


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (lambda saved: saved.update(model="0" * 64), "another scene: its model is"),
        (lambda saved: saved.update(dt=0.5), "another scene: its dt is 0.5"),
        (lambda saved: saved.update(format=0), "another scene: its format is 0"),
        (without("gains"), r"lacks \['gains'\]"),
        (lambda saved: saved["envs"].update(gains=saved["envs"]["gains"][:2]), r"'gains' is \(2, 9, 4\)"),
        (lambda saved: saved["envs"].update(gains=saved["envs"]["gains"].double()), r"float64, this scene needs"),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(gs_cpu: ModuleType, harm: Callable, says: str) -> None:
    made, robot = panda()
    robot.set_dofs_position(0.3, [1])
    for _ in range(3):
        made.step()
    saved, before = made.state_dict(), robot.get_qpos()
    made.step()
    changed = robot.get_qpos()
    assert not torch.equal(before, changed)
    harm(saved)
    with pytest.raises(gs.GenesisException, match=says):
        made.load_state_dict(saved)
    assert torch.equal(robot.get_qpos(), changed)


def test_a_file_that_cannot_be_read_or_written_is_named(gs_cpu: ModuleType, tmp_path: Path) -> None:
    made, _ = panda(1)
    with pytest.raises(gs.GenesisException, match="There is no checkpoint .*missing"):
        made.load_checkpoint(tmp_path / "missing")
    (tmp_path / "cut").write_bytes(b"PK\x03\x04 half of it")
    with pytest.raises(gs.GenesisException, match="cut cannot be read"):
        made.load_checkpoint(tmp_path / "cut")
    (tmp_path / "file").touch()
    with pytest.raises(gs.GenesisException, match="could not be written"):
        made.save_checkpoint(tmp_path / "file" / "worlds.pt")


def test_models_are_told_apart_by_all_they_mean(gs_cpu: ModuleType) -> None:
    def digest(friction: float = 1.0, gravity: float = -9.81, name: str = "ball") -> str:
        made = gs.Scene(sim_options=gs.options.SimOptions(gravity=(0.0, 0.0, gravity)), show_FPS=False)
        text = (
            f'<mujoco><worldbody><body name="{name}"><freejoint/><geom size="0.1" friction="{friction}"/></body>'
            "</worldbody></mujoco>"
        )
        made.add_entity(gs.morphs.MJCF(file=text))
        before = made.model_digest()
        made.build()
        assert made.model_digest() == before
        return before

    assert digest() == digest()
    assert len({digest(), digest(friction=0.5), digest(gravity=-9.81000001), digest(name="bowl")}) == 4
