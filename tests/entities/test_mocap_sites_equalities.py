"""Mocap links, sites, equality constraints and what keyframes hold of them: names, places, resets."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import mujoco
import numpy as np
import pytest
import torch

import kernel_doubles
from pluriverse.errors import GenesisException

RIG = """
<mujoco><worldbody>
  <site name="corner" pos="1 2 3"/>
  <body name="target" mocap="true" pos=".1 .2 .3" euler="0 0 90"><geom size=".05"/>
    <body name="tool" pos="0 0 .1"><site name="tip" pos=".1 0 0" euler="0 90 0"/></body></body>
  <body name="arm"><joint name="j" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/><site name="hand" pos=".4 0 0"/></body>
</worldbody>
<equality><weld name="drag" body1="target" body2="arm"/><connect site1="tip" site2="hand" active="false"/>
  <joint name="stop" joint1="j"/></equality>
<actuator><motor joint="j"/></actuator>
<keyframe><key name="low" qpos=".5" qvel="1" ctrl=".25" mpos="1 0 0" mquat="0 1 0 0"/></keyframe></mujoco>"""


@pytest.fixture
def scene(gs_cpu: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Any:
    kernel_doubles.install(monkeypatch)
    scene = gs_cpu.Scene(show_FPS=False)
    scene.add_entity(gs_cpu.morphs.Sphere(radius=0.1, pos=(0, 0, 5)), name="ball")
    for k in range(2):
        scene.add_entity(gs_cpu.morphs.MJCF(file=RIG, pos=(10 * k, 0, 0)), name=f"rig{k}")
    scene.build(n_envs=2)
    return scene


def close(tensor: torch.Tensor, expected: Any) -> None:
    torch.testing.assert_close(tensor, torch.tensor(expected, dtype=tensor.dtype), atol=1e-6, rtol=0)


def test_structure(scene: Any, gs_cpu: ModuleType) -> None:
    ball, _, rig = scene.entities
    assert [site.name for site in rig.sites] == ["corner", "tip", "hand"]
    assert [site.link.name if site.link else None for site in rig.sites] == [None, "tool", "arm"]
    assert [site.idx for site in scene.rigid_solver.sites] == list(range(6))
    assert (rig.n_sites, ball.n_sites, scene.rigid_solver.n_sites) == (3, 0, 6)
    kinds = gs_cpu.EQUALITY_TYPE
    assert [equality.type for equality in rig.equalities] == [kinds.WELD, kinds.CONNECT, kinds.JOINT]
    assert [equality.idx for equality in rig.equalities] == [3, 4, 5]
    assert [equality.idx for equality in scene.rigid_solver.equalities] == list(range(6))
    assert (rig.get_equality("stop").idx_local, rig.n_equalities) == (2, 3)
    target, tool, arm = rig.links
    assert (target.is_mocap, tool.is_mocap, arm.is_mocap) == (True, False, False)
    assert not target.is_fixed
    assert not target.geoms[0].is_fixed
    with pytest.raises(GenesisException, match=r"has no site 'tips'. Did you mean 'tip'\?"):
        rig.get_site("tips")
    with pytest.raises(GenesisException, match=r"has no equality constraint 'dragon'. Did you mean 'drag'\?"):
        rig.get_equality("dragon")


# ---- mocap links -----------------------------------------------------------------------------------------------------


def test_mocap_links_stand_where_they_are_put(scene: Any) -> None:
    _, rig0, rig1 = scene.entities
    root = np.sqrt(0.5)
    close(rig1.get_pos(), [[10.1, 0.2, 0.3]] * 2)
    close(rig1.get_quat(), [[root, 0, 0, root]] * 2)
    rig1.set_pos([1.0, 2.0, 3.0], envs_idx=[1])
    rig1.links[0].set_quat([0.0, 2.0, 0.0, 0.0], envs_idx=1)
    close(rig1.get_pos(), [[10.1, 0.2, 0.3], [1, 2, 3]])
    close(rig1.get_quat(), [[root, 0, 0, root], [0, 1, 0, 0]])
    close(rig1.links[1].get_pos(), [[10.1, 0.2, 0.4], [1, 2, 2.9]])
    close(rig1.links[0].geoms[0].get_pos(), [[10.1, 0.2, 0.3], [1, 2, 3]])
    close(rig0.get_pos(), [[0.1, 0.2, 0.3]] * 2)
    rig0.set_pos([0.0, 0.0, 1.0], relative=True)
    rig0.set_quat([root, 0.0, 0.0, root], relative=True)
    close(rig0.get_pos(), [[0.1, 0.2, 1.3]] * 2)
    close(rig0.get_quat().abs(), [[0, 0, 0, 1]] * 2)
    assert not rig0.get_vel().any()


def test_moving_a_mocap_link_keeps_the_warm_start(scene: Any) -> None:
    solver, rig = scene.rigid_solver, scene.entities[1]
    scene.step()
    rig.get_link("target").set_pos([1.0, 0.0, 0.0])
    assert (solver.get_dofs_acc() == 3).all()
    solver.set_base_links_pos([[0.0, 0.0, 1.0], [0.0, 0.0, 2.0]], [0, 1])  # the ball too, which has a free joint
    assert not solver.get_dofs_acc().any()


def test_only_free_and_mocap_links_can_be_put(scene: Any) -> None:
    rig = scene.entities[1]
    for call in (rig.get_link("tool").set_pos, rig.get_link("arm").set_quat):
        with pytest.raises(GenesisException, match="No free joint moves entity 'rig0'"):
            call([1.0, 0.0, 0.0, 0.0][: 3 if call.__name__ == "set_pos" else 4])


def test_resets_and_copied_states_hold_mocap_poses_and_switches(scene: Any) -> None:
    rig = scene.entities[2]
    before = scene.get_state()
    rig.set_pos([1.0, 2.0, 3.0])
    rig.get_equality("drag").set_active(False, envs_idx=0)
    moved, saved = scene.get_state(), scene.state_dict()
    scene.reset(envs_idx=[1])
    close(rig.get_pos(), [[1, 2, 3], [10.1, 0.2, 0.3]])
    assert rig.get_equality("drag").get_active().tolist() == [False, True]
    scene.reset()
    close(rig.get_pos(), [[10.1, 0.2, 0.3]] * 2)
    assert rig.get_equalities_active().tolist() == [[True, False, True]] * 2
    scene.rigid_solver.set_state(0, moved.rigid, envs_idx=[0])
    close(rig.get_pos(), [[1, 2, 3], [10.1, 0.2, 0.3]])
    assert rig.get_equality("drag").get_active().tolist() == [False, True]
    scene.load_state_dict(saved)
    close(rig.get_pos(), [[1, 2, 3]] * 2)
    scene.reset(moved)
    scene.reset()  # to the state that was given last
    assert rig.get_equality("drag").get_active().tolist() == [False, True]
    scene.reset(before)
    close(rig.get_pos(), [[10.1, 0.2, 0.3]] * 2)


# ---- sites -----------------------------------------------------------------------------------------------------------


def test_sites_are_where_mujoco_has_them(scene: Any) -> None:
    solver, rig = scene.rigid_solver, scene.entities[2]
    rig.set_qpos([0.3])
    rig.set_pos([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    model = kernel_doubles.KinematicsDouble.mj_model
    for env in range(2):
        data = mujoco.MjData(model)
        data.qpos[-1] = 0.3
        data.mocap_pos[1] = [[1, 0, 0], [0, 1, 0]][env]
        mujoco.mj_kinematics(model, data)
        close(solver.get_sites_pos(envs_idx=[env])[0], data.site_xpos)
        for site in range(model.nsite):
            quat = np.zeros(4)
            mujoco.mju_mat2Quat(quat, data.site_xmat[site])
            close(solver.get_sites_quat(site, env)[0, 0].abs(), np.abs(quat))
    hand = rig.get_site("hand")
    close(hand.get_pos(), [[10 + 0.4 * np.cos(0.3), 0, -0.4 * np.sin(0.3)]] * 2)
    assert torch.equal(hand.get_pos(1), rig.get_sites_pos([2], 1)[:, 0])
    assert torch.equal(hand.get_quat(), rig.get_sites_quat()[:, 2])
    np.testing.assert_array_equal(hand.init_pos, [0.4, 0, 0])
    np.testing.assert_array_equal(hand.init_quat, [1, 0, 0, 0])


# ---- equality constraints --------------------------------------------------------------------------------------------


def test_switches_by_environment(scene: Any) -> None:
    solver, (_, rig0, rig1) = scene.rigid_solver, scene.entities
    start = [True, False, True]
    assert solver.get_equalities_active().tolist() == [start * 2] * 2
    rig1.set_equalities_active([[False, True], [True, True]], [0, 1])
    assert rig1.get_equalities_active().tolist() == [[False, True, True], [True, True, True]]
    assert rig0.get_equalities_active().tolist() == [start] * 2
    solver.set_equalities_active(torch.tensor([True, False]), [4, 5], torch.tensor([False, True]))
    assert rig1.get_equalities_active().tolist() == [[False, True, True], [True, True, False]]
    rig0.get_equality("stop").set_active(np.array(False))
    assert solver.get_equalities_active([2]).tolist() == [[False], [False]]
    assert solver.get_equalities_active(2).dtype == torch.bool


@pytest.mark.parametrize("value", [1, 0.5, [1, 0, 1], torch.zeros(3)])
def test_switches_are_booleans(scene: Any, value: Any) -> None:
    with pytest.raises(GenesisException, match=r"active holds .*; allowed are booleans"):
        scene.entities[1].set_equalities_active(value)


# ---- keyframes -------------------------------------------------------------------------------------------------------


def test_keyframes_hold_more_than_positions(scene: Any) -> None:
    for rig in scene.entities[1:]:
        values = {
            "qpos": [0.5],
            "qvel": [1.0],
            "ctrl": [0.25],
            "act": [],
            "mocap_pos": [[1.0, 0.0, 0.0]],
            "mocap_quat": [[0.0, 1.0, 0.0, 0.0]],
        }
        for quantity, expected in values.items():
            assert rig.get_keyframe("low", quantity).tolist() == expected
        assert rig.get_keyframe("low").tolist() == [0.5]
        rig.set_pos(rig.get_keyframe("low", "mocap_pos")[0])
        close(rig.get_pos(), [[1, 0, 0]] * 2)
    with pytest.raises(
        GenesisException, match=r"A keyframe holds no 'time'. It holds: qpos, qvel, ctrl, act, mocap_pos"
    ):
        scene.entities[1].get_keyframe("low", "time")
