"""Frames of bodies and sites, and how they move against each other, against MuJoCo in float64."""

from __future__ import annotations

from itertools import pairwise

import mujoco
import numpy as np
import pytest

from physics_reference import DOUBLE, Stage, error, stages
from pluriverse.dynamics.frames import Frame, Relation, body_frame, frame_motion, relation, site_frame
from pluriverse.dynamics.kinematics import bias_accelerations
from pluriverse.dynamics.spatial import add

WORLDS = ["sites", "mocap"]


def site_frames(stage: Stage) -> list[Frame]:
    tree, poses = stage.floats.tree, stage.smooth.poses
    return [site_frame(tree, poses, site) for site in range(stage.mj_model.nsite)]


@pytest.mark.parametrize("name", [*WORLDS, "connect", "four_bar"])
def test_where_bodies_are(name: str) -> None:
    for stage in stages(name):
        for body in range(stage.mj_model.nbody):
            frame = body_frame(stage.floats.tree, stage.smooth.poses, body)
            assert error(add(frame.base, frame.reach), stage.data.xpos[body]) <= DOUBLE
            assert error(frame.rotation, stage.data.xmat[body]) <= DOUBLE


@pytest.mark.parametrize("name", WORLDS)
def test_where_sites_are_and_how_they_move(name: str) -> None:
    for stage in stages(name):
        for site, frame in enumerate(site_frames(stage)):
            assert error(add(frame.base, frame.reach), stage.data.site_xpos[site]) <= DOUBLE
            assert error(frame.rotation, stage.data.site_xmat[site]) <= DOUBLE
            expected = np.zeros(6)
            mujoco.mj_objectVelocity(stage.mj_model, stage.data, mujoco.mjtObj.mjOBJ_SITE, site, expected, 0)
            assert error(frame_motion(frame, stage.smooth.poses, stage.smooth.velocities), expected) <= DOUBLE


def relations(stage: Stage) -> list[tuple[tuple[int, int], Relation]]:
    """Of sites that follow each other."""
    tree, smooth = stage.floats.tree, stage.smooth
    accelerations = bias_accelerations(tree, smooth.poses, stage.floats.qvel, [0.0, 0.0, 0.0])
    frames = site_frames(stage)
    return [
        (pair, relation(*(frames[site] for site in pair), smooth.poses, smooth.velocities, accelerations))
        for pair in pairwise(range(len(frames)))
    ]


def site_jacobian(mj_model: mujoco.MjModel, data: mujoco.MjData, pair: tuple[int, int]) -> np.ndarray:
    """(6, nv) angular and linear motion of the first site less that of the second."""
    J = np.zeros((2, 6, mj_model.nv))
    for k, site in enumerate(pair):
        mujoco.mj_jacSite(mj_model, data, J[k, 3:], J[k, :3], site)
    return J[0] - J[1]


@pytest.mark.parametrize("name", WORLDS)
def test_how_sites_move_against_each_other(name: str) -> None:
    for stage in stages(name):
        for pair, between in relations(stage):
            one, two = stage.data.site_xpos[list(pair)]
            assert error(between.apart, one - two) <= DOUBLE
            J = np.zeros((6, stage.mj_model.nv))
            for dof, motion in between.J.items():
                J[:, dof] = motion
            assert error(J, site_jacobian(stage.mj_model, stage.data, pair)) <= DOUBLE
            assert error(between.spin, J[:3] @ stage.floats.qvel) <= DOUBLE


@pytest.mark.parametrize("name", WORLDS)
def test_drift_is_how_the_jacobian_changes(name: str) -> None:
    """By central differences along qvel."""
    step = 1e-5
    for stage in stages(name):
        m, nearby = stage.mj_model, []
        for sign in (1, -1):
            data = mujoco.MjData(m)
            data.qpos[:], data.mocap_pos[:], data.mocap_quat[:] = (
                stage.data.qpos,
                stage.data.mocap_pos,
                stage.data.mocap_quat,
            )
            mujoco.mj_integratePos(m, data.qpos, stage.data.qvel, sign * step)
            mujoco.mj_kinematics(m, data)
            mujoco.mj_comPos(m, data)
            nearby.append(data)
        for pair, between in relations(stage):
            ahead, behind = (site_jacobian(m, data, pair) @ stage.floats.qvel for data in nearby)
            assert error(between.drift, (ahead - behind) / (2 * step)) <= 1e-6
