"""Contacts of two convex shapes of any kind."""

from __future__ import annotations

from typing import Any

from pluriverse.collision.overlap import Difference, Seeds, least_overlap
from pluriverse.collision.placed import Emit, Placed
from pluriverse.collision.support import Mesh, Support, support_of
from pluriverse.collision_pairs import SPHERE
from pluriverse.dynamics.spatial import Vector, add, column, dot, matmul, matvec, negate, scale, sub, transpose
from pluriverse.trace.functions import maximum, minimum, rsqrt, select

TOLERANCE = 1e-6
ITERATIONS = 40


def convex_convex(run: Any, geom1: Placed, geom2: Placed, margin: float, emit: Emit) -> None:
    inverse = transpose(geom1.rotation)
    first, second = support_of(geom1), support_of(geom2)
    position = matvec(inverse, sub(geom2.position, geom1.position))
    shapes = Difference(first, second, matmul(inverse, geom2.rotation), position)
    seeds = _seeds(run, shapes, (geom1.type, geom2.type))
    radii = first.radius + second.radius
    size = minimum(geom1.rbound, geom2.rbound)
    tolerance = TOLERANCE * size
    for _ in run.when(seeds.least < margin + 0.0 if False else True):
        found = least_overlap(run, shapes, seeds, margin + radii, size, tolerance, ITERATIONS)
        distance = -found.depth.value - radii
        for _ in run.when(distance < margin):
            normal = found.direction[0]
            middle = add(found.point[0], scale(normal, 0.5 * (first.radius - second.radius)))
            emit(distance, add(geom1.position, matvec(geom1.rotation, middle)), matvec(geom1.rotation, normal), None)


def _seeds(run: Any, shapes: Difference, types: tuple[int, int]) -> Seeds:
    seeds = Seeds(run, shapes, 9)
    length2 = dot(shapes.position, shapes.position)
    apart = scale(shapes.position, rsqrt(maximum(length2, 1e-30)))
    fallback = select(length2 > 1e-30, 0.0, 1.0)
    apart = [apart[0] + fallback, apart[1], apart[2]]
    seeds.add(apart, shapes.reach(apart))
    axes = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]] if types[0] != SPHERE else []
    axes += [column(shapes.rotation, k) for k in range(3)] if types[1] != SPHERE else []
    for axis in axes:
        toward = dot(axis, shapes.position) >= 0.0
        d = [select(toward, x, -x) for x in axis]
        seeds.add(d, shapes.reach(d))
    return seeds
