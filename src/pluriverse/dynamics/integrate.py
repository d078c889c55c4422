"""Semi-implicit integration of positions: q += v dt, on the rotation group for quaternions."""

from __future__ import annotations

from typing import Any

from pluriverse.trace.functions import cos, sin, sqrt

from .kinematics import unit_quaternion
from .spatial import dot, quaternion_product, scale
from .tree import BALL, FREE, Tree


def integrate_positions(tree: Tree, qpos: list[Any], qvel: list[Any], dt: float) -> dict[int, Any]:
    """qpos after dt at constant qvel, by row (MuJoCo's `mj_integratePos`)."""
    new: dict[int, Any] = {}
    for node in tree.nodes:
        for joint in node.joints:
            row, dof = joint.qpos[0], joint.dofs[0]
            if joint.type == FREE:
                for k in range(3):
                    new[row + k] = qpos[row + k] + qvel[dof + k] * dt
                row, dof = row + 3, dof + 3
            if joint.type in (FREE, BALL):
                turned = rotate_quaternion(qpos[row : row + 4], qvel[dof : dof + 3], dt)
                new.update({row + k: turned[k] for k in range(4)})
            else:
                new[row] = qpos[row] + qvel[dof] * dt
    return new


def rotate_quaternion(q: list[Any], angular: list[Any], dt: float) -> list[Any]:
    """q times the rotation by an angular velocity in body axes over dt, of unit length."""
    speed = sqrt(dot(angular, angular) + 1e-20)
    half = speed * (0.5 * dt)
    turn = [cos(half), *scale(angular, sin(half) / speed)]
    return unit_quaternion(quaternion_product(q, turn))
