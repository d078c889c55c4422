"""Frames that bodies carry, such as sites: where they are, what moves them, and how two of them move against each other.

Two frames are compared without a detour over the world's origin, so that in float32 nothing is lost far from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .inertia import node_dofs
from .kinematics import Pose
from .spatial import ZERO3, ZERO6, Vector, add, cross, matmul, matvec, negate, shift_motion, sub
from .tree import FixedBody, Node, Tree, rotation


@dataclass(eq=False)
class Frame:
    """A frame that is fixed to a body; in world axes."""

    node: Node | None  # the moving body; None: a fixed one
    base: Vector  # world position that `reach` counts from: that of the body's tree
    reach: Vector  # origin, from `base`
    rotation: Vector  # axes (9)

    def moved(self, position: Vector, axes: Vector) -> Frame:
        """The frame at `position` in this one, with these axes in this one (9)."""
        reach = add(self.reach, matvec(self.rotation, position))
        return Frame(self.node, self.base, reach, matmul(self.rotation, axes))


def body_frame(tree: Tree, poses: dict[Node, Pose], body: int) -> Frame:
    """The frame of a body, moving or not."""
    carrier, (position, axes) = tree.carrier_of(body), tree.body_frame(body)
    if isinstance(carrier, FixedBody):
        return Frame(None, carrier.position, ZERO3, carrier.rotation).moved(position, axes)
    pose = poses[carrier]
    return Frame(carrier, pose.base, add(pose.reach, pose.origin), pose.rotation).moved(position, axes)


def site_frame(tree: Tree, poses: dict[Node, Pose], site: int) -> Frame:
    """The frame of a site."""
    model = tree.model
    axes = rotation(model.site_quat[site])
    frame = body_frame(tree, poses, int(model.site_bodyid[site]))
    return frame.moved(tree.constants([model.site_pos[site]]), tree.constants([axes]))


def apart(one: Frame, two: Frame) -> Vector:
    """From the origin of `two` to that of `one`."""
    return add(sub(one.base, two.base), sub(one.reach, two.reach))


@dataclass(frozen=True, eq=False)
class Relation:
    """How frame `one` stands and moves against frame `two`. Motions are [angular, linear] about the frame's origin."""

    one: Frame
    two: Frame
    apart: Vector  # from the origin of `two` to that of `one`
    J: dict[int, Vector]  # motion of `one` less that of `two` by unit velocity of each dof that moves either
    drift: Vector  # d/dt J times qvel
    turning: Vector  # angular velocity of `two`
    spin: Vector  # angular velocity of `one` less that of `two`


def relation(
    one: Frame,
    two: Frame,
    poses: dict[Node, Pose],
    velocities: dict[Node, Vector],
    accelerations: dict[Node, Vector],
) -> Relation:
    """Velocities and bias accelerations (without gravity) are those of the bodies."""
    own, other = (frame_motion(frame, poses, velocities) for frame in (one, two))
    drifts = []
    for frame, v in ((one, own), (two, other)):
        a = frame_motion(frame, poses, accelerations)
        drifts.append(add(a, [*ZERO3, *cross(v[:3], v[3:])]))  # the origin is a point of the body, not of space
    J = relative_jacobian(one, two, poses)
    return Relation(one, two, apart(one, two), J, sub(*drifts), other[:3], sub(own[:3], other[:3]))


def frame_motion(frame: Frame, poses: dict[Node, Pose], motions: dict[Node, Vector]) -> Vector:
    """The motion of a frame's body about the frame's origin, from the motions of all bodies."""
    if frame.node is None:
        return list(ZERO6)
    return shift_motion(motions[frame.node], sub(frame.reach, poses[frame.node].reach))


def relative_jacobian(one: Frame, two: Frame, poses: dict[Node, Pose]) -> dict[int, Vector]:
    """The J of `Relation`."""
    own, other = dict(_carrying_dofs(one, poses)), dict(_carrying_dofs(two, poses))
    J: dict[int, Vector] = {}
    for dof in sorted(own.keys() | other.keys()):
        if dof in own and dof in other:  # moves both as one body
            _, S = own[dof]
            J[dof] = [*ZERO3, *cross(S[:3], apart(one, two))]
        elif dof in own:
            node, S = own[dof]
            J[dof] = shift_motion(S, sub(one.reach, poses[node].reach))
        else:
            node, S = other[dof]
            J[dof] = negate(shift_motion(S, sub(two.reach, poses[node].reach)))
    return J


def _carrying_dofs(frame: Frame, poses: dict[Node, Pose]) -> Iterator[tuple[int, tuple[Node, Vector]]]:
    """The dofs that move a frame, each with its body and column."""
    node = frame.node
    while node is not None:
        for dof, S in zip(node_dofs(node), poses[node].columns, strict=True):
            yield dof, (node, S)
        node = node.parent
