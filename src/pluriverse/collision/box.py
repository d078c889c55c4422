"""Contacts of a ball with a box, in the box's frame."""

from __future__ import annotations

from typing import Any

from pluriverse.collision.placed import Emit, Placed
from pluriverse.dynamics.spatial import Vector, add, dot, matvec, scale, sub, transpose
from pluriverse.trace.functions import absolute, clamp, maximum, reciprocal, select, sqrt

SMALL = 1e-15  # mjMINVAL


def sphere_box(run: Any, sphere: Placed, box: Placed, margin: float, emit: Emit) -> None:
    """At most 1 contact."""
    ball_box(run, sphere.position, sphere.size[0], box, margin, emit)


def ball_box(run: Any, centre: Vector, radius: Any, box: Placed, margin: float, emit: Emit) -> None:
    """The contact of a ball about a point; from inside the box, with the nearest face."""
    point = in_frame(box, sub(centre, box.position))
    inward = [clamp(p, -s, s) - p for p, s in zip(point, box.size, strict=True)]
    length = sqrt(dot(inward, inward))
    for _ in run.when(length - radius < margin):
        inside = length < SMALL
        height, out = _nearest_face(point, list(box.size))
        unit = scale(inward, reciprocal(maximum(length, SMALL)))
        normal = matvec(box.rotation, [select(inside, -o, u) for o, u in zip(out, unit, strict=True)])
        distance = select(inside, -height, length) - radius
        emit(distance, add(centre, scale(normal, radius + 0.5 * distance)), normal, None)


def _nearest_face(point: Vector, size: Vector) -> tuple[Any, Vector]:
    """How deep a point inside the box is below the nearest face, and that face's outward normal."""
    best: Any = None
    normal: Vector = [0.0, 0.0, 0.0]
    for k, (p, s) in enumerate(zip(point, size, strict=True)):
        depth, sign = s - absolute(p), select(p > 0.0, 1.0, -1.0)
        nearer = True if best is None else depth < best
        normal = [select(nearer, sign if i == k else 0.0, n) for i, n in enumerate(normal)]
        best = select(nearer, depth, best)
    return best, normal


def in_frame(box: Placed, vector: Vector) -> Vector:
    """A vector of world axes along the box's."""
    return matvec(transpose(box.rotation), vector)
