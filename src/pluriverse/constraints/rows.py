"""Constraint rows on joint coordinates: limits, dry friction; those of equalities are in `equalities`, of tendons in
`tendon_rows`.

A one-sided row costs D/2 min(J a - reference, 0)^2, a two-sided one D/2 (J a - reference)^2. Dry friction, whose
force is D (a - reference) clamped to +-loss, is the sum of two one-sided rows, one of negative weight, and a constant
force: so all rows of the solver have one form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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

    def add_friction(
        self,
        moment: dict[int, Any],
        loss: Any,
        qvel: Any,
        D: Any,
        softness: tuple[Sequence[float], Sequence[float]],
        settings: Any,
        *,
        shared: bool,
    ) -> None:
        """Dry friction against the rate of a length that grows by `moment` with the dofs. softness: solref, solimp."""
        _, b = stiffness_and_damping(*softness, settings.dt, settings.refsafe)
        dofs, coefficients = tuple(moment), tuple(moment.values())
        reference = -(dot(coefficients, [qvel[d] for d in dofs]) * b)
        slip = loss / D if not isinstance(D, float) else loss * (1.0 / D)
        self.rows.append(Row(dofs, coefficients, reference + slip, D, shared))
        self.rows.append(Row(dofs, coefficients, reference - slip, -D, shared))
        for dof, lever in moment.items():
            self.constant_forces[dof] = self.constant_forces.get(dof, 0.0) - lever * loss


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
    softness = (model.jnt_solref[j], model.jnt_solimp[j])
    return [
        limit_row(tree, {dof: sign}, distance - margin, qvel, inverse_inertia, softness, settings, shared=node.trunk)
        for distance, sign in sides
    ]


def limit_row(
    tree: Tree,
    moment: dict[int, Any],
    violation: Any,
    qvel: Any,
    inverse_inertia: Any,
    softness: tuple[Sequence[float], Sequence[float]],
    settings: Any,
    *,
    shared: bool,
) -> Row:
    """One that acts where a violation, which grows by `moment` with the dofs, is negative. softness: solref, solimp."""
    solref, solimp = softness
    k, b = stiffness_and_damping(solref, solimp, settings.dt, settings.refsafe)
    dofs, coefficients = tuple(moment), tuple(moment.values())
    rate = dot(coefficients, [qvel[d] for d in dofs])

    def parts() -> list[Any]:
        d = impedance(solimp, violation)
        return [-(rate * b) - d * violation * k, weight(d, inverse_inertia)]

    reference, D = tree.run.choose(violation < 0.0, parts, [0.0, 0.0])
    return Row(dofs, coefficients, reference, D, shared)


def _ball_limit(tree: Tree, node: Node, joint: Joint, qpos: Any, qvel: Any, settings: Any) -> list[Row]:
    """Of a ball joint: its rotation angle from the rest orientation."""
    model, j, dof, row = tree.model, joint.ids[0], joint.dofs[0], joint.qpos[0]
    turn = rotation_vector(qpos[row : row + 4])
    angle = sqrt(dot(turn, turn) + 1e-30)
    axis = [x * reciprocal(angle) for x in turn]
    largest = tree.constants([max(model.jnt_range[i]) for i in joint.ids])
    violation = largest - angle - float(model.jnt_margin[j])
    moment = {dof + i: -x for i, x in enumerate(axis)}
    inverse_inertia = tree.constant(model.dof_invweight0, joint.dofs)
    softness = (model.jnt_solref[j], model.jnt_solimp[j])
    return [limit_row(tree, moment, violation, qvel, inverse_inertia, softness, settings, shared=node.trunk)]


def _add_friction_loss(
    tree: Tree, node: Node, joint: Joint, k: int, qvel: Any, settings: Any, found: JointRows
) -> None:
    model, dof = tree.model, joint.dofs[0] + k
    if not model.dof_frictionloss[dof]:
        return
    loss = tree.constant(model.dof_frictionloss, joint.dof(k))
    d = impedance(model.dof_solimp[dof], 0.0)
    D = tree.constants([weight(d, model.dof_invweight0[i]) for i in joint.dof(k)])
    softness = (model.dof_solref[dof], model.dof_solimp[dof])
    found.add_friction({dof: 1.0}, loss, qvel, D, softness, settings, shared=node.trunk)
