"""The implicit step of a lone free body, gyroscopic forces included (MuJoCo 4 does so in implicitfast).

In body axes about the frame origin, with centre of mass c and inertia I about the origin, the bias force of a body
that turns with w is m w x (w x c) on the translations and w x (I w) on the rotations. Its derivative B by w is taken
into the step: (M + dt (D + B)) a' = M a. A body with others hanging on it is left without B, as in MuJoCo.
"""

from __future__ import annotations

from typing import Any

from pluriverse.trace.functions import reciprocal

from .kinematics import Pose
from .spatial import (
    IDENTITY,
    Vector,
    add,
    column,
    cross,
    dot,
    matmul,
    matvec,
    rigid_inertia,
    scale,
    skew,
    sub,
    symmetric_matrix,
    transpose,
)  # fmt: skip
from .tree import FREE, Node, Tree


def lone_free_bodies(tree: Tree) -> list[Node]:
    """Free bodies on which nothing else moves."""
    return [node for node in tree.nodes if node.joints[0].type == FREE and not node.children]


def implicit_free_acceleration(
    node: Node, pose: Pose, qacc: Vector, angular: Vector, rotor: Any, damping: Any, dt: float
) -> Vector:
    """a' of a lone free body, by dof.

    qacc: (6,) its acceleration; angular: (3,) its angular velocity in body axes; rotor, damping: armature of its dofs,
    and dt times their damping, the same for all six.
    """
    m, c, w = node.mass, node.centre, angular
    inertia = symmetric_matrix(rigid_inertia(m, c, node.moments)[:6])
    linear, turning = matvec(transpose(pose.rotation), qacc[:3]), qacc[3:]

    push = add(scale(linear, m + rotor), scale(cross(turning, c), m))
    torque = add(add(matvec(inertia, turning), scale(turning, rotor)), scale(cross(c, linear), m))

    spin = matvec(inertia, w)
    B_linear = [m * (dot(w, c) * float(i == j) + w[i] * c[j] - 2.0 * c[i] * w[j]) for i in range(3) for j in range(3)]
    B_angular = sub(matmul(skew(w), inertia), skew(spin))
    coupling = add(scale(skew(c), -1.0 * m), scale(B_linear, dt))  # translations' force by a'_angular
    system = add(add(inertia, scale(IDENTITY, rotor + damping)), scale(B_angular, dt))

    # Eliminate the translations, whose own block is a number, and solve the remaining 3x3.
    share = reciprocal(m + rotor + damping)
    lever = scale(skew(c), m * share)
    angular_part = solve3(sub(system, matmul(lever, coupling)), sub(torque, matvec(lever, push)))
    linear_part = scale(sub(push, matvec(coupling, angular_part)), share)
    return matvec(pose.rotation, linear_part) + angular_part


def solve3(A: Vector, b: Vector) -> Vector:
    """x of A x = b for a 3x3 A, by Cramer's rule."""
    columns = [column(A, j) for j in range(3)]
    inverse = reciprocal(dot(columns[0], cross(columns[1], columns[2])))
    return [dot(b, cross(columns[(j + 1) % 3], columns[(j + 2) % 3])) * inverse for j in range(3)]
