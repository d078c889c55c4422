"""Passive joint forces: springs and dampers."""

from __future__ import annotations

from typing import Any

from pluriverse.trace.functions import atan2, maximum, select, sqrt

from .spatial import dot, negate, quaternion_product, scale
from .tree import BALL, FREE, Joint, Tree

TINY = 1e-15  # length below which a rotation is none


def passive_forces(tree: Tree, qpos: list[Any], qvel: list[Any], *, springs: bool, dampers: bool) -> dict[int, Any]:
    """Spring and damper forces by dof: -stiffness (q - spring rest) - damping v, as MuJoCo's `mj_passive`."""
    forces: dict[int, Any] = {}
    for node in tree.nodes:
        for joint in node.joints:
            pulls = spring_forces(tree, joint, qpos) if springs else [0.0] * joint.width
            for k in range(joint.width):
                damping = tree.constant(tree.model.dof_damping, joint.dof(k)) if dampers else 0.0
                forces[joint.dofs[0] + k] = pulls[k] - qvel[joint.dofs[0] + k] * damping
    return forces


def spring_forces(tree: Tree, joint: Joint, qpos: list[Any]) -> list[Any]:
    """-stiffness times the displacement from qpos_spring; for rotations the displacement is a rotation vector in body
    axes."""
    model, row = tree.model, joint.qpos[0]
    stiffness = tree.constant(model.jnt_stiffness, joint.ids)
    if not any(model.jnt_stiffness[j] for j in joint.ids):
        return [0.0] * joint.width
    rest = [tree.constant(model.qpos_spring, tuple(q + k for q in joint.qpos)) for k in range(joint.qpos_width)]
    if joint.type == FREE:
        stretch = [qpos[row + k] - rest[k] for k in range(3)] + rotation_between(rest[3:], qpos[row + 3 : row + 7])
    elif joint.type == BALL:
        stretch = rotation_between(rest, qpos[row : row + 4])
    else:
        stretch = [qpos[row] - rest[0]]
    return [-(stiffness * x) for x in stretch]


def rotation_between(start: list[Any], end: list[Any]) -> list[Any]:
    """The rotation vector, in the axes of `end`, from one orientation to another (MuJoCo's `mju_subQuat`)."""
    conjugate = [start[0], *negate(start[1:])]
    return rotation_vector(quaternion_product(conjugate, end))


def rotation_vector(q: list[Any]) -> list[Any]:
    """Axis times angle in (-pi, pi] of a quaternion."""
    sine = sqrt(dot(q[1:], q[1:]) + TINY * TINY)
    half = atan2(sine, q[0])
    angle = select(half > 1.5707963267948966, 2.0 * half - 6.283185307179586, 2.0 * half)
    return scale(q[1:], angle / maximum(sine, TINY))
