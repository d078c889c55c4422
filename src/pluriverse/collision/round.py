"""Contacts between spheres and capsules: two spheres about the nearest points of two centres or segments."""

from __future__ import annotations

from typing import Any

from pluriverse.collision.placed import Emit, Placed
from pluriverse.dynamics.spatial import Vector, add, cross, dot, scale, sub
from pluriverse.trace.functions import clamp, maximum, reciprocal, select, sqrt

SMALL = 1e-15  # mjMINVAL


def sphere_sphere(run: Any, sphere1: Placed, sphere2: Placed, margin: float, emit: Emit) -> None:
    """At most 1 contact."""
    _spheres(run, sphere1, sphere1.position, sphere2, sphere2.position, margin, emit)


def sphere_capsule(run: Any, sphere: Placed, capsule: Placed, margin: float, emit: Emit) -> None:
    """At most 1 contact."""
    half = capsule.size[1]
    along = clamp(dot(capsule.axis, sub(sphere.position, capsule.position)), -half, half)
    _spheres(run, sphere, sphere.position, capsule, _on_axis(capsule, along), margin, emit)


def capsule_capsule(run: Any, capsule1: Placed, capsule2: Placed, margin: float, emit: Emit) -> None:
    """At most 1 contact, 2 where the capsules are parallel.

    The nearest points of the segments lie at `along1` and `along2` on their axes (Ericson 2005, section 5.1.9).
    """
    axis1, axis2, half1, half2 = capsule1.axis, capsule2.axis, capsule1.size[1], capsule2.size[1]
    apart = sub(capsule2.position, capsule1.position)
    reach = capsule1.rbound + capsule2.rbound + margin
    for _ in run.when(dot(apart, apart) < reach * reach):
        cosine, a, b = dot(axis1, axis2), dot(axis1, apart), dot(axis2, apart)
        # From the cross product, whose rounding does not hide how parallel they are.
        normal = cross(axis1, axis2)
        sine2 = dot(normal, normal)
        parallel = sine2 * ((half1 * half1) * (half2 * half2)) < SMALL

        # The nearest points of the lines, then of each segment to the other's point: exact, and apt for small angles.
        along1 = clamp((a - cosine * b) * reciprocal(maximum(sine2, SMALL)), -half1, half1)
        along2 = clamp(cosine * along1 - b, -half2, half2)
        along1 = clamp(a + cosine * along2, -half1, half1)

        def ends() -> list[Any]:
            """The first two that touch, of the four ends and their nearest points on the other segment."""
            candidates = [(end, clamp(cosine * end - b, -half2, half2)) for end in (half1, -half1)]
            candidates += [(clamp(a + cosine * end, -half1, half1), end) for end in (half2, -half2)]
            touch = margin + capsule1.size[0] + capsule2.size[0]
            first, second = [0.0, 0.0, False], [0.0, 0.0, False]
            for s, t in reversed(candidates):
                between = sub(add(apart, scale(axis2, t)), scale(axis1, s))
                touches = dot(between, between) < touch * touch
                second = [select(touches, new, old) for new, old in zip(first, second, strict=True)]
                first = [select(touches, new, old) for new, old in zip([s, t, True], first, strict=True)]
            return [*first, *second]

        s1, t1, one, s2, t2, two = run.choose(parallel, ends, [along1, along2, True, 0.0, 0.0, False])
        for s, t, exists in ((s1, t1, one), (s2, t2, two)):
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
    for _ in run.when(distance < margin):
        direction = scale(between, reciprocal(maximum(length, SMALL)))
        normal = run.choose(length < SMALL, lambda: _coincident_normal(geom1, geom2), direction)
        emit(distance, add(centre1, scale(normal, geom1.size[0] + 0.5 * distance)), normal, None)


def _coincident_normal(geom1: Placed, geom2: Placed) -> Vector:
    """MuJoCo's normal where the centres coincide: across both z-axes; x where these are parallel."""
    across = cross(geom1.axis, geom2.axis)
    length = sqrt(dot(across, across))
    direction = scale(across, reciprocal(maximum(length, SMALL)))
    return [select(length < SMALL, x, d) for x, d in zip([1.0, 0.0, 0.0], direction, strict=True)]
