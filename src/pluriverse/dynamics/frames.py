"""Frames that bodies carry, such as sites: where they are, what moves them, and how two of them move apart.

Two frames are compared without a detour over the world's origin, so that in float32 nothing is lost far from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .inertia import node_dofs
from .kinematics import Pose
from .spatial import ZERO3, ZERO6, Vector, add, cross, dot, matmul, matvec, negate, shift_motion, sub, transpose
from .tree import FixedBody, Node, Tree, rotation


@dataclass(eq=False)
class Frame:
    """A frame that is fixed to a body; in world axes."""

    node: Node | None  # the moving body; None: a fixed one
    base: Vector  # world position that `place` counts from: that of the body's tree
    place: Vector  # the body's reference point, of a fixed body the frame's origin, from `base`
    arm: Vector  # the frame's origin, from there
    rotation: Vector  # axes (9)

    @property
    def reach(self) -> Vector:
        """The frame's origin, from `base`."""
        return add(self.place, self.arm)

    def arm_from(self, pose: Pose) -> Vector:
        """The frame's origin, from the reference point of a body that carries it."""
        return add(sub(self.place, pose.reach), self.arm)

    def moved(self, position: Vector, axes: Vector) -> Frame:
        """The frame at `position` in this one, with these axes in this one (9)."""
        step, rotation = matvec(self.rotation, position), matmul(self.rotation, axes)
        if self.node is None:
            return Frame(None, self.base, add(self.place, step), ZERO3, rotation)
        return Frame(self.node, self.base, self.place, add(self.arm, step), rotation)


def body_frame(tree: Tree, poses: dict[Node, Pose], body: int) -> Frame:
    """The frame of a body, moving or not."""
    return _carrier_frame(tree, poses, body).moved(*tree.body_frame(body))


def site_frame(tree: Tree, poses: dict[Node, Pose], site: int) -> Frame:
    """The frame of a site."""
    position, axes = _site_place(tree, site)
    carrier = _carrier_frame(tree, poses, int(tree.model.site_bodyid[site]))
    return carrier.moved(tree.constants([position]), tree.constants([axes]))


def geom_frame(tree: Tree, poses: dict[Node, Pose], geom: int) -> Frame:
    """The frame of a geom."""
    return _carrier_frame(tree, poses, int(tree.model.geom_bodyid[geom])).moved(*tree.geom_frame((geom,)))


def site_in_geom(tree: Tree, poses: dict[Node, Pose], site: int, geom: int) -> Vector:
    """Position of a site in the frame of a geom: constants, where one body carries both."""
    model = tree.model
    one, two = (int(model.body_weldid[body]) for body in (model.site_bodyid[site], model.geom_bodyid[geom]))
    if one == two:
        origin, axes = tree.merged[two].geoms[geom]
        return tree.constants([axes.T @ (_site_place(tree, site)[0] - origin)])
    frame = geom_frame(tree, poses, geom)
    return matvec(transpose(frame.rotation), apart(site_frame(tree, poses, site), frame))


def _site_place(tree: Tree, site: int) -> tuple[np.ndarray, np.ndarray]:
    """Position and rotation (3, 3) of a site in the frame of its carrier."""
    model = tree.model
    body = int(model.site_bodyid[site])
    position, axes = tree.merged[int(model.body_weldid[body])].bodies[body]
    return position + axes @ model.site_pos[site], axes @ rotation(model.site_quat[site])


def _carrier_frame(tree: Tree, poses: dict[Node, Pose], body: int) -> Frame:
    """The frame of what a body is fixed to."""
    carrier = tree.carrier_of(body)
    if isinstance(carrier, FixedBody):
        return Frame(None, carrier.position, ZERO3, ZERO3, carrier.rotation)
    pose = poses[carrier]
    return Frame(carrier, pose.base, pose.reach, pose.origin, pose.rotation)


def apart(one: Frame, two: Frame) -> Vector:
    """From the origin of `two` to that of `one`."""
    return add(add(sub(one.base, two.base), sub(one.place, two.place)), sub(one.arm, two.arm))


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
    return shift_motion(motions[frame.node], frame.arm)


def frame_jacobian(frame: Frame, poses: dict[Node, Pose]) -> dict[int, Vector]:
    """The motion of a frame's body about the frame's origin by unit velocity of each dof that moves it."""
    return {dof: shift_motion(S, frame.arm_from(poses[node])) for dof, (node, S) in _carrying_dofs(frame, poses)}


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
            J[dof] = shift_motion(S, one.arm_from(poses[node]))
        else:
            node, S = other[dof]
            J[dof] = negate(shift_motion(S, two.arm_from(poses[node])))
    return J


def pull(one: Frame, two: Frame, direction: Vector, poses: dict[Node, Pose]) -> dict[int, Any]:
    """How fast the origin of `one` leaves that of `two` by unit velocity of each dof, in the direction of the line
    through both: dofs that move both as one body do not count."""
    own, other = dict(_carrying_dofs(one, poses)), dict(_carrying_dofs(two, poses))
    rates: dict[int, Any] = {}
    for dof in sorted(own.keys() ^ other.keys()):
        frame, (node, S) = (one, own[dof]) if dof in own else (two, other[dof])
        rate = dot(S[:3], cross(frame.arm_from(poses[node]), direction)) + dot(S[3:], direction)
        rates[dof] = rate if dof in own else -rate
    return rates


def _carrying_dofs(frame: Frame, poses: dict[Node, Pose]) -> Iterator[tuple[int, tuple[Node, Vector]]]:
    """The dofs that move a frame, each with its body and column."""
    node = frame.node
    while node is not None:
        for dof, S in zip(node_dofs(node), poses[node].columns, strict=True):
            yield dof, (node, S)
        node = node.parent
