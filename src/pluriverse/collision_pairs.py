"""Which geoms of a model may touch, in MuJoCo's order, and with which contact parameters."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from pluriverse.model import Model

PLANE, HFIELD, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH, SDF = range(9)  # mjtGeom
GEOM_TYPE_NAMES = ("plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh", "sdf")

_DISABLE_FILTERPARENT = 1 << 10  # mjDSBL_FILTERPARENT
_DISABLE_MIDPHASE = 1 << 14  # mjDSBL_MIDPHASE
_MINVAL = 1e-15  # mjMINVAL: a smaller solmix counts as zero


@dataclass(frozen=True)
class ContactPair:
    """Two geoms that may touch, `geom1` of the smaller type, and the parameters of their contacts.

    Rows exist while dist < margin. The sliding friction is the largest of `friction_geoms`, each per environment,
    unless `friction` (tangent 1, tangent 2, spin, roll 1, roll 2) is given by an explicit pair.
    """

    geom1: int
    geom2: int
    condim: int
    margin: float  # [m]
    gap: float  # [m]
    solref: tuple[float, float]
    solreffriction: tuple[float, float]  # (0, 0): the friction rows use solref
    solimp: tuple[float, float, float, float, float]
    friction_geoms: tuple[int, ...]
    friction: tuple[float, float, float, float, float] | None


def contact_pairs(model: Model) -> tuple[ContactPair, ...]:
    """Every pair of geoms that MuJoCo tests for contact, in the order in which MuJoCo lists their contacts.

    The filters are those of `mj_collision` for awake bodies: contact bits, welded bodies, bodies that cannot move,
    parent and child, excludes, explicit pairs. Pairs between two planes or height fields never touch.
    """
    explicit: dict[int, list[int]] = {}
    for pair, signature in enumerate(model.pair_signature):
        explicit.setdefault(int(signature), []).append(pair)
    by_signature = {(body1 << 16) + body2: (body1, body2) for body1, body2 in _body_pairs(model)}
    excluded = set(model.exclude_signature.tolist())

    pairs = []
    for signature in sorted(explicit.keys() | by_signature.keys()):
        declared = set()
        for pair in explicit.get(signature, ()):
            geoms = _type_order(model, int(model.pair_geom1[pair]), int(model.pair_geom2[pair]))
            declared.add(geoms)
            if _have_collider(model, geoms) and _can_move(model, geoms):
                pairs.append(_explicit_pair(model, pair, geoms))
        if signature in by_signature and signature not in excluded:
            for geoms in _geom_pairs(model, *by_signature[signature]):
                if geoms not in declared:
                    pairs.append(_mixed_pair(model, *geoms))
    return tuple(pairs)


def collision_pairs(model: Model) -> list[tuple[int, int]]:
    """The geoms (geom1, geom2) of `contact_pairs`."""
    return [(pair.geom1, pair.geom2) for pair in contact_pairs(model)]


def without_self_collision(model: Model) -> Model:
    """The model with all pairs of bodies of one tree excluded. Explicit pairs still touch."""
    one, two = np.triu_indices(model.nbody, k=1)
    same = (model.body_rootid[one] == model.body_rootid[two]) & (one > 0)
    excluded = np.union1d(model.exclude_signature, (one[same] << 16) + two[same]).astype(np.int32)
    excluded.setflags(write=False)
    return dataclasses.replace(model, exclude_signature=excluded, nexclude=len(excluded))


def _type_order(model: Model, geom1: int, geom2: int) -> tuple[int, int]:
    return (geom2, geom1) if model.geom_type[geom1] > model.geom_type[geom2] else (geom1, geom2)


def _have_collider(model: Model, geoms: tuple[int, int]) -> bool:
    return any(model.geom_type[geom] not in (PLANE, HFIELD) for geom in geoms)


def _can_move(model: Model, geoms: tuple[int, int]) -> bool:
    """Rows between two immovable bodies have no Jacobian; MuJoCo drops them, here the pair is left out."""
    return any(model.body_treeid[model.geom_bodyid[geom]] >= 0 for geom in geoms)


def _body_pairs(model: Model) -> list[tuple[int, int]]:
    """Pairs of bodies (body1 < body2) that pass the filters on bodies (`filterBodyPair` and the contact bits)."""
    contype, conaffinity = np.zeros(model.nbody, dtype=np.int32), np.zeros(model.nbody, dtype=np.int32)
    np.bitwise_or.at(contype, model.geom_bodyid, model.geom_contype)
    np.bitwise_or.at(conaffinity, model.geom_bodyid, model.geom_conaffinity)
    weld = model.body_weldid
    weld_parent = weld[model.body_parentid[weld]]
    movable = model.body_dofnum[weld] > 0

    one, two = np.triu_indices(model.nbody, k=1)
    keep = (contype[one] & conaffinity[two]).astype(bool) | (contype[two] & conaffinity[one]).astype(bool)
    keep &= weld[one] != weld[two]
    keep &= movable[one] | movable[two]
    if not model.opt.disableflags & _DISABLE_FILTERPARENT:
        related = (weld[one] == weld_parent[two]) | (weld[two] == weld_parent[one])
        keep &= ~(related & (weld[one] != 0) & (weld[two] != 0))
    return list(zip(one[keep].tolist(), two[keep].tolist(), strict=True))


def _geom_pairs(model: Model, body1: int, body2: int) -> list[tuple[int, int]]:
    """The pairs of geoms of two bodies that pass the contact bits, each in type order."""
    pairs = []
    for geom1 in _geoms(model, body1):
        for geom2 in _geoms(model, body2):
            bits1, bits2 = model.geom_contype[geom1], model.geom_contype[geom2]
            if bits1 & model.geom_conaffinity[geom2] or bits2 & model.geom_conaffinity[geom1]:
                geoms = _type_order(model, geom1, geom2)
                if _have_collider(model, geoms):
                    pairs.append(geoms)
    # MuJoCo's mid-phase, which two bodies of one geom each skip, leaves its contacts sorted by geom.
    if not model.opt.disableflags & _DISABLE_MIDPHASE:
        pairs.sort()
    return pairs


def _geoms(model: Model, body: int) -> range:
    start = int(model.body_geomadr[body])
    return range(start, start + int(model.body_geomnum[body]))


def _explicit_pair(model: Model, pair: int, geoms: tuple[int, int]) -> ContactPair:
    return ContactPair(
        *geoms,
        condim=int(model.pair_dim[pair]),
        margin=float(model.pair_margin[pair]),
        gap=float(model.pair_gap[pair]),
        solref=tuple(model.pair_solref[pair].tolist()),
        solreffriction=tuple(model.pair_solreffriction[pair].tolist()),
        solimp=tuple(model.pair_solimp[pair].tolist()),
        friction_geoms=(),
        friction=tuple(model.pair_friction[pair].tolist()),
    )


def _mixed_pair(model: Model, geom1: int, geom2: int) -> ContactPair:
    """The parameters of a contact between two geoms (`mj_contactParam`)."""
    priority1, priority2 = int(model.geom_priority[geom1]), int(model.geom_priority[geom2])
    if priority1 != priority2:
        decides = geom1 if priority1 > priority2 else geom2
        condim = int(model.geom_condim[decides])
        solref, solimp = model.geom_solref[decides], model.geom_solimp[decides]
        friction_geoms: tuple[int, ...] = (decides,)
    else:
        condim = int(max(model.geom_condim[geom1], model.geom_condim[geom2]))
        share = _solmix_share(float(model.geom_solmix[geom1]), float(model.geom_solmix[geom2]))
        solref1, solref2 = model.geom_solref[geom1], model.geom_solref[geom2]
        if solref1[0] > 0 and solref2[0] > 0:
            solref = share * solref1 + (1 - share) * solref2
        else:  # the direct format (-stiffness, -damping) takes the stiffer of each
            solref = np.minimum(solref1, solref2)
        solimp = share * model.geom_solimp[geom1] + (1 - share) * model.geom_solimp[geom2]
        friction_geoms = (geom1, geom2)
    return ContactPair(
        geom1,
        geom2,
        condim=condim,
        margin=float(model.geom_margin[geom1] + model.geom_margin[geom2]),
        gap=float(model.geom_gap[geom1] + model.geom_gap[geom2]),
        solref=tuple(solref.tolist()),
        solreffriction=(0.0, 0.0),
        solimp=tuple(solimp.tolist()),
        friction_geoms=friction_geoms,
        friction=None,
    )


def _solmix_share(solmix1: float, solmix2: float) -> float:
    """The weight of the first geom when two are mixed."""
    if solmix1 >= _MINVAL and solmix2 >= _MINVAL:
        return solmix1 / (solmix1 + solmix2)
    if solmix1 < _MINVAL and solmix2 < _MINVAL:
        return 0.5
    return 0.0 if solmix1 < _MINVAL else 1.0
