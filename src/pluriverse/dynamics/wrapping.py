"""How a tendon goes from one site to another round a sphere or a cylinder: the shortest path, or that on the side of a
side site (MuJoCo's `mju_wrap`).

All of it happens in the frame of the geom, in a plane through its axis or centre: "turns" are angles about it,
anticlockwise from -pi to pi.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from pluriverse.trace.expression import is_zero
from pluriverse.trace.functions import absolute, atan2, clamp, cos, logical_not, maximum, rsqrt, select, sin, sqrt

from .spatial import MIN_LENGTH2, Vector, add, cross, dot, scale, sub

MINVAL = 1e-15  # mjMINVAL
# Of the search for the point where a path touches the inside of a circle, as in MuJoCo.
INSIDE_ITERATIONS, INSIDE_TOLERANCE = 20, 1e-6


@dataclass(frozen=True, eq=False)
class Wrap:
    """A path in the geom's frame; one that does not touch the geom is straight."""

    length: Any
    leaves: Vector  # direction at the start
    arrives: Vector  # direction at the end
    first: Vector  # where it meets the geom; straight: the start
    last: Vector  # where it leaves the geom; straight: the start

    @classmethod
    def of(cls, numbers: list[Any]) -> Wrap:
        """The path that `numbers` is the list of."""
        return cls(numbers[0], *(numbers[k : k + 3] for k in range(1, 13, 3)))

    def numbers(self) -> list[Any]:
        """All its numbers in one list."""
        return [self.length, *self.leaves, *self.arrives, *self.first, *self.last]


@dataclass(frozen=True, eq=False)
class PlanarPath:
    """A path in the plane: a straight piece, an arc, a straight piece."""

    lengths: tuple[Any, Any, Any]
    leaves: Vector
    arrives: Vector
    first: Vector
    last: Vector


def wrap(run: Any, start: Vector, end: Vector, radius: float, *, cylinder: bool, side: Vector | None = None) -> Wrap:
    """The path from `start` to `end`, all points in the geom's frame. side: the side site's place."""
    axes = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]] if cylinder else plane_through(start, end)
    ends = [_projected(p, axes) for p in (start, end)]
    exists = (dot(start, start) >= MIN_LENGTH2) & (dot(end, end) >= MIN_LENGTH2) & (radius >= MINVAL)
    within = dot(side, side) < radius * radius if side is not None else False

    def in_space(path: PlanarPath) -> list[Any]:
        return _in_space(path, start, end, axes, cylinder).numbers()

    numbers = straight(start, end).numbers()
    if within is not True:
        touches, turn = goes_round(ends, None if side is None else _projected(side, axes), radius)
        outside = exists & touches & logical_not(within)
        numbers = run.choose(outside, lambda: in_space(path_round(ends, turn, radius)), numbers)
    if within is not False:
        inside = exists & bends_inside(ends, radius) & within
        numbers = run.choose(inside, lambda: in_space(path_inside(run, ends, radius)), numbers)
    return Wrap.of(numbers)


def straight(start: Vector, end: Vector) -> Wrap:
    """The straight path."""
    span = sub(end, start)
    direction = unit(span)
    return Wrap(sqrt(dot(span, span)), direction, direction, start, start)


def unit(v: Vector) -> Vector:
    """v of unit length; the first axis if it has none."""
    length2 = dot(v, v)
    inverse = rsqrt(maximum(length2, MIN_LENGTH2))
    return [select(length2 < MIN_LENGTH2, float(k == 0), x * inverse) for k, x in enumerate(v)]


def plane_through(start: Vector, end: Vector) -> list[Vector]:
    """Two axes of the plane through the origin and both points, the first towards `start`.

    Where the points and the origin lie on a line, MuJoCo takes the plane through the vector that is 0 where `start` is
    largest and 1 elsewhere.
    """
    x = unit(start)
    size = [absolute(c) for c in x]
    second = (size[1] > size[0]) & (size[1] > size[2])
    third = (size[2] > size[0]) & (size[2] > size[1])
    other = [select(second | third, 1.0, 0.0), select(second, 0.0, 1.0), select(third, 0.0, 1.0)]
    other[1] = select(third, 1.0, other[1])
    normal, substitute = cross(start, end), cross(x, other)
    on_a_line = dot(normal, normal) < MIN_LENGTH2
    normal = [select(on_a_line, b, a) for a, b in zip(normal, substitute, strict=True)]
    return [x, unit(cross(unit(normal), x))]


def goes_round(ends: list[Vector], side: Vector | None, radius: float) -> tuple[Any, Any]:
    """Whether the path touches the circle from outside, and its turn about the centre, up to a full one.

    With a side point it is drawn tight from the path over that point; else it takes the shorter way.
    """
    start, end = ends
    direct = _turn(start, end)
    touches = logical_not(_clears(ends, radius))
    turn = direct
    if side is not None:
        turn = _turn(start, side) + _turn(side, end)
        touches = touches | (absolute(turn - direct) >= math.pi)
    span = sub(end, start)
    outside = (dot(start, start) >= radius * radius) & (dot(end, end) >= radius * radius)
    return touches & outside & (dot(span, span) >= MINVAL), turn


def path_round(ends: list[Vector], turn: Any, radius: float) -> PlanarPath:
    """Along the tangents and the arc between, round in the direction of the turn."""
    start, end = ends
    way = select(turn > 0.0, radius, -radius)
    inverse0, inverse1 = (1.0 / dot(p, p) for p in ends)
    free0, free1 = (sqrt(maximum(dot(p, p) - radius * radius, 0.0)) for p in ends)
    arc = maximum(absolute(turn) - atan2(free0, radius) - atan2(free1, radius), 0.0) * radius
    ahead0, ahead1 = (scale(_perpendicular(p), way) for p in ends)
    return PlanarPath(
        lengths=(free0, arc, free1),
        leaves=scale(sub(ahead0, scale(start, free0)), inverse0),
        arrives=scale(add(ahead1, scale(end, free1)), inverse1),
        first=scale(add(scale(start, radius * radius), scale(ahead0, free0)), inverse0),
        last=scale(sub(scale(end, radius * radius), scale(ahead1, free1)), inverse1),
    )


def bends_inside(ends: list[Vector], radius: float) -> Any:
    """Whether a path that must pass inside the circle touches it: where the straight one does not cross it."""
    start, end = ends
    outside = (dot(start, start) > radius * radius) & (dot(end, end) > radius * radius)
    cosine = dot(start, end) * rsqrt(maximum(dot(start, start) * dot(end, end), MIN_LENGTH2))
    return outside & _clears(ends, radius) & (cosine >= MINVAL - 1.0)


def path_inside(run: Any, ends: list[Vector], radius: float) -> PlanarPath:
    """By one point of the circle, where the path is as if reflected."""
    start, end = ends
    touch = _reflection(run, ends, radius)
    one, two = sub(touch, start), sub(end, touch)
    return PlanarPath(
        lengths=(sqrt(dot(one, one)), 0.0, sqrt(dot(two, two))),
        leaves=unit(one),
        arrives=unit(two),
        first=touch,
        last=touch,
    )


def _reflection(run: Any, ends: list[Vector], radius: float) -> Vector:
    """The point of the circle where the path makes the same angle with it on both sides; where the search fails, the
    middle one.

    Seen from the centre, the ends are asin(A sin x) and asin(B sin x) less than x away from the point, for that angle
    x, A and B the radius over the ends' distances: Newton's method on f(x) = asin(A sin x) + asin(B sin x) - 2 x + G, G
    the angle between the ends, from a right angle downwards.
    """
    start, end = ends
    A, B = (radius * rsqrt(dot(p, p)) for p in ends)
    angle = absolute(_turn(start, end))

    def excess(x: Any) -> tuple[Any, Any]:
        """f and its derivative."""
        sine, cosine = sin(x), cos(x)
        f, slope = angle - 2.0 * x, -2.0
        for ratio in (A, B):
            beside = sqrt((1.0 - ratio * sine) * (1.0 + ratio * sine))
            f, slope = f + atan2(ratio * sine, beside), slope + ratio * cosine / maximum(beside, MINVAL)
        return f, slope

    x, f, slope = (run.variable(value) for value in (math.pi / 2, *excess(math.pi / 2)))
    found = run.variable((f.value <= 0.0) & (dot(start, end) * A * B < (1.0 - MINVAL) * radius * radius))
    searching = run.variable(found.value & (absolute(f.value) > INSIDE_TOLERANCE))
    for _ in run.repeat(INSIDE_ITERATIONS, searching):
        x.value = x.value - f.value / slope.value
        f.value, slope.value = excess(x.value)
        found.value = found.value & (f.value <= INSIDE_TOLERANCE)
        searching.value = found.value & (absolute(f.value) > INSIDE_TOLERANCE)
    ahead = _cross(start, end) > 0.0
    sine = select(ahead, A, B) * sin(x.value)
    away = x.value - atan2(sine, sqrt((1.0 - sine) * (1.0 + sine)))
    c, s = cos(away), sin(away)
    along = unit([select(ahead, a, b) for a, b in zip(start, end, strict=True)])
    good = found.value & logical_not(searching.value)
    point = [c * along[0] - s * along[1], s * along[0] + c * along[1]]
    return [radius * select(good, a, b) for a, b in zip(point, unit(add(start, end)), strict=True)]


def _in_space(path: PlanarPath, start: Vector, end: Vector, axes: list[Vector], cylinder: bool) -> Wrap:
    """The path in space: on a cylinder it rises in proportion to its length in the plane."""
    flat = path.lengths[0] + path.lengths[1] + path.lengths[2]
    rise = end[2] - start[2] if cylinder else 0.0
    length = sqrt(flat * flat + rise * rise) if cylinder else flat
    level, climb = (flat / length, rise / length) if cylinder else (1.0, 0.0)
    slope = rise / flat if cylinder else 0.0

    def lifted(planar: Vector, height: Any) -> Vector:
        point = add(scale(axes[0], planar[0]), scale(axes[1], planar[1]))
        return point if is_zero(height) else add(point, [0.0, 0.0, height])

    return Wrap(
        length=length,
        leaves=lifted(scale(path.leaves, level), climb),
        arrives=lifted(scale(path.arrives, level), climb),
        first=lifted(path.first, start[2] + slope * path.lengths[0] if cylinder else 0.0),
        last=lifted(path.last, end[2] - slope * path.lengths[2] if cylinder else 0.0),
    )


def _clears(ends: list[Vector], radius: float) -> Any:
    """Whether the straight line between the ends passes the circle."""
    start, span = ends[0], sub(ends[1], ends[0])
    share = clamp(-dot(span, start) / maximum(dot(span, span), MINVAL), 0.0, 1.0)
    nearest = add(start, scale(span, share))
    return dot(nearest, nearest) > radius * radius


def _projected(point: Vector, axes: list[Vector]) -> Vector:
    return [dot(point, axis) for axis in axes]


def _perpendicular(v: Vector) -> Vector:
    """v after a quarter turn."""
    return [-v[1], v[0]]


def _cross(a: Vector, b: Vector) -> Any:
    return a[0] * b[1] - a[1] * b[0]


def _turn(a: Vector, b: Vector) -> Any:
    """The angle from a to b."""
    return atan2(_cross(a, b), dot(a, b))
