"""The life of a scene: what may be called when, what a failed call leaves behind, time, names, speed."""

from __future__ import annotations

import logging
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

import kernel_doubles
from kernel_doubles import ARM_AND_BALL
from pluriverse import speed_log
from pluriverse.not_yet import NAMES
from pluriverse.solver.status_monitor import PERIOD
from pluriverse.speed_log import SpeedLog


@pytest.fixture
def gs(gs_cpu: ModuleType, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    kernel_doubles.install(monkeypatch)
    return gs_cpu


def test_needs_a_session() -> None:
    import pluriverse

    with pytest.raises(Exception, match=r"gs.Scene needs a session.*Call gs.init\(\)"):
        pluriverse.Scene()


def test_order_of_calls(gs: ModuleType) -> None:
    scene = gs.Scene(show_FPS=False)
    for what in ("step", "reset", "get_state", "get_time"):
        with pytest.raises(Exception, match=f"{what} needs a built scene"):
            getattr(scene, what)()
    with pytest.raises(Exception, match="rigid solver exists once the scene is built"):
        scene.sim.rigid_solver  # noqa: B018
    scene.add_entity(gs.morphs.Plane())
    scene.build(n_envs=2)
    with pytest.raises(Exception, match="built already. Add all entities before"):
        scene.add_entity(gs.morphs.Plane())
    with pytest.raises(Exception, match="built already. Make a new"):
        scene.build()
    scene.step()
    gs.destroy()
    for call in (scene.step, scene.reset, scene.get_state, scene.build, lambda: scene.add_entity(gs.morphs.Plane())):
        with pytest.raises(Exception, match="was closed"):
            call()
    gs.init(backend=gs.cpu, logging_level="warning")
    with pytest.raises(Exception, match="was closed"):
        scene.step()
    gs.Scene().build()


def test_an_unbuilt_scene_does_not_outlive_its_session(gs: ModuleType) -> None:
    scene = gs.Scene()
    gs.destroy()
    gs.init(backend=gs.cpu, logging_level="warning")
    with pytest.raises(Exception, match="was closed"):
        scene.add_entity(gs.morphs.Plane())


def test_a_failed_call_leaves_a_usable_scene(gs: ModuleType, tmp_path: Path) -> None:
    scene = gs.Scene(show_FPS=False)
    (tmp_path / "broken.xml").write_text("<mujoco><worldbody></mujoco>")
    for morph, message in (
        (gs.morphs.MJCF(file="nowhere.xml"), "There is no file 'nowhere.xml'"),
        (gs.morphs.MJCF(file=str(tmp_path / "broken.xml")), "no well-formed XML"),
        ([gs.morphs.Plane()], "list of morphs"),
        ("box", "give one of gs.morphs"),
    ):
        with pytest.raises(Exception, match=message):
            scene.add_entity(morph)
    with pytest.raises(Exception, match="material: got a str, expected a Rigid"):
        scene.add_entity(gs.morphs.Plane(), "wood")
    for n_envs in (-1, 2.5, True, "4"):
        with pytest.raises(Exception, match="give an integer >= 0"):
            scene.build(n_envs)
    with pytest.raises(Exception, match="env_spacing"):
        scene.build(2, env_spacing=1.0)
    scene.add_entity(gs.morphs.MJCF(file=ARM_AND_BALL))
    scene.build(n_envs=2)
    for bad in (float("nan"), [0.0] * 3, "fast"):
        with pytest.raises(gs.GenesisException):
            scene.entities[0].set_dofs_velocity(bad)
    scene.step()


def test_options_of_a_wrong_kind(gs: ModuleType) -> None:
    with pytest.raises(Exception, match="sim_options: got a dict, expected a SimOptions"):
        gs.Scene(sim_options={"dt": 0.01})
    with pytest.raises(TypeError, match="simoptions"):
        gs.Scene(simoptions=None)
    with pytest.raises(Exception, match="rendering is not supported yet"):
        gs.Scene(renderer="Rasterizer")


def test_names(gs: ModuleType, tmp_path: Path) -> None:
    scene = gs.Scene()
    box = scene.add_entity(gs.morphs.Box(size=(1, 1, 1)))
    assert box.name == f"box_{box.uid}"
    assert scene.add_entity(gs.morphs.MJCF(file=ARM_AND_BALL)).name.startswith("arm_")
    (tmp_path / "nameless.xml").write_text("<mujoco/>")
    assert scene.add_entity(gs.morphs.MJCF(file=str(tmp_path / "nameless.xml"))).name.startswith("nameless_")
    cup = scene.add_entity(gs.morphs.Sphere(), name="cup")
    assert scene.get_entity("cup") is scene.get_entity(uid=cup.uid) is cup
    with pytest.raises(Exception, match="an entity named 'cup' already"):
        scene.add_entity(gs.morphs.Sphere(), name="cup")
    for name in (3, "", ("a", "b")):
        with pytest.raises(gs.GenesisException, match="is no name. Give a string"):
            scene.add_entity(gs.morphs.Sphere(), name=name)
    with pytest.raises(Exception, match="Did you mean 'cup'"):
        scene.get_entity("cap")


@pytest.mark.parametrize("n_envs", [0, 1, 3])
def test_time(gs: ModuleType, n_envs: int) -> None:
    scene = gs.Scene(sim_options=gs.options.SimOptions(dt=0.02), show_FPS=False)
    scene.add_entity(gs.morphs.Sphere())
    scene.build(n_envs=n_envs)
    for _ in range(5):
        scene.step()
    assert scene.get_time().shape == ((n_envs,) if n_envs else ())
    assert scene.get_time().flatten().tolist() == pytest.approx([0.1] * max(n_envs, 1))
    assert (scene.t, scene.cur_t) == (5, pytest.approx(0.1))
    if n_envs == 3:
        scene.reset(envs_idx=[1])
        scene.step()
        assert scene.get_time().tolist() == pytest.approx([0.12, 0.02, 0.12])
    scene.reset()
    assert scene.get_time().flatten().tolist() == [0] * max(n_envs, 1)
    assert scene.t == 0


def test_grid_of_environments(gs: ModuleType) -> None:
    scene = gs.Scene()
    scene.build(n_envs=5, env_spacing=(1.0, 2.0))
    assert scene.envs_offset.shape == (5, 3)
    np.testing.assert_allclose(scene.envs_offset[:, :2], [[-0.5, -2], [-0.5, 0], [-0.5, 2], [0.5, -2], [0.5, 0]])


def test_viewer_is_said_not_to_be_there(gs: ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="pluriverse"):
        scene = gs.Scene(show_viewer=True)
    assert "there is no viewer yet" in caplog.text
    assert scene.viewer is None


def test_methods_not_written_yet_say_so(gs: ModuleType) -> None:
    scene = gs.Scene(show_viewer=False)
    box = scene.add_entity(gs.morphs.Box(pos=(0, 0, 1), size=(0.1, 0.1, 0.1)))
    scene.build()
    for owner in (scene, box, box.base_link, scene.rigid_solver):
        for name in NAMES[type(owner).__name__].split():
            with pytest.raises(gs.GenesisException, match=f"{name} is not supported yet"):
                getattr(owner, name)(1, key=2)


@pytest.mark.parametrize("shapes", [(), ("Plane",), ("Plane", "Box")])
def test_a_world_where_nothing_moves_steps(gs: ModuleType, shapes: tuple[str, ...]) -> None:
    scene = gs.Scene(show_viewer=False)
    for shape in shapes:
        scene.add_entity(getattr(gs.morphs, shape)(fixed=True, **({"size": (0.1, 0.1, 0.1)} if shape == "Box" else {})))
    scene.build(n_envs=3)
    scene.step()
    assert scene.get_time().tolist() == pytest.approx([0.01] * 3)
    assert scene.rigid_solver.get_qpos().shape == (3, 0)


def test_speed_is_logged(gs: ModuleType, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 1.0, 2.0, 3.0, 4.0])
    monkeypatch.setattr(speed_log.time, "perf_counter", lambda: next(clock))
    with caplog.at_level(logging.INFO, logger="pluriverse"):
        log = SpeedLog(n_envs=8, alpha=0.5)
        for _ in range(4):
            log.count()
    assert caplog.text.count("Running at 8 FPS (1.0 per environment, 8 of them)") == 2


def test_a_step_is_its_launch_and_no_torch_operation(gs: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_doubles.StepDouble, "launch", lambda self, state, n_steps: None)
    scene = gs.Scene(show_FPS=True)
    scene.add_entity(gs.morphs.Sphere())
    scene.build(n_envs=64)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        for _ in range(PERIOD - 1):
            scene.step()
    assert [event.key for event in profile.key_averages() if event.key.startswith("aten::")] == []


def test_two_scenes_do_not_share_state(gs: ModuleType) -> None:
    def scene(n_envs: int) -> Any:
        made = gs.Scene(show_FPS=False)
        made.add_entity(gs.morphs.Sphere())
        made.build(n_envs)
        return made

    one, two = scene(2), scene(3)
    one.step()
    assert two.rigid_solver.get_dofs_velocity().count_nonzero() == 0
    one.destroy()
    two.step()


def test_a_scene_built_in_inference_mode_works_outside_and_the_other_way_round(gs: ModuleType) -> None:
    def use(scene: Any) -> None:
        solver = scene.rigid_solver
        for _ in range(2 * PERIOD):
            scene.step()
        solver.set_dofs_velocity(1.0, [0, 2])
        solver.control_dofs_force(1.0)
        solver.set_dofs_kp(1.0)
        scene.reset(envs_idx=torch.tensor([True, False]))
        solver.get_links_pos()

    with torch.inference_mode():
        scene = gs.Scene(show_FPS=False)
        scene.add_entity(gs.morphs.Sphere())
        scene.build(n_envs=2)
    use(scene)
    with torch.inference_mode():
        use(scene)
    use(scene)
