"""Semi-implicit integration of positions: q += v dt, on the rotation group for quaternions."""

from __future__ import annotations

import math
from typing import Any

from pluriverse.trace.functions import absolute, cos, floor, maximum, select, sin, sqrt

from .kinematics import unit_quaternion
from .spatial import add, cross, dot, quaternion_product, scale
from .tree import BALL, FREE, Tree


def integrate_positions(tree: Tree, qpos: list[Any], qvel: list[Any], dt: Any) -> dict[int, Any]:
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


def rotate_quaternion(q: list[Any], angular: list[Any], dt: Any) -> list[Any]:
    """q times the rotation by an angular velocity in body axes over dt, of unit length."""
    speed = sqrt(dot(angular, angular) + 1e-20)
    half = speed * (0.5 * dt)
    turn = [cos(half), *scale(angular, sin(half) / speed)]
    return unit_quaternion(quaternion_product(q, turn))


def turning_rates(tree: Tree, qvel: list[Any], turned: list[Any], duration: Any) -> dict[int, Any]:
    """qvel by dof, the angular velocities of ball and free joints as rates of the rotation vectors along which they
    have turned: at constant rates `turned` for `duration`."""
    rates: dict[int, Any] = {}
    for node in tree.nodes:
        for joint in node.joints:
            dofs = [joint.dofs[0] + k for k in range(joint.width)]
            rates.update({d: qvel[d] for d in dofs})
            if joint.type in (FREE, BALL):
                vector = [turned[d] * duration for d in dofs[-3:]]
                rates.update(zip(dofs[-3:], rotation_vector_rate(vector, [qvel[d] for d in dofs[-3:]]), strict=True))
    return rates


def rotation_vector_rate(vector: list[Any], angular: list[Any]) -> list[Any]:
    """d vector / dt, for a frame that is turned by a rotation vector and turns with an angular velocity in its own
    axes (Bortz 1971)."""
    angle = sqrt(dot(vector, vector) + 1e-20)
    short = angle - floor(angle * (0.5 / math.pi) + 0.5) * (2.0 * math.pi)  # the same rotation, at most half a turn
    vector = scale(vector, short / angle)
    half, sine = short * 0.5, sin(short * 0.5)
    c = (1.0 - half * cos(half) / select(absolute(sine) > 0.0, sine, 1.0)) / maximum(short * short, 1e-12)
    turned = cross(vector, angular)
    return add(add(angular, scale(turned, 0.5)), scale(cross(vector, turned), c))
