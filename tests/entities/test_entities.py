"""Names, local indices and structure of entities, links, joints and geoms; with stand-ins for the kernels."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

import kernel_doubles
from kernel_doubles import ARM_AND_BALL


@pytest.fixture
def scene(gs_cpu: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Any:
    kernel_doubles.install(monkeypatch)
    scene = gs_cpu.Scene(show_FPS=False)
    scene.add_entity(gs_cpu.morphs.Box(size=(0.1, 0.2, 0.3), fixed=True, pos=(0, 0, 2)), name="shelf")
    for k in range(2):
        scene.add_entity(gs_cpu.morphs.MJCF(file=ARM_AND_BALL), name=f"arm{k}")
    scene.add_entity(gs_cpu.morphs.Sphere(radius=0.1), name="ball")
    scene.build(n_envs=2)
    return scene


def test_structure(scene: Any, gs_cpu: ModuleType) -> None:
    shelf, _, arm, ball = scene.entities
    assert (arm.n_links, arm.n_joints, arm.n_geoms, arm.n_qs, arm.n_dofs, arm.n_actuators) == (4, 5, 6, 14, 12, 4)
    assert (arm.link_start, arm.link_end, arm.joint_start, arm.joint_end) == (5, 9, 5, 10)
    assert (arm.q_start, arm.q_end, arm.dof_start, arm.dof_end) == (14, 28, 12, 24)
    assert [link.name for link in arm.links] == ["base", "upper", "wrist", "finger"]
    assert [link.parent_idx for link in arm.links] == [-1, 5, 6, 7]
    assert {link.root_idx for link in arm.links} == {5}
    assert [joint.name for joint in arm.joints] == ["root", "shoulder", "wrist", "finger", "tip"]
    kinds = gs_cpu.JOINT_TYPE
    assert [j.type for j in arm.joints] == [
        kinds.FREE,
        kinds.REVOLUTE,
        kinds.SPHERICAL,
        kinds.PRISMATIC,
        kinds.REVOLUTE,
    ]
    assert [len(joints) for joints in arm.joints_by_links] == [1, 1, 1, 2]
    assert (arm.base_link.is_free, arm.is_free, shelf.is_free, shelf.base_link.is_fixed) == (True, True, False, True)
    assert arm.base_link_idx == 5
    assert arm.base_joint.name == "root"
    assert [geom.name for geom in arm.geoms][:2] == ["wall", "trunk"]
    assert [geom.link.name if geom.link else None for geom in arm.geoms] == [
        None,
        "base",
        "upper",
        "upper",
        "wrist",
        "finger",
    ]
    assert arm.geoms[0].is_fixed
    assert arm.geoms[2].type is gs_cpu.GEOM_TYPE.CAPSULE
    assert ball.geoms[0].contype == 0xFFFF
    assert [geom.idx for geom in scene.rigid_solver.geoms] == list(range(scene.rigid_solver.n_geoms))
    assert scene.rigid_solver.links[arm.link_start] is arm.base_link
    assert scene.rigid_solver.joints[arm.joint_start] is arm.base_joint
    assert scene.rigid_solver.n_links == 1 + 4 + 4 + 1
    assert arm.get_mass() == pytest.approx(sum(arm.get_links_mass().tolist()), rel=1e-5)
    assert arm.init_qpos.shape == (14,)


def test_joint_indices_and_their_former_names(scene: Any) -> None:
    arm = scene.entities[2]
    shoulder, wrist = arm.get_joint("shoulder"), arm.get_joint("wrist")
    assert (shoulder.dofs_idx, shoulder.dofs_idx_local, shoulder.qs_idx, shoulder.qs_idx_local) == (
        [18],
        [6],
        [21],
        [7],
    )
    assert (wrist.dofs_idx_local, wrist.qs_idx_local) == ([7, 8, 9], [8, 9, 10, 11])
    with pytest.warns(DeprecationWarning, match="dof_idx_local is now dofs_idx_local"):
        assert shoulder.dof_idx_local == 6
    with pytest.warns(DeprecationWarning, match="q_idx_local is now qs_idx_local"):
        assert wrist.q_idx_local == [8, 9, 10, 11]
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        shoulder.nonsense  # noqa: B018


def test_names_that_are_not_there_suggest_the_nearest(scene: Any) -> None:
    arm = scene.entities[1]
    with pytest.raises(Exception, match=r"Entity 'arm0' has no joint 'sholder'. Did you mean 'shoulder'\?"):
        arm.get_joint("sholder")
    with pytest.raises(Exception, match=r"has no link 'nothing'. It has: base, upper, wrist, finger"):
        arm.get_link("nothing")
    with pytest.raises(Exception, match=r"has no link 3. It has: base"):
        arm.get_link(3)
    for part in arm.links[0], arm.joints[0]:
        part.name = ""  # as of a file that does not name it
    for find in (arm.get_link, arm.get_joint):
        with pytest.raises(Exception, match=r"has no (link|joint) ''. It has: (upper|shoulder), "):
            find("")


def test_messages_name_entities_and_count_as_the_caller_does(scene: Any) -> None:
    solver, (shelf, _, arm1, ball) = scene.rigid_solver, scene.entities
    for call, message in (
        (lambda: ball.control_dofs_position(0.0, 4), r"entity 'ball': dof 4 \(joint 'sphere_joint'\)"),
        (lambda: arm1.control_dofs_velocity(0.0, [7, 3]), r"'arm1': dof 3 \(joint 'root'\), dof 7 \(joint 'wrist'\)"),
        (lambda: solver.control_dofs_velocity(0.0, 15), r"'arm1': dof 15 \(joint 'root'\)"),
        (lambda: solver.control_dofs_velocity(0.0, [3, 15]), r"'arm0': dof 3 \(joint 'root'\); entity 'arm1': dof 15"),
        (lambda: arm1.get_dofs_kp([10, 10]), r"^entity 'arm1': dof 10 \(joint 'finger'\): gain and bias"),
        (lambda: arm1.set_dofs_velocity(0.0, [1, 1]), "dofs_idx_local names 1 more than once"),
        (lambda: shelf.set_pos((0, 0, 1)), r"entity 'shelf': link 0 \('box_baselink'\)"),
        (lambda: solver.set_base_links_pos((0, 0, 1), [1, 6]), r"moves entity 'arm1': link 6 \('upper'\),"),
    ):
        with pytest.raises(Exception, match=message) as caught:
            call()
        assert not any(f"{i}/" in str(caught.value) for i in range(4))
    arm1.control_dofs_force(1.0)
    with pytest.raises(Exception, match=r"'arm1': dof 6 \(joint 'shoulder'\), dof 10 \(joint 'finger'\), dof"):
        arm1.control_actuators(0.0)


KEYS = """
<mujoco><worldbody><body name="b" pos="0 0 1"><freejoint/><geom size=".1"/>
  <body><joint name="j"/><geom size=".1"/></body></body></worldbody>
  <keyframe><key name="home" qpos="1 2 3 1 0 0 0 .5"/><key/><key name="crouch" qpos="0 0 .5 1 0 0 0 .25"/></keyframe>
</mujoco>
"""


@pytest.mark.parametrize("n_envs", [0, 2])
def test_keyframes(gs_cpu: ModuleType, monkeypatch: Any, caplog: pytest.LogCaptureFixture, n_envs: int) -> None:
    kernel_doubles.install(monkeypatch)
    scene = gs_cpu.Scene(show_FPS=False)
    scene.add_entity(gs_cpu.morphs.Sphere(), name="ball")
    first, second = (
        scene.add_entity(gs_cpu.morphs.MJCF(file=KEYS, pos=(10 * k, 0, 0)), name=f"robot{k}") for k in range(2)
    )
    gs_cpu.logger.setLevel("INFO")
    with caplog.at_level("INFO", logger="pluriverse"):
        scene.build(n_envs=n_envs)
    assert "robot0: home, keyframe_1, crouch; robot1: home, keyframe_1, crouch." in caplog.text
    assert caplog.text.count("Keyframes") == 1
    assert "ball" not in caplog.text
    for robot in (first, second):
        assert list(robot.keyframes) == ["home", "keyframe_1", "crouch"]
        home = robot.get_keyframe("home")
        assert (home.dtype, home.device, home.tolist()) == (gs_cpu.tc_float, gs_cpu.device, [1, 2, 3, 1, 0, 0, 0, 0.5])
        assert robot.keyframes["keyframe_1"][2] == 1
        robot.set_qpos(home)
        torch.testing.assert_close(robot.get_qpos(), home.expand(n_envs, -1) if n_envs else home)
        home += 1  # the user's own
        assert robot.keyframes["home"][0] == 1
        with pytest.raises(Exception, match=r"has no keyframe 'hom'. Did you mean 'home'\? It has: home, key"):
            robot.get_keyframe("hom")
    ball = scene.get_entity("ball")
    assert dict(ball.keyframes) == {}
    with pytest.raises(Exception, match=r"has no keyframe 'home'. It has: none"):
        ball.get_keyframe("home")


def test_local_indices_reach_the_entitys_own_dofs(scene: Any) -> None:
    solver, (_, arm0, arm1, ball) = scene.rigid_solver, scene.entities
    arm1.set_dofs_velocity([1.0, 2.0], [0, -1])
    ball.set_dofs_velocity(torch.tensor([[3.0], [4.0]]), dofs_idx_local=2)
    velocity = solver.get_dofs_velocity()
    assert velocity[:, [12, 23, 26]].tolist() == [[1, 2, 3], [1, 2, 4]]
    assert velocity.count_nonzero() == 6
    arm1.control_dofs_force(force=torch.ones(1, 12), envs_idx=torch.tensor([1]))
    assert solver.get_dofs_control_force()[1].nonzero().flatten().tolist() == list(range(12, 24))
    scene.reset()
    arm0.control_actuators(0.3, 2)  # the third: pull = 3 ctrl + 0.5
    assert solver.get_dofs_control_force()[0].nonzero().flatten().tolist() == [10]
    with pytest.raises(Exception, match=r"dofs_idx_local=12: index 12 is out of range for entity 'arm1' \(12 dofs\)"):
        arm1.get_dofs_velocity(12)
    with pytest.raises(TypeError, match="an entity takes 'dofs_idx_local'"):
        arm1.get_dofs_velocity(dofs_idx=1)


def test_setters_stop_the_entity_unless_told_otherwise(scene: Any) -> None:
    _, arm0, arm1, _ = scene.entities
    for entity in (arm0, arm1):
        entity.set_dofs_velocity(1.0)
    arm0.set_qpos(0.5, 7, [1])
    assert arm0.get_dofs_velocity().sum(1).tolist() == [12, 0]
    arm1.set_dofs_position(0.25, 6, zero_velocity=False)
    assert arm1.get_dofs_velocity().sum(1).tolist() == [12, 12]
    assert arm1.get_dofs_position([6])[:, 0].tolist() == [0.25, 0.25]
    arm1.zero_all_dofs_velocity(0)
    assert arm1.get_dofs_velocity().sum(1).tolist() == [0, 12]


def test_links_and_joints_answer_for_themselves(scene: Any) -> None:
    arm = scene.entities[1]
    wrist = arm.get_link("wrist")
    torch.testing.assert_close(wrist.get_pos(), arm.get_links_pos([2])[:, 0])
    torch.testing.assert_close(arm.get_joint("wrist").get_anchor_pos(1), wrist.get_pos(1))
    np.testing.assert_allclose(arm.get_joint("shoulder").get_anchor_axis(0), [[0, 1, 0]], atol=1e-6)
    torch.testing.assert_close(arm.get_pos(), torch.tensor([[0.0, 0, 1]] * 2))
    assert arm.get_vel().shape == arm.get_ang().shape == (2, 3)
    assert (wrist.n_dofs, wrist.n_qs, wrist.dof_start, wrist.dof_end, wrist.q_start) == (3, 4, 7, 10, 8)
    hand = wrist.geoms[0]
    torch.testing.assert_close(hand.get_pos(), wrist.get_pos() + torch.tensor([0.05, 0, 0]))
    assert hand.get_quat().shape == (2, 4)
    assert wrist.inertial_mass > 0
    state = arm.get_state()
    assert (state.pos.shape, state.quat.shape, state.qpos.shape, state.dofs_vel.shape) == (
        (2, 3),
        (2, 4),
        (2, 14),
        (2, 12),
    )


def test_friction_of_links_and_entities(scene: Any) -> None:
    solver, (_, arm0, arm1, _) = scene.rigid_solver, scene.entities
    arm0.set_friction(0.5)
    arm1.get_link("upper").set_friction(0.25)
    friction = solver.get_geoms_friction()[0]
    assert friction[[geom.idx for geom in arm0.geoms]].tolist() == [0.5] * 6
    assert friction[[geom.idx for geom in arm1.geoms]].tolist() == [1, 1, 0.25, 0.25, 1, 1]
    arm1.set_friction_ratio([[2.0, 3.0]], [1, 3], [1])
    ratio = solver.get_geoms_friction_ratio()[:, [geom.idx for geom in arm1.geoms]]
    assert ratio.tolist() == [[1] * 6, [1, 1, 2, 2, 1, 3]]
    arm1.geoms[1].set_friction(0.125)
    assert arm1.geoms[1].get_friction().tolist() == [0.125, 0.125]


def test_methods_show_local_signatures(scene: Any) -> None:
    import inspect

    arm = type(scene.entities[1])
    assert list(inspect.signature(arm.control_dofs_position).parameters) == [
        "self",
        "position",
        "dofs_idx_local",
        "envs_idx",
    ]
    assert "Drive dofs" in arm.control_dofs_position.__doc__


def test_before_the_build(gs_cpu: ModuleType) -> None:
    scene = gs_cpu.Scene()
    box = scene.add_entity(gs_cpu.morphs.Box(size=(1, 1, 1)), name="box")
    assert not box.is_built
    for call in (box.get_pos, box.get_qpos, lambda: box.links, lambda: box.n_dofs, lambda: box.set_qpos(0.0)):
        with pytest.raises(Exception, match=r"'box' is part of no built scene yet. Call scene.build\(\) first"):
            call()
