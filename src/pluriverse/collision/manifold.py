"""Where two shapes touch along a face: several contacts that span what faces, or a face and an edge, have in common.

If the faces which look most along the contact's normal look at each other within ANGLE, the face of the second shape is
clipped by the sides of that of the first. Else, of the face that looks better along the normal, the other shape's edge
is clipped, if it lies along the face within ANGLE. Of what is left, four corners that span much area touch. These are
the rules of MuJoCo 4.

The face that clips is the reference, what it clips is incident. Corners are given along two tangents of the reference
face, from the contact's middle, and by their height above the face.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import cos, sin
from typing import Any, NamedTuple

from pluriverse.collision.overlap import FAR, TINY, Difference, Overlap, perpendicular
from pluriverse.collision.slots import assign, values_of, variables
from pluriverse.collision.support import Face, Support
from pluriverse.dynamics.spatial import Vector, add, cross, dot, matvec, negate, scale, sub
from pluriverse.trace.functions import absolute, logical_not, maximum, minimum, reciprocal, rsqrt, select, sqrt

MOST = 4  # contacts
ANGLE = 0.0889  # [rad]
APART = 1e-4  # distance of two contacts, in units of the smaller shape's bounding radius, below which they are one


def can_be_many(first: Support, second: Support) -> bool:
    """Whether two shapes can touch along a face."""
    return bool(first.most_corners and second.has_edges) or bool(second.most_corners and first.has_edges)


class Patch:
    """At most four contacts with one normal, in the frame of the first shape."""

    def __init__(self, run: Any, normal: Vector, middle: Vector, distance: Any) -> None:
        """One contact."""
        self.run, self.normal, self.places = run, variables(run, 3), run.array(4 * MOST)
        assign(self.normal, normal)
        for k in range(MOST):
            self.put(k, middle, FAR if k else distance)

    def put(self, k: Any, position: Vector, distance: Any) -> None:
        """Sets a contact: where it is, half way between the surfaces, and the distance; FAR: there is none."""
        for i, x in enumerate([*position, distance]):
            self.places[k * 4 + i] = x

    def each(self) -> Iterator[tuple[Any, Vector]]:
        """The contacts' distances and positions."""
        for k in self.run.range(MOST):
            yield self.places[k * 4 + 3], [self.places[k * 4 + i] for i in range(3)]


class _Side:
    """One shape as the other meets it: its pose in the frame of the first, the direction to the other in its own frame,
    and the face that looks most along it."""

    def __init__(self, shape: Support, shapes: Difference, found: Overlap, second: bool) -> None:
        self.shape, self.second, self.shapes = shape, second, shapes
        direction = found.direction[0]
        self.direction = self.inward(negate(direction) if second else direction)
        self.name = found.names[second].value
        self.face: Face | None = shape.face(self.direction, self.name) if shape.most_corners else None
        self.normal = [0.0, 0.0, 0.0] if self.face is None else self.outward(self.face.normal)  # frame of the first
        self.facing = -dot(self.normal, direction) if second else dot(self.normal, direction)
        self.most = max(shape.most_corners, 2)

    def outward(self, vector: Vector) -> Vector:
        return matvec(self.shapes.rotation, vector) if self.second else vector

    def inward(self, vector: Vector) -> Vector:
        return matvec(self.shapes.inverse, vector) if self.second else vector

    def place(self, point: Vector) -> Vector:
        return add(self.outward(point), self.shapes.position) if self.second else point

    def height(self, point: Vector) -> Any:
        """How high a point, in the frame of the first shape, is above the face's plane."""
        assert self.face is not None
        local = self.inward(sub(point, self.shapes.position)) if self.second else point
        return dot(self.face.normal, local) - self.face.offset

    def edge_along(self, other: _Side) -> tuple[tuple[Vector, Vector], Any]:
        """The ends of the edge that lies most along the other's face, and whether it does."""
        if other.face is None or not self.shape.has_edges:
            return ([0.0] * 3, [0.0] * 3), False
        ends = self.shape.edge(self.direction, self.name, self.inward(other.normal))
        along = self.outward(sub(ends[1], ends[0]))
        slope = dot(along, other.normal)
        return ends, slope * slope < sin(ANGLE) ** 2 * dot(along, along)

    def corner(self, i: Any, number: Any, ends: tuple[Vector, Vector], as_edge: Any) -> Vector:
        """Corner i of the face, or an end of the edge, in the frame of the first shape. number: i as a float."""
        end = [select(number > 0.5, y, x) for x, y in zip(*ends, strict=True)]
        if self.face is None:
            return self.place(end)
        corner = self.shape.corner(self.face, i)
        return self.place([select(as_edge, x, y) for x, y in zip(end, corner, strict=True)])


class _Polygon:
    """Corners along two tangents and above a plane, whose number differs between environments."""

    def __init__(self, run: Any, most: int) -> None:
        self.run, self.most = run, most
        self._numbers = run.table([float(k) for k in range(most)])
        self._corners, self._last, self._count = run.array(3 * most), variables(run, 3), run.variable(0.0)

    def put(self, i: Any, corner: Vector) -> None:
        """Appends a corner; i: how many there were."""
        for k, x in enumerate(corner):
            self._corners[i * 3 + k] = x
        assign(self._last, corner)
        self._count.value = self._numbers[i] + 1.0

    @property
    def last(self) -> Vector:
        return values_of(self._last)

    def each(self, fewer: Any = 0.0) -> Iterator[tuple[Any, Vector]]:
        """A traced loop over the corners but the last `fewer`, with their places."""
        for i in self.run.range(self.most):
            for _ in self.run.when(self._numbers[i] < self._count.value - fewer):
                yield i, [self._corners[i * 3 + k] for k in range(3)]

    def sides(self, fewer: Any = 0.0) -> Iterator[tuple[Any, Vector, Vector]]:
        """A traced loop over the sides, from the one that ends in the first corner: place, start and end."""
        start = variables(self.run, 3)
        assign(start, self.last)
        for i, end in self.each(fewer):
            yield i, values_of(start), end
            assign(start, end)


class _Reference(NamedTuple):
    """The frame of the reference face, and what the contacts' places are computed from."""

    origin: Vector  # of the tangents, in the plane
    tangents: tuple[Vector, Vector]
    normal: Vector
    contact_normal: Vector  # from the first shape to the second
    stretch: Any  # distance by height
    side: Any  # 0.5: the incident corner is half the distance further along the contact's normal; -0.5

    def local(self, point: Vector) -> Vector:
        away = sub(point, self.origin)
        return [dot(self.tangents[0], away), dot(self.tangents[1], away), dot(self.normal, away)]

    def contact(self, corner: Vector) -> tuple[Vector, Any]:
        """Position and distance of the contact at an incident corner."""
        distance = corner[2] * self.stretch
        in_plane = add(scale(self.tangents[0], corner[0]), scale(self.tangents[1], corner[1]))
        return add(add(self.origin, in_plane), scale(self.contact_normal, self.side * distance)), distance


def find_patch(run: Any, shapes: Difference, found: Overlap, patch: Patch, margin: Any, size: Any) -> None:
    """Replaces the one contact by several where the shapes touch along a face.

    margin: the greatest distance of a contact [m]; size: bounding radius of the smaller shape [m].
    """
    first, second = _Side(shapes.first, shapes, found, False), _Side(shapes.second, shapes, found, True)
    opposed = dot(first.normal, second.normal)
    aligned = (opposed < -cos(ANGLE)) & (first.facing > sin(ANGLE)) & (second.facing > sin(ANGLE))
    (ends1, along1), (ends2, along2) = first.edge_along(second), second.edge_along(first)
    second_better = second.facing > first.facing
    on_second = logical_not(aligned) & second_better & along1
    on_first = logical_not(aligned) & logical_not(second_better) & along2
    for _ in run.when(aligned | on_second | on_first):
        middle = patch.places[0], patch.places[1], patch.places[2]
        reference = _reference(first, second, aligned, on_second, list(middle), opposed)
        most = max(first.most, second.most)
        clipping, incident = _Polygon(run, most), _Polygon(run, most)
        for side, ends, as_edge, clips in (
            (first, ends1, on_second, logical_not(on_second)),
            (second, ends2, on_first, on_second),
        ):
            _fill(run, side, ends, as_edge, clips, reference, clipping, incident)
        corners, twice = _clip(run, clipping, incident, aligned, reference, (first, second))
        _choose(corners, twice, reference, patch, margin, APART * size)


def _reference(first: _Side, second: _Side, aligned: Any, on_second: Any, middle: Vector, opposed: Any) -> _Reference:
    normal = [select(on_second, x, y) for x, y in zip(second.normal, first.normal, strict=True)]
    contact_normal = [select(aligned | on_second, -x, y) for x, y in zip(second.normal, first.normal, strict=True)]
    height = second.height(middle) if first.face is None else first.height(middle)
    if first.face is not None and second.face is not None:
        height = select(on_second, second.height(middle), height)
    across = perpendicular(normal)
    tangent = scale(across, rsqrt(maximum(dot(across, across), TINY)))
    origin = sub(middle, scale(normal, height))
    stretch = select(aligned, -opposed, 1.0)
    return _Reference(
        origin, (tangent, cross(normal, tangent)), normal, contact_normal, stretch, select(on_second, -0.5, 0.5)
    )


def _fill(
    run: Any,
    side: _Side,
    ends: tuple[Vector, Vector],
    as_edge: Any,
    clips: Any,
    reference: _Reference,
    clipping: _Polygon,
    incident: _Polygon,
) -> None:
    """Puts the corners of one shape's face, or the ends of its edge, into the polygon that it is."""
    numbers = run.table([float(k) for k in range(side.most)])
    count = 2.0 if side.face is None else select(as_edge, 2.0, side.face.count)
    for i in run.range(side.most):
        for _ in run.when(numbers[i] < count):
            corner = reference.local(side.corner(i, numbers[i], ends, as_edge))
            for _ in run.when(clips):
                clipping.put(i, corner)
            for _ in run.when(logical_not(clips)):
                incident.put(i, corner)


class _Corners:
    """Corners of what two polygons have in common; there may be the same ones several times."""

    def __init__(self, run: Any, capacity: int) -> None:
        self.run, self.capacity, self._corners = run, capacity, run.array(3 * capacity)
        for k in run.range(capacity):
            self._corners[k * 3 + 2] = FAR

    def put(self, k: Any, corner: Vector, exists: Any) -> None:
        """Sets a corner: its place along the tangents, and its height."""
        for i, x in enumerate([corner[0], corner[1], select(exists, corner[2], FAR)]):
            self._corners[k * 3 + i] = x

    def farthest(self, measure: Callable[[Vector], Any], least: Any, lower: Any) -> tuple[Vector, Any]:
        """The corner with the largest measure of those that are lower, and whether there is one with more than
        `least`."""
        run = self.run
        most, best = run.variable(least), variables(run, 3)
        for k in run.range(self.capacity):
            corner = [self._corners[k * 3 + i] for i in range(3)]
            value = measure(corner)
            better = (value > most.value) & (corner[2] < lower)
            most.value = select(better, value, most.value)
            assign(best, [select(better, x, y) for x, y in zip(corner, values_of(best), strict=True)])
        return values_of(best), most.value > least


def _clip(
    run: Any, clipping: _Polygon, incident: _Polygon, aligned: Any, reference: _Reference, sides: tuple[_Side, _Side]
) -> tuple[_Corners, Any]:
    """Corners of what the polygons have in common, and whether the lower one of an edge counts twice where it is alone:
    if it was cut off there, as in MuJoCo.

    Each side of the incident polygon is cut off where it leaves the clipping one (Cyrus and Beck 1978): its ends are
    corners. So are those of the clipping polygon that lie in the incident one.
    """
    most, edge_only, twice = clipping.most, logical_not(aligned), run.variable(False)
    corners = _Corners(run, 3 * most)
    for j, start, end in incident.sides(select(edge_only, 1.0, 0.0)):
        enter, leave = run.variable(0.0), run.variable(1.0)
        for _, a, b in clipping.sides():
            inside1, inside2 = _left_of(a, b, start), _left_of(a, b, end)
            enters, leaves = inside1 < 0.0, inside2 < 0.0
            crossing = absolute(inside1) * reciprocal(maximum(absolute(inside1) + absolute(inside2), TINY))
            enter.value = select(enters, select(leaves, 2.0, maximum(enter.value, crossing)), enter.value)
            leave.value = select(leaves & logical_not(enters), minimum(leave.value, crossing), leave.value)
        along, exists = sub(end, start), enter.value <= leave.value
        corners.put(j, add(start, scale(along, enter.value)), exists)
        corners.put(j + most, add(start, scale(along, leave.value)), exists & (edge_only | (leave.value < 1.0)))
        twice.value = edge_only & select(along[2] > 0.0, enter.value > 0.0, leave.value < 1.0)
    first, second = sides
    if first.face is not None and second.face is not None:
        slopes = [dot(second.normal, tangent) for tangent in reference.tangents]
        steepness = reciprocal(minimum(dot(second.normal, reference.normal), -0.5))
        foot = incident.last
        for i, corner in clipping.each():
            for _ in run.when(aligned):
                inside = run.variable(True)
                for _, a, b in incident.sides():  # which turns right around the reference's normal
                    inside.value = inside.value & (_left_of(a, b, corner) <= 0.0)
                away = sub(corner, foot)
                height = foot[2] - (slopes[0] * away[0] + slopes[1] * away[1]) * steepness
                corners.put(i + 2 * most, [corner[0], corner[1], height], inside.value)
    return corners, twice.value


def _left_of(a: Vector, b: Vector, point: Vector) -> Any:
    """How far a point is to the left of the line from a to b, times the length from a to b."""
    return (b[0] - a[0]) * (point[1] - a[1]) - (b[1] - a[1]) * (point[0] - a[0])


def _choose(corners: _Corners, twice: Any, reference: _Reference, patch: Patch, margin: Any, apart: Any) -> None:
    """Four of the corners below the margin that span much area: the farthest from the middle, the one farthest from
    that, the one farthest from the line through both, and the one farthest outside of their triangle."""
    lower = margin * reciprocal(reference.stretch)

    def length(p: Vector, q: Vector) -> Any:
        return sqrt((q[0] - p[0]) * (q[0] - p[0]) + (q[1] - p[1]) * (q[1] - p[1]))

    def distance_from_line(p: Vector, q: Vector) -> Callable[[Vector], Any]:
        shorten = reciprocal(maximum(length(p, q), TINY))
        return lambda point: _left_of(p, q, point) * shorten

    a, any_left = corners.farthest(lambda p: length([0.0, 0.0], p), -1.0, lower)
    for _ in corners.run.when(any_left):
        b, two = corners.farthest(lambda p: length(a, p), apart, lower)
        from_ab = distance_from_line(a, b)
        c, three = corners.farthest(lambda p: absolute(from_ab(p)), apart, lower)  # noqa: B023  a block, no loop
        turn = select(from_ab(c) < 0.0, -1.0, 1.0)
        sides = [from_ab, distance_from_line(b, c), distance_from_line(c, a)]

        def outside(p: Vector) -> Any:
            left, right, behind = (side(p) * turn for side in sides)  # noqa: B023
            return -minimum(minimum(left, right), behind)

        d, four = corners.farthest(outside, apart, lower)
        three = two & three
        second = [select(two, x, y) for x, y in zip(b, a, strict=True)]
        assign(patch.normal, reference.contact_normal)
        for k, (corner, exists) in enumerate(((a, True), (second, two | twice), (c, three), (d, three & four))):
            position, distance = reference.contact(corner)
            patch.put(k, position, select(exists, distance, FAR))
