"""Lengths and moment arms of actuators by what they drive (MuJoCo's `mj_transmission`)."""

from __future__ import annotations

from typing import Any

from pluriverse.control_laws import JOINT, JOINT_IN_PARENT, ORIENTATION, SITE, SLIDER_CRANK, TENDON
from pluriverse.model import Model
from pluriverse.trace.functions import maximum, select, sqrt

from .frames import Frame, apart, frame_jacobian, relative_jacobian, site_frame
from .kinematics import Pose
from .passive import rotation_vector
from .spatial import (
    MIN_LENGTH2,
    ZERO3,
    Vector,
    column,
    cross,
    dot,
    matmul,
    matrix_quaternion,
    matvec,
    negate,
    quaternion_matrix,
    scale,
    sub,
    transpose,
)  # fmt: skip
from .transmission import Transmission
from .tree import BALL, FREE, Node, Tree

NO_SITE = -1


def transmissions(
    tree: Tree, poses: dict[Node, Pose], qpos: list[Any], tendons: list[Transmission], actuator: int
) -> list[Transmission]:
    """What an actuator pulls on: one length and its moment arms for each of its force outputs."""
    model = tree.model
    kind, (target, second) = int(model.actuator_trntype[actuator]), model.actuator_trnid[actuator].tolist()
    gear = [float(x) for x in model.actuator_gear[model.actuator_outadr[actuator]]]
    if kind in (JOINT, JOINT_IN_PARENT):
        return [_joint(model, qpos, target, gear, in_parent=kind == JOINT_IN_PARENT)]
    if kind == TENDON:
        tendon = tendons[target]
        return [Transmission(tendon.length * gear[0], _scaled(tendon.moment, gear[0]))]
    if kind == ORIENTATION and second == NO_SITE:
        turn, first = rotation_vector(_quaternion(model, qpos, target)), int(model.jnt_dofadr[target])
        return [Transmission(turn[k], {first + k: 1.0}) for k in range(3)]
    site = site_frame(tree, poses, target)
    if kind == SITE and second == NO_SITE:
        return [_wrench(site, poses, gear)]
    reference = site_frame(tree, poses, second)
    if kind == SITE:
        return [_between(site, reference, poses, gear)]
    if kind == SLIDER_CRANK:
        return [_slider_crank(site, reference, poses, float(model.actuator_cranklength[actuator]), gear[0])]
    turn, J = _turn_between(site, reference), _own_jacobian(site, reference, poses)
    axes = [column(site.rotation, k) for k in range(3)]
    return [Transmission(turn[k], {d: dot(axes[k], S[:3]) for d, S in J.items()}) for k in range(3)]


def _joint(model: Model, qpos: list[Any], joint: int, gear: list[float], *, in_parent: bool) -> Transmission:
    """A hinge or slide is scaled, a ball joint's rotation vector projected, a free joint pushed by a wrench."""
    first, kind = int(model.jnt_dofadr[joint]), int(model.jnt_type[joint])
    if kind not in (FREE, BALL):
        return Transmission(qpos[int(model.jnt_qposadr[joint])] * gear[0], {first: gear[0]})
    quaternion = _quaternion(model, qpos, joint)

    def turned(axis: list[float]) -> Vector:
        return matvec(transpose(quaternion_matrix(quaternion)), axis) if in_parent else list(axis)

    if kind == FREE:
        return Transmission(0.0, _by_dof(first, [*gear[:3], *turned(gear[3:])]))
    axis = turned(gear[:3])
    return Transmission(dot(rotation_vector(quaternion), axis), _by_dof(first, axis))


def _quaternion(model: Model, qpos: list[Any], joint: int) -> list[Any]:
    first = int(model.jnt_qposadr[joint]) + (3 if model.jnt_type[joint] == FREE else 0)
    return qpos[first : first + 4]


def _by_dof(first: int, values: Vector) -> dict[int, Any]:
    return {first + k: x for k, x in enumerate(values)}


def _scaled(moment: dict[int, Any], factor: float) -> dict[int, Any]:
    return {dof: lever * factor for dof, lever in moment.items()}


def _wrench(site: Frame, poses: dict[Node, Pose], gear: list[float]) -> Transmission:
    """A force and a torque that are fixed to a site; it has no length."""
    force, torque = matvec(site.rotation, gear[:3]), matvec(site.rotation, gear[3:])
    J = frame_jacobian(site, poses)
    return Transmission(0.0, {d: dot(force, S[3:]) + dot(torque, S[:3]) for d, S in J.items()})


def _between(site: Frame, reference: Frame, poses: dict[Node, Pose], gear: list[float]) -> Transmission:
    """The pose of a site in a reference site's frame, projected on the gear; the frame's own turning is left out of
    the moment arms."""
    length: Any = 0.0
    if any(gear[:3]):
        length = dot(matvec(transpose(reference.rotation), apart(site, reference)), gear[:3])
    if any(gear[3:]):
        length = length + dot(_turn_between(site, reference), gear[3:])
    force, torque = matvec(reference.rotation, gear[:3]), matvec(reference.rotation, gear[3:])
    J = _own_jacobian(site, reference, poses)
    return Transmission(length, {d: dot(force, S[3:]) + dot(torque, S[:3]) for d, S in J.items()})


def _own_jacobian(site: Frame, reference: Frame, poses: dict[Node, Pose]) -> dict[int, Vector]:
    """The motion of a site less that of its reference site, by the dofs that move only one of them."""
    one, two = frame_jacobian(site, poses), frame_jacobian(reference, poses)
    return {d: S for d, S in one.items() if d not in two} | {d: negate(S) for d, S in two.items() if d not in one}


def _turn_between(site: Frame, reference: Frame) -> Vector:
    """The rotation vector from the reference site's axes to the site's."""
    return rotation_vector(matrix_quaternion(matmul(transpose(reference.rotation), site.rotation)))


def _slider_crank(crank: Frame, slider: Frame, poses: dict[Node, Pose], rod: float, gear: float) -> Transmission:
    """How far along its axis the slider's end of the rod lies from the slider, where the other end is at the crank."""
    axis, v = column(slider.rotation, 2), apart(crank, slider)
    along = dot(axis, v)
    across = sub(v, scale(axis, along))
    square = rod * rod - dot(across, across)
    reaches = square > 0.0
    root = sqrt(maximum(square, MIN_LENGTH2))
    length = select(reaches, along - root, along)
    share = 1.0 - along / root
    by_axis = [select(reaches, x * share, x) for x in v]
    by_v = [select(reaches, a * share + x / root, a) for a, x in zip(axis, v, strict=True)]
    J, turning = relative_jacobian(crank, slider, poses), frame_jacobian(slider, poses)
    moment = {
        d: dot(by_v, S[3:]) + dot(by_axis, cross(turning[d][:3], axis) if d in turning else ZERO3) for d, S in J.items()
    }
    return Transmission(length * gear, _scaled(moment, gear))
