"""Constraint rows on joint coordinates: limits, dry friction; those of equalities are in `equalities`.

A one-sided row costs D/2 min(J a - reference, 0)^2, a two-sided one D/2 (J a - reference)^2. Dry friction, whose
force is D (a - reference) clamped to +-loss, is the sum of two one-sided rows, one of negative weight, and a constant
force: so all rows of the solver have one form.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pluriverse.dynamics.passive import rotation_vector
from pluriverse.dynamics.spatial import dot
from pluriverse.dynamics.tree import BALL, FREE, Joint, Node, Tree
from pluriverse.trace.functions import minimum, reciprocal, select, sqrt

from .impedance import impedance, stiffness_and_damping, weight


@dataclass(eq=False)
class Row:
    """One row on a few dofs (those of the first lane)."""

    dofs: tuple[int, ...]
    coefficients: tuple[Any, ...]
    reference: Any
    weight: Any
    shared: bool  # computed by all lanes alike
    two_sided: bool = False

    def residual(self, qacc: Any) -> Any:
        """J a - reference."""
        return dot(self.coefficients, [qacc[d] for d in self.dofs]) - self.reference

    def products(self) -> Iterator[tuple[tuple[int, int], Any]]:
        """The entries (i, j), j <= i, of J' J."""
        entries = list(zip(self.dofs, self.coefficients, strict=True))
        for k, (i, ci) in enumerate(entries):
            for j, cj in entries[: k + 1]:
                yield (max(i, j), min(i, j)), ci * cj

    def active_weight(self, residual: Any) -> Any:
        return self.weight if self.two_sided else select(residual < 0.0, self.weight, 0.0)


@dataclass(eq=False)
class JointRows:
    """The rows on joint coordinates, and the constant part of dry friction by dof."""

    rows: list[Row] = field(default_factory=list)
    constant_forces: dict[int, Any] = field(default_factory=dict)


def joint_rows(tree: Tree, qpos: list[Any], qvel: list[Any], settings: Any) -> JointRows:
    """All rows on joint coordinates at a state. `settings`: dt, refsafe, and which kinds are on."""
    found = JointRows()
    for node in tree.nodes:
        for joint in node.joints:
            if settings.friction_loss:
                for k in range(joint.width):
                    _add_friction_loss(tree, node, joint, k, qvel, settings, found)
            if settings.limits and tree.model.jnt_limited[joint.ids[0]] and joint.type != FREE:
                rows = _ball_limit if joint.type == BALL else _limits
                found.rows += rows(tree, node, joint, qpos, qvel, settings)
    return found


def _limits(tree: Tree, node: Node, joint: Joint, qpos: Any, qvel: Any, settings: Any) -> list[Row]:
    """Of a hinge or slide. The nearer limit makes the row, unless margins are so wide that both can act at once."""
    model, j, dof = tree.model, joint.ids[0], joint.dofs[0]
    margin = float(model.jnt_margin[j])
    lower = qpos[joint.qpos[0]] - tree.constants([model.jnt_range[i, 0] for i in joint.ids])
    upper = tree.constants([model.jnt_range[i, 1] for i in joint.ids]) - qpos[joint.qpos[0]]
    if any(model.jnt_range[i, 1] - model.jnt_range[i, 0] < 2 * margin for i in joint.ids):
        sides = [(lower, 1.0), (upper, -1.0)]
    else:
        sides = [(minimum(lower, upper), select(lower < upper, 1.0, -1.0))]
    inverse_inertia = tree.constant(model.dof_invweight0, joint.dofs)
    k, b = stiffness_and_damping(model.jnt_solref[j], model.jnt_solimp[j], settings.dt, settings.refsafe)
    rows = []
    for distance, sign in sides:
        violation = distance - margin

        def parts(violation: Any = violation, sign: Any = sign) -> list[Any]:
            d = impedance(model.jnt_solimp[j], violation)
            return [-(sign * qvel[dof] * b) - d * violation * k, weight(d, inverse_inertia)]

        reference, D = tree.run.choose(violation < 0.0, parts, [0.0, 0.0])
        rows.append(Row((dof,), (sign,), reference, D, node.trunk))
    return rows


def _ball_limit(tree: Tree, node: Node, joint: Joint, qpos: Any, qvel: Any, settings: Any) -> list[Row]:
    """Of a ball joint: its rotation angle from the rest orientation."""
    model, j, dof, row = tree.model, joint.ids[0], joint.dofs[0], joint.qpos[0]
    turn = rotation_vector(qpos[row : row + 4])
    angle = sqrt(dot(turn, turn) + 1e-30)
    axis = [x * reciprocal(angle) for x in turn]
    largest = tree.constants([max(model.jnt_range[i]) for i in joint.ids])
    violation = largest - angle - float(model.jnt_margin[j])
    k, b = stiffness_and_damping(model.jnt_solref[j], model.jnt_solimp[j], settings.dt, settings.refsafe)
    rate = -dot(axis, [qvel[dof + i] for i in range(3)])

    def parts() -> list[Any]:
        d = impedance(model.jnt_solimp[j], violation)
        return [-(rate * b) - d * violation * k, weight(d, tree.constant(model.dof_invweight0, joint.dofs))]

    reference, D = tree.run.choose(violation < 0.0, parts, [0.0, 0.0])
    return [Row((dof, dof + 1, dof + 2), tuple(-x for x in axis), reference, D, node.trunk)]


def _add_friction_loss(
    tree: Tree, node: Node, joint: Joint, k: int, qvel: Any, settings: Any, found: JointRows
) -> None:
    model, dof = tree.model, joint.dofs[0] + k
    if not model.dof_frictionloss[dof]:
        return
    loss = tree.constant(model.dof_frictionloss, joint.dof(k))
    d = impedance(model.dof_solimp[dof], 0.0)
    D = tree.constants([weight(d, model.dof_invweight0[i]) for i in joint.dof(k)])
    _, b = stiffness_and_damping(model.dof_solref[dof], model.dof_solimp[dof], settings.dt, settings.refsafe)
    reference = -(qvel[dof] * b)
    slip = loss / D if not isinstance(D, float) else loss * (1.0 / D)
    found.rows.append(Row((dof,), (1.0,), reference + slip, D, node.trunk))
    found.rows.append(Row((dof,), (1.0,), reference - slip, -D, node.trunk))
    found.constant_forces[dof] = -loss
