"""Rows of equality constraints: bodies or sites that are connected or welded, joints or tendons that follow others.

Their reference acceleration is `-b v - k d r`, less what the rows' own turning adds: connect and weld rows of MuJoCo 4
subtract (d/dt J) qvel. Every constraint can be switched off in each environment: its weight is then 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pluriverse.dynamics.frames import Frame, Relation, body_frame, relation, site_frame
from pluriverse.dynamics.kinematics import Pose, bias_accelerations
from pluriverse.dynamics.spatial import (
    IDENTITY,
    ZERO3,
    Vector,
    add,
    cross,
    dot,
    matmul,
    matrix_quaternion,
    matvec,
    row,
    scale,
    skew,
    sub,
    transpose,
)  # fmt: skip
from pluriverse.dynamics.transmission import Transmission
from pluriverse.dynamics.tree import Node, Tree, rotation
from pluriverse.model import Model
from pluriverse.trace.expression import is_zero
from pluriverse.trace.functions import sqrt

from .impedance import clipped_solimp, impedance, stiffness_and_damping, weight
from .rows import Row

CONNECT, WELD, JOINT, TENDON = range(4)  # mjtEq
SITE = 6  # mjtObj

Jacobian = list[dict[int, Any]]


@dataclass(eq=False)
class Constraint:
    """What shall be zero, by row."""

    violation: Vector
    J: Jacobian
    drift: Vector  # (d/dt J) qvel
    inverse_inertia: list[float]  # approximate


def equality_rows(
    tree: Tree,
    poses: dict[Node, Pose],
    velocities: dict[Node, Vector],
    qpos: list[Any],
    qvel: list[Any],
    tendons: Sequence[Transmission],
    active: Any,
    settings: Any,
) -> list[Row]:
    """The rows of all equality constraints at a state. active: the buffer that says which act (`State.eq_active`)."""
    model = tree.model
    accelerations = bias_accelerations(tree, poses, qvel, ZERO3)
    rows: list[Row] = []
    for e in range(model.neq):
        if model.eq_type[e] == JOINT:
            constraint = _joint_coupling(model, e, qpos)
        elif model.eq_type[e] == TENDON:
            constraint = _tendon_coupling(model, e, tendons)
        else:
            between = relation(*_frames(tree, poses, e), poses, velocities, accelerations)
            constraint = _connection(model, e, between)
            if model.eq_type[e] == WELD:
                _add_alignment(model, e, between, constraint)
        rows += _rows(model, e, constraint, qvel, active.read(e), settings)
    return rows


def _rows(model: Model, e: int, constraint: Constraint, qvel: list[Any], active: Any, settings: Any) -> list[Row]:
    """The rows of one constraint, whose impedance depends on all its violations together. A row that no dof moves is
    left out."""
    k, b = stiffness_and_damping(model.eq_solref[e], model.eq_solimp[e], settings.dt, settings.refsafe)
    c = constraint
    size = c.violation[0] if len(c.violation) == 1 else sqrt(dot(c.violation, c.violation))
    d = impedance(model.eq_solimp[e], size)
    rows = []
    for r, by_dof, drift, inverse_inertia in zip(c.violation, c.J, c.drift, c.inverse_inertia, strict=True):
        dofs = tuple(dof for dof, x in by_dof.items() if not is_zero(x))
        if dofs:
            coefficients = tuple(by_dof[dof] for dof in dofs)
            reference = -(dot(coefficients, [qvel[dof] for dof in dofs]) * b) - d * r * k - drift
            rows.append(Row(dofs, coefficients, reference, weight(d, inverse_inertia) * active, True, two_sided=True))
    return rows


# ---- connect and weld ------------------------------------------------------------------------------------------------


def connection_stiffness(model: Model) -> float:
    """How far the rows of connections outweigh the inertias that they act on, d / (1 - d) for the largest impedance d;
    0 where there are none."""
    impedances = [max(clipped_solimp(model.eq_solimp[e])[:2]) for e in np.flatnonzero(model.eq_type <= WELD)]
    return max((d / (1.0 - d) for d in impedances), default=0.0)


def _frames(tree: Tree, poses: dict[Node, Pose], e: int) -> tuple[Frame, Frame]:
    """The two frames whose origins, and for a weld whose axes, the constraint makes equal."""
    model, ids = tree.model, (int(tree.model.eq_obj1id[e]), int(tree.model.eq_obj2id[e]))
    if model.eq_objtype[e] == SITE:
        return site_frame(tree, poses, ids[0]), site_frame(tree, poses, ids[1])
    one, two = (body_frame(tree, poses, body) for body in ids)
    data = [tree.constants([x]) for x in (model.eq_data[e, :3], model.eq_data[e, 3:6])]
    if model.eq_type[e] == CONNECT:
        return one.moved(data[0], IDENTITY), two.moved(data[1], IDENTITY)
    return one.moved(data[1], tree.constants([rotation(model.eq_data[e, 6:10])])), two.moved(data[0], IDENTITY)


def _connection(model: Model, e: int, between: Relation) -> Constraint:
    """The origins are at one place; by world axis."""
    J = [{dof: motion[3 + i] for dof, motion in between.J.items()} for i in range(3)]
    return Constraint(between.apart, J, between.drift[3:], [_inverse_inertia(model, e, 0)] * 3)


def _add_alignment(model: Model, e: int, between: Relation, constraint: Constraint) -> None:
    """The axes are the same: three rows for the vector part of the quaternion q = (s, v) from the axes of `two` to
    those of `one`, times torquescale.

    With the spin u in the axes of `two`, dq/dt = (0, u) q / 2, so that dv/dt = (s u + u x v) / 2, and the second
    derivative is that of the same with du/dt, less |u|^2 v / 4.
    """
    axes, torquescale = transpose(between.two.rotation), float(model.eq_data[e, 10])
    s, *v = matrix_quaternion(matmul(axes, between.one.rotation))
    turn = matmul(scale(sub(scale(IDENTITY, s), skew(v)), 0.5 * torquescale), axes)
    spin = between.spin
    spin_drift = sub(between.drift[:3], cross(between.turning, spin))
    drift = add(matvec(turn, spin_drift), scale(v, dot(spin, spin) * (-0.25 * torquescale)))
    constraint.violation = [*constraint.violation, *scale(v, torquescale)]
    constraint.J += [{dof: dot(row(turn, i), motion[:3]) for dof, motion in between.J.items()} for i in range(3)]
    constraint.drift = [*constraint.drift, *drift]
    constraint.inverse_inertia += [_inverse_inertia(model, e, 1)] * 3


def _inverse_inertia(model: Model, e: int, rotational: int) -> float:
    """Approximate inverse inertia of both bodies to a push, or to a turn."""
    bodies = [int(i) for i in (model.eq_obj1id[e], model.eq_obj2id[e])]
    if model.eq_objtype[e] == SITE:
        bodies = [int(model.site_bodyid[site]) for site in bodies]
    return sum(float(model.body_invweight0[body, rotational]) for body in bodies)


# ---- joints and tendons that follow ----------------------------------------------------------------------------------


def _joint_coupling(model: Model, e: int, qpos: list[Any]) -> Constraint:
    """A joint's displacement from qpos0 is a polynomial of another's, or a constant."""

    def displacement(joint: int) -> Transmission:
        q = int(model.jnt_qposadr[joint])
        return Transmission(qpos[q] - float(model.qpos0[q]), {int(model.jnt_dofadr[joint]): 1.0})

    joints = [int(j) for j in (model.eq_obj1id[e], model.eq_obj2id[e]) if j >= 0]
    inverse_inertia = sum(float(model.dof_invweight0[model.jnt_dofadr[j]]) for j in joints)
    return _coupling(model.eq_data[e, :5], *(displacement(j) for j in joints), inverse_inertia=inverse_inertia)


def _tendon_coupling(model: Model, e: int, tendons: Sequence[Transmission]) -> Constraint:
    """A tendon's change of length since qpos0 is a polynomial of another's, or a constant."""
    ids = [int(t) for t in (model.eq_obj1id[e], model.eq_obj2id[e]) if t >= 0]
    changes = [Transmission(tendons[t].length - float(model.tendon_length0[t]), tendons[t].moment) for t in ids]
    inverse_inertia = sum(float(model.tendon_invweight0[t]) for t in ids)
    return _coupling(model.eq_data[e, :5], *changes, inverse_inertia=inverse_inertia)


def _coupling(
    polynomial: np.ndarray,
    first: Transmission,
    second: Transmission | None = None,
    *,
    inverse_inertia: float,
) -> Constraint:
    """first = polynomial(second), or the polynomial's constant; the coefficients ascend."""
    coefficients = [float(c) for c in polynomial]
    value: Any = coefficients[0]
    moment = dict(first.moment)
    if second is not None:
        value, slope = coefficients[4], 4.0 * coefficients[4]
        for c in reversed(coefficients[:4]):
            value = value * second.length + c
        for power in (3, 2, 1):
            slope = slope * second.length + power * coefficients[power]
        for dof, lever in second.moment.items():
            moment[dof] = moment.get(dof, 0.0) - slope * lever
    return Constraint([first.length - value], [moment], [0.0], [inverse_inertia])
