"""Contacts of two convex shapes of any kind."""

from __future__ import annotations

from typing import Any

from pluriverse.collision.manifold import Patch, can_be_many, find_patch
from pluriverse.collision.overlap import TINY, Difference, Seeds, least_overlap
from pluriverse.collision.placed import Emit, Placed
from pluriverse.collision.support import Mesh, support_of
from pluriverse.collision_pairs import SPHERE
from pluriverse.dynamics.spatial import Vector, add, column, dot, matmul, matvec, scale, sub, transpose
from pluriverse.trace.functions import maximum, minimum, rsqrt, select


def convex_convex(run: Any, geom1: Placed, geom2: Placed, margin: Any, emit: Emit) -> None:
    """At most 4 contacts where both shapes have straight edges and one has flat faces; else 1."""
    inverse = transpose(geom1.rotation)
    position = matvec(inverse, sub(geom2.position, geom1.position))
    first, second = support_of(run, geom1), support_of(run, geom2)
    shapes = Difference(first, second, matmul(inverse, geom2.rotation), position)
    radii, size = first.radius + second.radius, minimum(geom1.rbound, geom2.rbound)
    seeds = _seeds(run, shapes, geom1, geom2)
    found = least_overlap(run, shapes, seeds, margin + radii, size, geom1.rbound + geom2.rbound)
    distance = -found.depth.value - radii
    for _ in run.when(distance < margin):
        normal = found.direction[0]
        middle = add(found.point[0], scale(normal, 0.5 * (first.radius - second.radius)))

        def put(distance: Any, position: Vector, normal: Vector) -> None:
            emit(distance, add(geom1.position, matvec(geom1.rotation, position)), matvec(geom1.rotation, normal), None)

        if not can_be_many(first, second):
            put(distance, middle, normal)
            return
        patch = Patch(run, normal, middle, distance)
        find_patch(run, shapes, found, patch, margin, size)
        for distance, position in patch.each():
            for _ in run.when(distance < margin):
                put(distance, position, [n.value for n in patch.normal])


def _seeds(run: Any, shapes: Difference, geom1: Placed, geom2: Placed) -> Seeds:
    """From centre to centre, the axes of both frames, and of each mesh the face that promises the least overlap."""
    seeds = Seeds(run, shapes)
    length2 = dot(shapes.position, shapes.position)
    apart = scale(shapes.position, rsqrt(maximum(length2, TINY)))
    seeds.add([apart[0] + select(length2 > TINY, 0.0, 1.0), apart[1], apart[2]])
    axes = [[float(i == k) for i in range(3)] for k in range(3)] if geom1.type != SPHERE else []
    axes += [column(shapes.rotation, k) for k in range(3)] if geom2.type != SPHERE else []
    for axis in axes:
        backward = dot(axis, shapes.position) < 0.0
        seeds.add([select(backward, -x, x) for x in axis])
    if isinstance(shapes.first, Mesh):
        seeds.add_best_face(shapes.first, second=False)
    if isinstance(shapes.second, Mesh):
        seeds.add_best_face(shapes.second, second=True)
    return seeds
