"""Contacts between spheres, capsules and cylinders: mostly of two spheres, about the nearest points of two centres or
segments."""

from __future__ import annotations

from typing import Any

from pluriverse.collision.placed import Emit, Placed
from pluriverse.dynamics.spatial import Vector, add, cross, dot, negate, scale, sub
from pluriverse.trace.functions import absolute, clamp, logical_not, maximum, reciprocal, select, sqrt

SMALL = 1e-15  # mjMINVAL
PARALLEL = 1e-8  # squared sine of the angle below which two capsules count as parallel


def sphere_sphere(run: Any, sphere1: Placed, sphere2: Placed, margin: float, emit: Emit) -> None:
    """At most 1 contact."""
    _spheres(run, sphere1, sphere1.position, sphere2, sphere2.position, margin, emit)


def sphere_capsule(run: Any, sphere: Placed, capsule: Placed, margin: float, emit: Emit) -> None:
    """At most 1 contact."""
    half = capsule.size[1]
    along = clamp(dot(capsule.axis, sub(sphere.position, capsule.position)), -half, half)
    _spheres(run, sphere, sphere.position, capsule, _on_axis(capsule, along), margin, emit)


def sphere_cylinder(run: Any, sphere: Placed, cylinder: Placed, margin: float, emit: Emit) -> None:
    """At most 1 contact: with the side, with a cap, or with the rim between them.

    A sphere whose centre is inside the cylinder touches the nearer one of side and cap.
    """
    radius, half, axis = cylinder.size[0], cylinder.size[1], cylinder.axis
    offset = sub(sphere.position, cylinder.position)
    along = dot(axis, offset)
    across = sub(offset, scale(axis, along))
    away = sqrt(dot(across, across))

    beside, above = absolute(along) < half, away < radius
    near_cap = half - absolute(along) < radius - away
    side = beside & (logical_not(above) | logical_not(near_cap))
    cap = above & (logical_not(beside) | near_cap)

    up = select(along > 0.0, 1.0, -1.0)  # to the nearer cap from the middle
    to_rim = add(scale(axis, up * half - along), scale(across, (radius - away) * reciprocal(maximum(away, SMALL))))
    towards = [select(cap, -up * a, select(side, s, r)) for a, s, r in zip(axis, negate(across), to_rim, strict=True)]
    length = sqrt(dot(towards, towards))
    gap = select(cap, absolute(along) - half, length - select(side, radius, 0.0))
    _touch(run, sphere, sphere.position, cylinder, towards, length, gap - sphere.size[0], margin, emit)


def capsule_capsule(run: Any, capsule1: Placed, capsule2: Placed, margin: float, emit: Emit) -> None:
    """At most 1 contact; where the capsules are parallel 2, at the ends of their overlap (MuJoCo 4).

    The nearest points of the segments lie at `along1` and `along2` on their axes (Ericson 2005, section 5.1.9).
    """
    axis1, axis2, half1, half2 = capsule1.axis, capsule2.axis, capsule1.size[1], capsule2.size[1]
    apart = sub(capsule2.position, capsule1.position)
    cosine, a, b = dot(axis1, axis2), dot(axis1, apart), dot(axis2, apart)
    normal = cross(axis1, axis2)
    sine2 = dot(normal, normal)  # unlike 1 - cosine^2, exact for small angles in single precision too
    parallel = sine2 < PARALLEL

    # The nearest points of the lines, then of each segment to the other's point.
    along1 = clamp((a - cosine * b) * reciprocal(maximum(sine2, PARALLEL)), -half1, half1)
    along2 = clamp(cosine * along1 - b, -half2, half2)
    along1 = clamp(a + cosine * along2, -half1, half1)

    def overlap() -> list[Any]:
        """Its two ends, lower first along axis 1; each is an end of one capsule."""
        places: list[Any] = []
        for end in (-half2, half2):
            end2 = select(cosine < 0.0, -end, end)
            beside = a + cosine * end2
            s = clamp(beside, -half1, half1)
            places += [s, select(absolute(beside) < half1, end2, clamp(cosine * s - b, -half2, half2))]
        return places

    s1, t1, s2, t2 = run.choose(parallel, overlap, [along1, along2, 0.0, 0.0])
    for s, t, exists in ((s1, t1, True), (s2, t2, parallel)):
        for _ in run.when(exists):
            _spheres(run, capsule1, _on_axis(capsule1, s), capsule2, _on_axis(capsule2, t), margin, emit)


def _on_axis(geom: Placed, along: Any) -> Vector:
    return add(geom.position, scale(geom.axis, along))


def _spheres(
    run: Any, geom1: Placed, centre1: Vector, geom2: Placed, centre2: Vector, margin: float, emit: Emit
) -> None:
    """The contact of two spheres about points of two geoms, with the geoms' radii."""
    between = sub(centre2, centre1)
    length = sqrt(dot(between, between))
    distance = length - (geom1.size[0] + geom2.size[0])
    _touch(run, geom1, centre1, geom2, between, length, distance, margin, emit)


def _touch(
    run: Any,
    geom1: Placed,
    centre1: Vector,
    geom2: Placed,
    towards: Vector,
    length: Any,
    distance: Any,
    margin: float,
    emit: Emit,
) -> None:
    """The contact of a sphere about a point of geom1, at this distance in a direction of any length."""
    for _ in run.when(distance < margin):
        direction = scale(towards, reciprocal(maximum(length, SMALL)))
        normal = run.choose(length < SMALL, lambda: _coincident_normal(geom1, geom2), direction)
        emit(distance, add(centre1, scale(normal, geom1.size[0] + 0.5 * distance)), normal, None)


def _coincident_normal(geom1: Placed, geom2: Placed) -> Vector:
    """MuJoCo's normal where the centres coincide: across both z-axes; x where these are parallel."""
    across = cross(geom1.axis, geom2.axis)
    length = sqrt(dot(across, across))
    direction = scale(across, reciprocal(maximum(length, SMALL)))
    return [select(length < SMALL, x, d) for x, d in zip([1.0, 0.0, 0.0], direction, strict=True)]
