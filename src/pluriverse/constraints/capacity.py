"""How many contacts a step has room for, and what is told where that is not enough."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pluriverse.collision.narrow_phase import pair_sites
from pluriverse.model import Model
from pluriverse.status_bits import CONTACT_OVERFLOW, number_of

from .candidates import Candidate

FEW = 1024  # contacts of all pairs together for which there is always room
NEIGHBOURS = 6  # geoms that a geom touches at once, of those with which it makes the most contacts


def places_for(model: Model, pairs: Sequence[Candidate], max_contacts: int | None, together: int) -> tuple[int, bool]:
    """The capacity of the list of contacts, and whether that is less than what all pairs can make.

    max_contacts: of an environment; None: all where these are FEW, else `contacts_at_once`. together: environments
    that share the list, whose contacts may all be different ones.
    """
    total = sum(pair_sites(model, c.pairs[0], together) for c in pairs)
    if max_contacts is None:
        sites = np.array([pair_sites(model, c.pairs[0]) for c in pairs], dtype=int)
        max_contacts = total if total <= FEW else contacts_at_once(model, pairs, sites)
    places = min(total, max_contacts * together)
    return places, places < total


def contacts_at_once(model: Model, pairs: Sequence[Candidate], sites: np.ndarray) -> int:
    """An estimate of how many contacts there are when all lie in a heap: every moving geom touches NEIGHBOURS others.

    sites: the most contacts of each pair. A contact between two moving geoms is half of each one's.
    """
    shares: dict[int, list[float]] = {}
    for c, count in zip(pairs, sites.tolist(), strict=True):
        moving = [g for g in (c.pairs[0].geom1, c.pairs[0].geom2) if model.body_treeid[model.geom_bodyid[g]] >= 0]
        for geom in moving:
            shares.setdefault(geom, []).append(count / len(moving))
    return int(np.ceil(sum(sum(sorted(share)[-NEIGHBOURS:]) for share in shares.values())))


def report_lost(run: Any, records: Any) -> None:
    """Raises the status bit of the environments that lost a contact, and tells how many places were wanted."""
    lost = run.lane_any(records.lost)
    run.flag_row("status").raise_where(lost, CONTACT_OVERFLOW, number_of(CONTACT_OVERFLOW), records.wanted)
