"""Rows on the lengths of tendons: limits, dry friction, and the inertia of the length (MuJoCo's `armature`).

An inertia along a length with moment J adds armature J'J to the mass matrix, which has the form of a two-sided row
without reference. MuJoCo adds only those entries whose dofs lie on one chain: so there is a row on the dofs from each
one upwards, less what the rows below it count again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pluriverse.dynamics.transmission import Transmission
from pluriverse.dynamics.tree import Tree
from pluriverse.model import Model
from pluriverse.trace.functions import minimum, select

from .impedance import impedance, weight
from .rows import JointRows, Row, limit_row


class InertiaRow(Row):
    """Part of a tendon's inertia, which is no constraint."""


def add_tendon_rows(
    tree: Tree, qvel: list[Any], tendons: Sequence[Transmission], settings: Any, found: JointRows
) -> None:
    """Adds all rows of tendons at a state. `settings`: dt, refsafe, and which kinds are on."""
    model = tree.model
    for t, tendon in enumerate(tendons):
        if settings.friction_loss and model.tendon_frictionloss[t] > 0:
            _add_friction(model, t, tendon, qvel, settings, found)
        if settings.limits and model.tendon_limited[t]:
            found.rows += _limits(tree, t, tendon, qvel, settings)
        if model.tendon_armature[t]:
            found.rows += inertia_rows(model, t, tendon)


def couples_dofs(model: Model, settings: Any) -> bool:
    """Whether rows of tendons, which act on several dofs, are there."""
    friction = settings.friction_loss and model.tendon_frictionloss.any()
    limits = settings.limits and model.tendon_limited.any()
    return bool(friction or limits or model.tendon_armature.any())


def _add_friction(model: Model, t: int, tendon: Transmission, qvel: list[Any], settings: Any, found: JointRows) -> None:
    if not tendon.moment:
        return
    solref, solimp = model.tendon_solref_fri[t], model.tendon_solimp_fri[t]
    D = weight(impedance(solimp, 0.0), float(model.tendon_invweight0[t]))
    loss = float(model.tendon_frictionloss[t])
    found.add_friction(tendon.moment, loss, qvel, D, (solref, solimp), settings, shared=True)


def _limits(tree: Tree, t: int, tendon: Transmission, qvel: list[Any], settings: Any) -> list[Row]:
    """The nearer limit makes the row, unless margins are so wide that both can act at once."""
    model = tree.model
    if not tendon.moment:
        return []
    margin, (shortest, longest) = float(model.tendon_margin[t]), (float(x) for x in model.tendon_range[t])
    lower, upper = tendon.length - shortest, longest - tendon.length
    sides = [(lower, 1.0), (upper, -1.0)]
    if longest - shortest >= 2 * margin:
        sides = [(minimum(lower, upper), select(lower < upper, 1.0, -1.0))]
    inverse_inertia = float(model.tendon_invweight0[t])
    softness = (model.tendon_solref_lim[t], model.tendon_solimp_lim[t])
    return [
        limit_row(
            tree,
            {dof: sign * lever for dof, lever in tendon.moment.items()},
            distance - margin,
            qvel,
            inverse_inertia,
            softness,
            settings,
            shared=True,
        )
        for distance, sign in sides
    ]


def inertia_rows(model: Model, t: int, tendon: Transmission) -> list[InertiaRow]:
    """Rows that add a tendon's inertia to the mass matrix, at the pairs of dofs that lie on one chain."""
    armature = float(model.tendon_armature[t])
    chains = [tuple(d for d in _upwards(model, dof) if d in tendon.moment) for dof in tendon.moment]
    counted = [chain[1:] for chain in chains]
    weights = {chain: armature * (chains.count(chain) - counted.count(chain)) for chain in chains}
    return [
        InertiaRow(chain, tuple(tendon.moment[d] for d in chain), 0.0, share, True, two_sided=True)
        for chain, share in weights.items()
        if share
    ]


def _upwards(model: Model, dof: int) -> list[int]:
    """A dof and those that carry it."""
    chain = []
    while dof >= 0:
        chain.append(dof)
        dof = int(model.dof_parentid[dof])
    return chain
