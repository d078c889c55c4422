"""Stand-ins for the compiled kernels, so that tests of indices, commands and names compile nothing."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import torch

from pluriverse import scene
from pluriverse.solver import rigid_solver

ARM_AND_BALL = """
<mujoco model="arm">
  <compiler angle="radian"/>
  <worldbody>
    <geom name="wall" type="plane" size="0 0 1" pos="0 0 -5"/>
    <body name="base" pos="0 0 1">
      <freejoint name="root"/>
      <geom name="trunk" type="sphere" size="0.1"/>
      <body name="upper" pos="0.1 0 0.2">
        <joint name="shoulder" axis="0 1 0" range="-1 1" limited="true" armature="0.01" damping="0.2" stiffness="3"/>
        <geom name="upper_tube" type="capsule" size="0.02" fromto="0 0 0 0 0 0.3"/>
        <geom name="upper_cap" type="sphere" size="0.03" pos="0 0 0.3"/>
        <body name="wrist" pos="0 0 0.3">
          <joint name="wrist" type="ball"/>
          <geom name="hand" type="sphere" size="0.03" pos="0.05 0 0"/>
          <body name="finger" pos="0 0 0.1">
            <joint name="finger" type="slide" axis="1 0 0"/>
            <joint name="tip" axis="0 0 1"/>
            <geom name="tip" type="sphere" size="0.01"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position name="servo" joint="shoulder" kp="50" kv="5" ctrlrange="-0.5 0.5" forcerange="-20 30"/>
    <motor name="push" joint="finger" gear="2" ctrlrange="-1 1" ctrllimited="true"/>
    <general name="pull" joint="finger" gainprm="3" biastype="affine" biasprm="0.5 -1 -0.1"/>
    <velocity name="spin" joint="tip" kv="4"/>
  </actuator>
</mujoco>
"""
"""A free base, two hinges, a ball and a slide with two actuators; a plane that belongs to the world."""


class StepDouble:
    """A step that moves everything by amounts that a test can tell."""

    launches: list[int]

    def __init__(self, model: Any, settings: Any, device: torch.device, dtype: torch.dtype) -> None:
        self.launches = []

    def launch(self, state: Any, n_steps: int) -> None:
        self.launches.append(n_steps)
        state.qpos += n_steps
        state.qvel += 2 * n_steps
        state.qacc.fill_(3.0)


class KinematicsDouble:
    """MuJoCo's own kinematics, environment by environment."""

    mj_model: mujoco.MjModel
    launches = 0

    def __init__(self, model: Any, device: torch.device, dtype: torch.dtype) -> None:
        pass

    def launch(self, state: Any, poses: torch.Tensor) -> None:
        type(self).launches += 1
        model, data = self.mj_model, mujoco.MjData(self.mj_model)
        velocity = np.zeros(6)
        for env in range(state.n_envs):
            data.qpos, data.qvel = state.qpos[:, env].cpu().numpy(), state.qvel[:, env].cpu().numpy()
            mocap = state.mocap[:, env].cpu().numpy().reshape(-1, 7)
            data.mocap_pos, data.mocap_quat = mocap[:, :3], mocap[:, 3:]
            mujoco.mj_kinematics(model, data)
            mujoco.mj_comPos(model, data)
            mujoco.mj_comVel(model, data)
            for body in range(model.nbody):
                mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, body, velocity, 0)
                row = np.concatenate((data.xpos[body], data.xquat[body], velocity))
                poses[body, :, env] = torch.from_numpy(row).to(poses.dtype)


def install(monkeypatch: Any) -> None:
    """Has scenes use the stand-ins for the rest of the test."""
    compile_scene = scene.compile_scene

    def compile_and_keep(*args: Any) -> Any:
        compiled = compile_scene(*args)
        KinematicsDouble.mj_model = compiled.mj_model
        return compiled

    KinematicsDouble.launches = 0
    monkeypatch.setattr(scene, "compile_scene", compile_and_keep)
    monkeypatch.setattr(rigid_solver, "StepKernel", StepDouble)
    monkeypatch.setattr(rigid_solver, "KinematicsKernel", KinematicsDouble)
