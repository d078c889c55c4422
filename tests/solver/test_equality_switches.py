"""Equality constraints and mocap bodies in compiled float32 steps, through the public API, against MuJoCo."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import mujoco
import numpy as np
import pytest

DRAGGED = """
<mujoco><option timestep="0.002"/><default><geom contype="0" conaffinity="0"/></default><worldbody>
  <body name="target" mocap="true" pos=".5 0 .5"/>
  <body pos="0 0 .5"><joint name="a" axis="0 1 0" damping=".1"/>
    <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/>
    <body pos=".3 0 0"><joint name="b" axis="0 1 0" damping=".1"/>
      <geom type="capsule" fromto="0 0 0 .2 0 0" size=".02"/>
      <body name="hand" pos=".2 0 0"><joint axis="1 0 0" damping=".01"/><geom size=".04" pos="0 0 .02"/></body></body>
  </body></worldbody>
  <equality><weld name="drag" body1="target" body2="hand" torquescale=".2"/>
    <joint name="stop" joint1="b" joint2="a" active="false"/></equality></mujoco>"""
STEPS = 50
SWITCHED = [(True, False), (False, False), (False, True), (True, True)]  # drag, stop
TARGETS = np.array([[0.45, 0.0, 0.55], [0.5, 0.0, 0.5], [0.4, 0.0, 0.4], [0.4, 0.0, 0.6]])
QUAT = np.array([0.9, 0.0, 0.4, 0.1])


@pytest.fixture
def scene(gs_cpu: ModuleType) -> Any:
    scene = gs_cpu.Scene(show_FPS=False, sim_options=gs_cpu.options.SimOptions(dt=0.002))
    scene.add_entity(gs_cpu.morphs.MJCF(file=DRAGGED), name="arm")
    scene.build(n_envs=len(SWITCHED))
    return scene


def mujoco_motion(env: int) -> mujoco.MjData:
    model = mujoco.MjModel.from_xml_string(DRAGGED)
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    data = mujoco.MjData(model)
    data.eq_active[:] = SWITCHED[env]
    data.mocap_pos[0], data.mocap_quat[0] = TARGETS[env], QUAT
    for _ in range(STEPS):
        mujoco.mj_step(model, data)
    mujoco.mj_kinematics(model, data)
    return data


def test_environments_switch_on_their_own(scene: Any) -> None:
    (arm,) = scene.entities
    arm.set_equalities_active(SWITCHED)
    arm.set_pos(TARGETS)
    arm.set_quat(QUAT)
    for _ in range(STEPS):
        scene.step()
    for env in range(len(SWITCHED)):
        data = mujoco_motion(env)
        np.testing.assert_allclose(arm.get_qpos(envs_idx=[env])[0], data.qpos, atol=1e-4)
        np.testing.assert_allclose(arm.get_dofs_velocity(envs_idx=[env])[0], data.qvel, atol=2e-3)
        np.testing.assert_allclose(arm.get_links_pos(envs_idx=[env])[0], data.xpos[1:], atol=1e-4)
        np.testing.assert_allclose(arm.get_links_quat(envs_idx=[env])[0], data.xquat[1:], atol=1e-4)
    hand = arm.get_link("hand").get_pos().numpy()
    near = np.linalg.norm(hand - TARGETS, axis=1) < 0.03
    assert near.tolist() == [True, False, False, False]  # the last is torn between both
    qpos = arm.get_qpos()
    assert (abs(qpos[:, 0] - qpos[:, 1]) < 0.01).tolist() == [False, False, True, False]


def test_a_reset_switches_as_the_file_says(scene: Any) -> None:
    (arm,) = scene.entities
    arm.get_equality("drag").set_active(False)
    for _ in range(STEPS):
        scene.step()
    fallen = arm.get_link("hand").get_pos()[0, 2].item()
    scene.reset()
    for _ in range(STEPS):
        scene.step()
    held = arm.get_link("hand").get_pos()[0, 2].item()
    assert held > 0.49 > 0.48 > fallen
