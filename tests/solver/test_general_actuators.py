"""Actuators that are no control laws, through the public API and over compiled steps, against MuJoCo."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import mujoco
import numpy as np
import pytest
import torch

ARM = """
<mujoco><option timestep=".004" integrator="{integrator}" density="50"/><worldbody>
  <body><joint name="a" axis="0 1 0" damping=".2"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".04"/>
    <body pos=".3 0 0"><joint name="b" axis="0 1 0" damping=".1" range="-2 2"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03" contype="0"/><site name="tip" pos=".3 0 0"/></body></body>
  </worldbody>
  <tendon><fixed name="t"><joint joint="a" coef="1"/><joint joint="b" coef="-.5"/></fixed></tendon>
  <actuator><motor name="plain" joint="a" ctrlrange="-1 1"/><motor tendon="t"/>
    <muscle joint="b" lengthrange="-1 1" force="3"/>
    <pid joint="b" kp="3" kv=".2" ki="1" input="pos vel"/><velocity joint="b" kv=".3"/>
    <motor site="tip" gear="0 0 1 0 0 0" ctrlrange="-2 2"/>
    <motor joint="a" delay=".014" nsample="4" interp="linear"/></actuator>
  <keyframe><key name="k" qpos=".1 .2" act=".4 .5" ctrl="1 2 .3 4 5 6 7 8"/></keyframe></mujoco>"""
PLAIN, TENDON, MUSCLE, POSITION, VELOCITY, SERVO, SITE, LATE = range(8)  # rows of ctrl


@pytest.fixture
def make(gs_cpu: ModuleType) -> Any:
    def build(n_envs: int, integrator: str = "implicitfast", copies: int = 1) -> tuple[Any, list[Any]]:
        scene = gs_cpu.Scene(show_FPS=False, sim_options=gs_cpu.options.SimOptions(dt=0.004))
        file = ARM.format(integrator=integrator)
        robots = [
            scene.add_entity(gs_cpu.morphs.MJCF(file=file, pos=(0, 3 * k, 0), use_file_options=True))
            for k in range(copies)
        ]
        scene.build(n_envs=n_envs)
        return scene, robots

    return build


def reference(ctrl: np.ndarray, act: np.ndarray, integrator: str) -> tuple[mujoco.MjModel, list[mujoco.MjData]]:
    model = mujoco.MjModel.from_xml_string(ARM.format(integrator=integrator))
    found = []
    for controls, activations in zip(ctrl, act, strict=True):
        data = mujoco.MjData(model)
        data.ctrl[:], data.act[:] = controls, activations
        found.append(data)
    return model, found


@pytest.mark.parametrize("integrator", ["implicitfast", "implicit", "RK4"])
def test_steps(make: Any, integrator: str) -> None:
    rng = np.random.default_rng(0)
    ctrl, act = rng.uniform(-2, 2, size=(3, 8)), rng.uniform(0, 1, size=(3, 2))
    scene, (robot,) = make(3, integrator)
    model, expected = reference(ctrl, act, integrator)
    assert scene.rigid_options.integrator.name == integrator
    robot.control_actuators(ctrl)
    robot.set_act(act)
    for _ in range(25):
        scene.step()
        for data in expected:
            mujoco.mj_step(model, data)
    for found, name in ((robot.get_qpos(), "qpos"), (robot.get_dofs_velocity(), "qvel"), (robot.get_act(), "act")):
        np.testing.assert_allclose(found, [getattr(data, name) for data in expected], rtol=1e-3, atol=1e-4)


def test_controls_by_index_and_environment(make: Any) -> None:
    scene, robots = make(2, copies=2)
    first, second = robots
    state = scene.rigid_solver._state
    assert (first.n_actuators, second.n_actuators) == (7, 7)
    second.control_actuators([0.5, 0.25], [POSITION, SITE])
    second.set_act(0.75, [1])
    second.control_actuators(3.0, [TENDON, PLAIN], envs_idx=1)
    first.control_actuators([[1.0], [2.0]], [MUSCLE])
    assert state.ctrl[:, 0].tolist() == [0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0.5, 0, 0, 0.25, 0]
    assert state.ctrl[:, 1].tolist() == [0, 0, 2, 0, 0, 0, 0, 0, 0, 3, 0, 0.5, 0, 0, 0.25, 0]
    assert state.act[:4, 0].tolist() == [0, 0, 0, 0.75]
    assert first.get_act().tolist() == [[0, 0], [0, 0]]
    assert second.get_dofs_control_force()[:, 0].tolist() == [0, 1]  # the plain motor, clamped to its ctrlrange


def test_forces_add_to_commands_of_dofs(make: Any) -> None:
    _, (robot,) = make(0)
    robot.control_dofs_force([0.1, 0.2])
    robot.control_actuators([1.0, 1.0], [TENDON, MUSCLE])  # no dof is held by them
    with pytest.raises(Exception, match="control_actuators cannot take"):
        robot.control_actuators(1.0, [PLAIN])


def test_reset_ends_controls_and_activations(make: Any) -> None:
    scene, (robot,) = make(2)
    robot.control_actuators(np.arange(8.0))
    robot.set_act([0.3, 0.4])
    scene.step()
    assert (robot.get_act() != 0).all()
    scene.reset(envs_idx=[1])
    assert robot.get_act()[1].tolist() == [0, 0]
    assert scene.rigid_solver._state.act[2:, 1].tolist() == [0, 0, 0, 0]  # past controls
    assert scene.rigid_solver._state.act[2:, 0].tolist() == [7, 0, 0, 0]
    assert (scene.rigid_solver._state.ctrl[:, 1] == 0).all()
    assert scene.rigid_solver._state.ctrl[:, 0].tolist() == [0, 1, 2, 3, 4, 0, 6, 7]  # the servos are control laws


def test_states_and_keyframes_hold_activations(make: Any) -> None:
    scene, (robot,) = make(2)
    robot.set_act(robot.get_keyframe("k", "act"))
    robot.control_actuators(robot.get_keyframe("k", "ctrl"))
    state, saved = scene.get_state(), scene.state_dict()
    scene.step()
    robot.set_act(0.0, envs_idx=0)
    scene.reset(state)
    torch.testing.assert_close(robot.get_act(), torch.tensor([[0.4, 0.5], [0.4, 0.5]]))
    scene.step()
    scene.load_state_dict(saved)
    torch.testing.assert_close(robot.get_act(1), torch.tensor([[0.5], [0.5]]))
    assert scene.rigid_solver._state.ctrl[TENDON, 0] == 2


def test_a_nan_control_freezes_the_activations_too(make: Any) -> None:
    scene, (robot,) = make(2)
    robot.set_act(0.5)
    scene.rigid_solver._state.ctrl[TENDON, 1] = float("nan")
    scene.step()
    assert scene.rigid_solver.get_error_envs_mask().tolist() == [False, True]
    assert robot.get_act()[1].tolist() == [0.5, 0.5]
    assert robot.get_act()[0, 0] != 0.5
