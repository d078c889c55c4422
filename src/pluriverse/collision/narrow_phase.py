"""The contacts of two geoms: which kinds there are, and the call that finds the one for a pair."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

from pluriverse.collision import box, box_box, capsule_box, plane, round
from pluriverse.collision.convex import convex_convex
from pluriverse.collision.placed import Emit, Placed
from pluriverse.collision.prisms import MOST, field_convex
from pluriverse.collision_pairs import (
    BOX,
    CAPSULE,
    CYLINDER,
    ELLIPSOID,
    GEOM_TYPE_NAMES,
    HFIELD,
    MESH,
    PLANE,
    SPHERE,
    ContactPair,
)
from pluriverse.dynamics.spatial import dot, sub
from pluriverse.errors import GenesisException
from pluriverse.model import Model


class Kind(NamedTuple):
    """How the contacts of two types of geom are found."""

    find: Callable[[Any, Placed, Placed, float, Emit], None]
    sites: int  # the most contacts
    guarded: bool  # costs so much that the bounding spheres are tested first


KINDS = {  # by types, the smaller first
    (PLANE, SPHERE): Kind(plane.plane_sphere, 1, False),
    (PLANE, CAPSULE): Kind(plane.plane_capsule, 2, False),
    (PLANE, ELLIPSOID): Kind(plane.plane_ellipsoid, 1, True),
    (PLANE, CYLINDER): Kind(plane.plane_cylinder, 4, True),
    (PLANE, BOX): Kind(plane.plane_box, 4, True),
    (PLANE, MESH): Kind(plane.plane_mesh, 4, True),
    (SPHERE, SPHERE): Kind(round.sphere_sphere, 1, False),
    (SPHERE, CAPSULE): Kind(round.sphere_capsule, 1, False),
    (SPHERE, CYLINDER): Kind(round.sphere_cylinder, 1, False),
    (SPHERE, BOX): Kind(box.sphere_box, 1, False),
    (CAPSULE, CAPSULE): Kind(round.capsule_capsule, 2, True),
    (CAPSULE, BOX): Kind(capsule_box.capsule_box, 2, True),
    (BOX, BOX): Kind(box_box.box_box, 8, True),
}
SHAPES = (SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH)
CONVEX = {  # the rest: 4 contacts where a flat face can meet a face or an edge
    types: Kind(convex_convex, 4 if set(types) <= {CAPSULE, CYLINDER, BOX, MESH} else 1, True)
    for types in combinations_with_replacement(SHAPES, 2)
    if types not in KINDS
}
CONVEX |= {(HFIELD, shape): Kind(field_convex, MOST, True) for shape in SHAPES}
KINDS |= CONVEX


def contact_sites(type1: int, type2: int) -> int:
    """The most contacts of two geoms of these types (mjtGeom, the smaller first); 0 for kinds that are not written."""
    return KINDS[type1, type2].sites if (type1, type2) in KINDS else 0


def pair_sites(model: Model, pair: ContactPair, together: int = 1) -> int:
    """The most contacts of a pair in `together` environments, where those found in one pass of a loop are one."""
    type1, type2 = int(model.geom_type[pair.geom1]), int(model.geom_type[pair.geom2])
    if type1 != HFIELD:
        return contact_sites(type1, type2)
    field, width = int(model.geom_dataid[pair.geom1]), 2.0 * (float(model.geom_rbound[pair.geom2]) + pair.margin)
    prisms = 2
    for k, points in enumerate((int(model.hfield_ncol[field]), int(model.hfield_nrow[field]))):
        step = 2.0 * float(model.hfield_size[field, k]) / (points - 1)
        prisms *= min(int(width / step) + 2, points - 1)  # cells that the shape can be over
    return min(contact_sites(type1, type2) * together, prisms)


def collide(run: Any, geom1: Placed, geom2: Placed, margin: float, emit: Emit) -> None:
    """Calls `emit(distance, position, normal, tangent)` for each contact with distance < margin.

    `emit` is called inside a guarded block; while tracing, once for each text that makes contacts. A loop around that
    may make several: at most the pair's `contact_sites` in all. The distance [m] is negative in penetration; the
    position [m] is half way between the surfaces, relative to the geoms' own reference point; the unit normal points
    from geom1 to geom2; the tangent is None, or a unit axis which the first tangent of the contact frame should follow
    (parallel to the normal for an upright capsule). World axes throughout.

    Contacts are MuJoCo's; those of a box with a plane or another box come in an order of their own, and without the
    points that rounding makes along edges which coincide. Those of CONVEX kinds are the same within tolerances; where
    they are four of many corners, the four may be others.

    Raises GenesisException where contacts of these types are not written, or the types are in the wrong order.
    """
    if (geom1.type, geom2.type) not in KINDS:
        kinds = ", ".join(f"{GEOM_TYPE_NAMES[a]}-{GEOM_TYPE_NAMES[b]}" for a, b in KINDS)
        raise GenesisException(
            f"Contacts between {GEOM_TYPE_NAMES[geom1.type]} and {GEOM_TYPE_NAMES[geom2.type]} are not written. "
            f"The kinds, in this order of types, are {kinds}. Leave the pair out (contype and conaffinity, or an "
            f"exclude), or give its geoms shapes from this list."
        )
    kind = KINDS[geom1.type, geom2.type]
    for _ in run.when(bounds_touch(geom1, geom2, margin) if kind.guarded else True):
        kind.find(run, geom1, geom2, margin, emit)


def is_guarded(type1: int, type2: int) -> bool:
    """Whether contacts of these types cost so much that the bounds are tested first."""
    return KINDS[type1, type2].guarded


def bounds_touch(geom1: Placed, geom2: Placed, margin: Any) -> Any:
    """Whether the bounding spheres touch, or a plane and one."""
    if geom1.type == PLANE:
        return plane.height_above(geom1, geom2) - geom2.rbound < margin
    apart = sub(geom2.position, geom1.position)
    reach = geom1.rbound + geom2.rbound + margin
    return dot(apart, apart) < reach * reach
