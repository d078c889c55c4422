"""The contacts of two geoms: which kinds there are, and the call that finds the one for a pair."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pluriverse.collision import plane, round
from pluriverse.collision.placed import Emit, Placed
from pluriverse.collision_pairs import BOX, CAPSULE, CYLINDER, ELLIPSOID, GEOM_TYPE_NAMES, MESH, PLANE, SPHERE
from pluriverse.errors import GenesisException

# By types, the smaller first: what finds the contacts, and how many there are at most.
KINDS: dict[tuple[int, int], tuple[Callable[[Any, Placed, Placed, float, Emit], None], int]] = {
    (PLANE, SPHERE): (plane.plane_sphere, 1),
    (PLANE, CAPSULE): (plane.plane_capsule, 2),
    (PLANE, ELLIPSOID): (plane.plane_ellipsoid, 1),
    (PLANE, CYLINDER): (plane.plane_cylinder, 4),
    (PLANE, BOX): (plane.plane_box, 4),
    (PLANE, MESH): (plane.plane_mesh, 3),
    (SPHERE, SPHERE): (round.sphere_sphere, 1),
    (SPHERE, CAPSULE): (round.sphere_capsule, 1),
    (CAPSULE, CAPSULE): (round.capsule_capsule, 2),
}


def contact_sites(type1: int, type2: int) -> int:
    """The most contacts that two geoms of these types (mjtGeom, the smaller first) can have; 0 for kinds not in `KINDS`."""
    return KINDS[type1, type2][1] if (type1, type2) in KINDS else 0


def collide(run: Any, geom1: Placed, geom2: Placed, margin: float, emit: Emit) -> None:
    """Calls `emit(distance, position, normal, tangent)` for each contact with distance < margin.

    `emit` is called inside a guarded block, once for each of the pair's `contact_sites` while tracing. The distance [m] is
    negative in penetration; the position [m] is half way between the surfaces, relative to the geoms' own reference
    point; the unit normal points from geom1 to geom2; the tangent is None, or an axis near which the first tangent of
    the contact frame should lie (parallel to the normal for an upright capsule). World axes throughout.

    Contacts are MuJoCo's, in MuJoCo's order but for the corners of a box.

    Raises GenesisException where contacts of these types are not written, or the types are in the wrong order.
    """
    if (geom1.type, geom2.type) not in KINDS:
        names = [f"{GEOM_TYPE_NAMES[a]}-{GEOM_TYPE_NAMES[b]}" for a, b in KINDS]
        given = f"{GEOM_TYPE_NAMES[geom1.type]}-{GEOM_TYPE_NAMES[geom2.type]}"
        raise GenesisException(
            f"Contacts between {given} are not available. The kinds in this order are {', '.join(names)}. Leave the pair "
            f"out (contype and conaffinity, or an exclude), or give it shapes from this list."
        )
    KINDS[geom1.type, geom2.type][0](run, geom1, geom2, margin, emit)
