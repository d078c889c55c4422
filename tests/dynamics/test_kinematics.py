"""Places and velocities of bodies against MuJoCo in float64."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from physics_models import names
from physics_reference import DOUBLE, error, stages
from pluriverse.dynamics.kinematics import body_motions, forward_kinematics
from pluriverse.dynamics.spatial import add, shift_motion


@pytest.mark.parametrize("name", names("small") + names("robots"))
def test_frames_of_moving_bodies(name: str) -> None:
    for stage in stages(name):
        for node, pose in stage.smooth.poses.items():
            body = node.bodies[0]
            assert error(pose.rotation, stage.data.xmat[body]) <= DOUBLE
            assert error(add(pose.world, pose.origin), stage.data.xpos[body]) <= DOUBLE


@pytest.mark.parametrize("name", names("small") + names("robots"))
def test_velocities_of_moving_bodies(name: str) -> None:
    for stage in stages(name):
        for node, velocity in stage.smooth.velocities.items():
            expected = np.zeros(6)
            kind = mujoco.mjtObj.mjOBJ_XBODY
            mujoco.mj_objectVelocity(stage.mj_model, stage.data, kind, node.bodies[0], expected, 0)
            assert error(shift_motion(velocity, stage.smooth.poses[node].origin), expected) <= DOUBLE


def test_body_motions_are_the_jacobian() -> None:
    for stage in stages("joints"):
        rng = np.random.default_rng(0)
        values = rng.normal(size=stage.mj_model.nv)
        motions = body_motions(stage.floats.tree, stage.smooth.poses, values.tolist())
        for node, motion in motions.items():
            linear, angular = np.zeros((2, 3, stage.mj_model.nv))
            mujoco.mj_jacBody(stage.mj_model, stage.data, linear, angular, node.bodies[0])
            there = shift_motion(motion, stage.smooth.poses[node].origin)
            assert error(there, [*(angular @ values), *(linear @ values)]) <= DOUBLE


@pytest.mark.parametrize("scale", [0.1, 3.0])
def test_quaternions_need_no_unit_length(scale: float) -> None:
    stage = stages("joints")[0]
    qpos = list(stage.floats.qpos)
    for joint in np.flatnonzero(stage.mj_model.jnt_type <= 1):  # free and ball
        first = stage.mj_model.jnt_qposadr[joint] + (3 if stage.mj_model.jnt_type[joint] == 0 else 0)
        qpos[first : first + 4] = [scale * x for x in qpos[first : first + 4]]
    for node, pose in forward_kinematics(stage.floats.tree, qpos).items():
        assert error(pose.rotation, stage.smooth.poses[node].rotation) <= DOUBLE
        assert error(pose.world, stage.smooth.poses[node].world) <= DOUBLE
