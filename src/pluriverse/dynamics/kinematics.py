"""Where the bodies are and how they move: frames, joint columns, velocities.

Every body has a reference point of its own, the anchor of its first joint (for a free joint the frame origin), and
all its spatial quantities are about that point, in world axes. A hinge then moves its body by (axis, 0), which is
cheap and exact; about one common origin, float32 loses a digit. Names of spatial quantities as in Featherstone
(2008).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pluriverse.trace.functions import cos, maximum, rsqrt, select, sin

from .spatial import (
    MIN_LENGTH2,
    ZERO3,
    ZERO6,
    Vector,
    add,
    axis_angle_matrix,
    column,
    cross,
    cross_motion,
    dot,
    matmul,
    matvec,
    quaternion_matrix,
    scale,
    shift_motion,
    sub,
)  # fmt: skip
from .tree import BALL, FREE, HINGE, Joint, Node, Tree


@dataclass(eq=False)
class Pose:
    """A body's place. `step` leads from the parent's reference point to this body's, `reach` from the root's frame of
    reference."""

    rotation: Vector  # body axes in world axes (9)
    origin: Vector  # of the body frame, from the reference point
    step: Vector  # reference point, from the parent's (roots: from `base`)
    reach: Vector  # reference point, from `base`
    # world position that the tree's distances are counted from: a free root's own position, else that of its carrier
    base: Vector
    columns: list[Vector]  # joint columns S, one per dof: motion per unit joint velocity

    def point(self, local: Vector) -> Vector:
        """A point of the body frame, from the reference point."""
        return add(self.origin, matvec(self.rotation, local))

    @property
    def world(self) -> Vector:
        """World position of the reference point."""
        return add(self.base, self.reach)


def forward_kinematics(tree: Tree, qpos: list[Any]) -> dict[Node, Pose]:
    """The pose of every moving body at qpos (indexed by row)."""
    poses: dict[Node, Pose] = {}
    for node in tree.nodes:
        poses[node] = _place(tree, node, poses[node.parent] if node.parent else None, qpos)
    return poses


def _place(tree: Tree, node: Node, parent: Pose | None, qpos: list[Any]) -> Pose:
    first = node.joints[0]
    if first.type == FREE:
        rows = first.qpos[0]
        rotation = quaternion_matrix(qpos[rows + 3 : rows + 7])
        columns: list[Vector] = [[0.0] * 3 + [float(i == k) for i in range(3)] for k in range(3)]
        columns += [column(rotation, k) + ZERO3 for k in range(3)]
        return Pose(rotation, ZERO3, ZERO3, ZERO3, list(qpos[rows : rows + 3]), columns)

    if parent is None:
        carrier = tree.fixed[node.carrier]
        rotation, base = matmul(carrier.rotation, node.rotation), carrier.position
        offset = matvec(carrier.rotation, node.position)
    else:
        rotation, offset, base = matmul(parent.rotation, node.rotation), parent.point(node.position), parent.base
    anchor = matvec(rotation, first.anchor)
    step = add(offset, anchor)  # at the first joint's anchor before the joints move
    origin = scale(anchor, -1.0)
    columns = []
    for joint in node.joints:
        rotation, origin = _move(tree, joint, rotation, origin, columns, qpos)
    reach = add(parent.reach, step) if parent else step
    return Pose(rotation, origin, step, reach, base, columns)


def _move(
    tree: Tree, joint: Joint, rotation: Vector, origin: Vector, columns: list[Vector], qpos: list[Any]
) -> tuple[Vector, Vector]:
    """Moves the body frame by one joint and appends the joint's columns."""
    if joint.type == BALL:
        anchor = add(origin, matvec(rotation, joint.anchor))
        rows = joint.qpos[0]
        rotation = matmul(rotation, quaternion_matrix(qpos[rows : rows + 4]))
        columns += [about(column(rotation, k), anchor) for k in range(3)]
        return rotation, sub(anchor, matvec(rotation, joint.anchor))

    axis = matvec(rotation, joint.axis)
    travel = qpos[joint.qpos[0]] - tree.constant(tree.model.qpos0, joint.qpos)
    if joint.type == HINGE:
        anchor = add(origin, matvec(rotation, joint.anchor))
        columns.append(about(axis, anchor))
        rotation = matmul(rotation, axis_angle_matrix(joint.axis, cos(travel), sin(travel)))
        return rotation, sub(anchor, matvec(rotation, joint.anchor))
    columns.append(ZERO3 + axis)
    return rotation, add(origin, scale(axis, travel))


def about(axis: Vector, anchor: Vector) -> Vector:
    """The motion of a rotation about an axis through a point."""
    return list(axis) + cross(anchor, axis)


def unit_quaternion(q: list[Any]) -> list[Any]:
    """q of unit length; (1, 0, 0, 0) if it has none, as in MuJoCo."""
    length2 = dot(q, q)
    unit = scale(q, rsqrt(maximum(length2, MIN_LENGTH2)))
    return [select(length2 > MIN_LENGTH2, x, float(k == 0)) for k, x in enumerate(unit)]


def joint_velocities(node: Node, values: list[Any]) -> list[Any]:
    """The values (by dof) of a node's dofs, in the order of its columns."""
    return [values[joint.dofs[0] + k] for joint in node.joints for k in range(joint.width)]


def body_motions(tree: Tree, poses: dict[Node, Pose], values: list[Any]) -> dict[Node, Vector]:
    """J times `values` (by dof): each body's velocity, or what joint accelerations add to its acceleration."""
    motions: dict[Node, Vector] = {}
    for node in tree.nodes:
        motion = shift_motion(motions[node.parent], poses[node].step) if node.parent else list(ZERO6)
        for S, value in zip(poses[node].columns, joint_velocities(node, values), strict=True):
            motion = add(motion, scale(S, value))
        motions[node] = motion
    return motions


def bias_accelerations(tree: Tree, poses: dict[Node, Pose], qvel: list[Any], gravity: Vector) -> dict[Node, Vector]:
    """Each body's acceleration at zero joint acceleration, in a frame that accelerates upwards with -gravity (so that
    weight is inertia): the sum of (d/dt S) qvel over the joints below. RNE's forward pass, Featherstone table 5.1."""
    velocities: dict[Node, Vector] = {}
    accelerations: dict[Node, Vector] = {}
    for node in tree.nodes:
        pose = poses[node]
        if node.parent:
            v, a = (shift_motion(x[node.parent], pose.step) for x in (velocities, accelerations))
        else:
            v, a = list(ZERO6), ZERO3 + scale(gravity, -1.0)
        k = 0
        for joint in node.joints:
            rates = [qvel[joint.dofs[0] + i] for i in range(joint.width)]
            S = pose.columns[k : k + joint.width]
            k += joint.width
            if joint.type == FREE:  # translations first: their columns do not turn
                v = add(v, ZERO3 + rates[:3])
                S, rates = S[3:], rates[3:]
            for column_, rate in zip(S, rates, strict=True):  # all columns of a joint turn with the motion before it
                a = add(a, scale(cross_motion(v, column_), rate))
            for column_, rate in zip(S, rates, strict=True):
                v = add(v, scale(column_, rate))
        velocities[node], accelerations[node] = v, a
    return accelerations
