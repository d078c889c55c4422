"""Passive forces: springs and dampers of joints and tendons.

Both may grow with the displacement or velocity x: the force is -x (c0 + c1 x + c2 x^2), of dampers with |x| in the
bracket; c0 is MuJoCo's `stiffness` or `damping`, the rest `stiffnesspoly` or `dampingpoly`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pluriverse.trace.functions import absolute, atan2, maximum, minimum, select, sqrt

from .spatial import dot, negate, quaternion_product, scale
from .transmission import Damping, Transmission, add_damping
from .tree import BALL, FREE, Joint, Tree

TINY = 1e-15  # length below which a rotation is none


def passive_forces(
    tree: Tree, qpos: list[Any], qvel: list[Any], tendons: Sequence[Transmission], *, springs: bool, dampers: bool
) -> dict[int, Any]:
    """Spring and damper forces by dof (MuJoCo's `mj_passive`)."""
    forces: dict[int, Any] = {}
    for node in tree.nodes:
        for joint in node.joints:
            pulls = spring_forces(tree, joint, qpos) if springs else [0.0] * joint.width
            for k in range(joint.width):
                v = qvel[joint.dofs[0] + k]
                drag = v * _polynomial(_dof_damping(tree, joint.dof(k)), absolute(v)) if dampers else 0.0
                forces[joint.dofs[0] + k] = pulls[k] - drag
    for t, tendon in enumerate(tendons):
        pull = _tendon_spring(tree, t, tendon.length) if springs else 0.0
        if dampers:
            v = tendon.velocity(qvel)
            pull = pull - v * _polynomial(_tendon_damping(tree, t), absolute(v))
        for dof, lever in tendon.moment.items():
            forces[dof] = forces[dof] + lever * pull
    return forces


def add_joint_damping(tree: Tree, qvel: list[Any], damping: Damping) -> None:
    """Adds -d force / d velocity of the joints' dampers."""
    for node in tree.nodes:
        for joint in node.joints:
            for k in range(joint.width):
                dof = joint.dofs[0] + k
                add_damping(damping, dof, dof, _slope(_dof_damping(tree, joint.dof(k)), absolute(qvel[dof])))


def add_tendon_damping(tree: Tree, qvel: list[Any], tendons: Sequence[Transmission], damping: Damping) -> None:
    """Adds -d force / d velocity of the tendons' dampers."""
    for t, tendon in enumerate(tendons):
        tendon.damp(damping, _slope(_tendon_damping(tree, t), absolute(tendon.velocity(qvel))))


def spring_forces(tree: Tree, joint: Joint, qpos: list[Any]) -> list[Any]:
    """The forces of a joint's spring, whose displacement counts from qpos_spring; for rotations it is a rotation vector
    in body axes. Those of three dofs grow with the displacement's length."""
    model, row = tree.model, joint.qpos[0]
    stiffness = _coefficients(tree, model.jnt_stiffness, model.jnt_stiffnesspoly, joint.ids)
    if not any(model.jnt_stiffness[j] or model.jnt_stiffnesspoly[j].any() for j in joint.ids):
        return [0.0] * joint.width
    rest = [tree.constant(model.qpos_spring, tuple(q + k for q in joint.qpos)) for k in range(joint.qpos_width)]
    if joint.type == FREE:
        parts = [
            [qpos[row + k] - rest[k] for k in range(3)],
            rotation_between(rest[3:], qpos[row + 3 : row + 7]),
        ]
    elif joint.type == BALL:
        parts = [rotation_between(rest, qpos[row : row + 4])]
    else:
        parts = [[qpos[row] - rest[0]]]
    return [-(x * _polynomial(stiffness, _size(part))) for part in parts for x in part]


def _tendon_spring(tree: Tree, tendon: int, length: Any) -> Any:
    """The force of a tendon's spring, which is slack between two lengths."""
    model = tree.model
    lower, upper = (float(x) for x in model.tendon_lengthspring[tendon])
    x = maximum(length - upper, 0.0) + minimum(length - lower, 0.0)
    return -(x * _polynomial(_coefficients(tree, model.tendon_stiffness, model.tendon_stiffnesspoly, (tendon,)), x))


def _size(displacement: list[Any]) -> Any:
    """The displacement of one dof, the length of that of three."""
    if len(displacement) == 1:
        return displacement[0]
    return sqrt(dot(displacement, displacement) + TINY * TINY)


def _dof_damping(tree: Tree, dofs: tuple[int, ...]) -> list[Any]:
    return _coefficients(tree, tree.model.dof_damping, tree.model.dof_dampingpoly, dofs)


def _tendon_damping(tree: Tree, tendon: int) -> list[Any]:
    return _coefficients(tree, tree.model.tendon_damping, tree.model.tendon_dampingpoly, (tendon,))


def _coefficients(tree: Tree, constant: np.ndarray, further: np.ndarray, ids: tuple[int, ...]) -> list[Any]:
    """c0, c1, ... of a spring or damper."""
    return [tree.constant(column, ids) for column in (constant, *further.T)]


def _polynomial(coefficients: list[Any], x: Any) -> Any:
    """c0 + c1 x + c2 x^2 ..."""
    value: Any = 0.0
    for c in reversed(coefficients):
        value = value * x + c
    return value


def _slope(coefficients: list[Any], x: Any) -> Any:
    """The derivative of x (c0 + c1 x + c2 x^2 ...)."""
    return _polynomial([(k + 1.0) * c for k, c in enumerate(coefficients)], x)


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
