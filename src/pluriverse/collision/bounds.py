"""Boxes around geoms, along the axes of their frames: a test that costs little beside the contacts of most kinds."""

from __future__ import annotations

from typing import Any

from pluriverse.collision.placed import Placed
from pluriverse.collision_pairs import BOX, CAPSULE, CYLINDER, ELLIPSOID, MESH, SPHERE
from pluriverse.dynamics.spatial import Vector, add, dot, matmul, matvec, sub, transpose
from pluriverse.trace.functions import absolute

BOUNDED = frozenset((SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH))
WIDER = 1.0001  # by how much boxes are widened against rounding


def have_boxes(type1: int, type2: int) -> bool:
    """Whether there are boxes around both of two geoms (mjtGeom)."""
    return {type1, type2} <= BOUNDED


def boxes_touch(geom1: Placed, geom2: Placed, margin: Any) -> Any:
    """Whether no face of the boxes around two geoms separates them by the margin. True for some that edges separate."""
    (centre1, half1), (centre2, half2) = _box(geom1), _box(geom2)
    turn = matmul(transpose(geom1.rotation), geom2.rotation)
    apart = matvec(transpose(geom1.rotation), sub(centre2, centre1))
    touch: Any = True
    for k in range(3):
        row = turn[3 * k : 3 * k + 3]
        reach = half1[k] + dot([absolute(x) for x in row], half2) + margin
        touch = touch & (absolute(apart[k]) < WIDER * reach)
    for k in range(3):
        column = turn[k::3]
        reach = half2[k] + dot([absolute(x) for x in column], half1) + margin
        touch = touch & (absolute(dot(column, apart)) < WIDER * reach)
    return touch


def _box(geom: Placed) -> tuple[Vector, Vector]:
    """Centre, and half extents along the axes of the geom's frame [m]."""
    size = geom.size
    if geom.type == MESH:
        assert geom.hull is not None
        centre, half = geom.hull.box
        return add(geom.position, matvec(geom.rotation, centre)), half
    if geom.type in (SPHERE, CAPSULE, CYLINDER):
        length = {SPHERE: size[0], CAPSULE: size[0] + size[1], CYLINDER: size[1]}[geom.type]
        return geom.position, [size[0], size[0], length]
    return geom.position, list(size)
