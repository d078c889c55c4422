"""Contacts of a convex shape with a height field, which is made of prisms: two triangles in each cell of the grid, from
the surface down to the base.

Each prism near the shape is tested by itself, and touches at one point (MuJoCo's `mjc_ConvexHField`). Which prisms are
near differs between environments: each goes through its own part of the grid. All is computed in the axes of the field,
about the shape's centre.
"""

from __future__ import annotations

from typing import Any

from pluriverse.collision.height_fields import HeightField
from pluriverse.collision.overlap import FAR, TINY, Difference, Seeds, least_overlap
from pluriverse.collision.placed import Emit, Placed
from pluriverse.collision.support import Support, support_of
from pluriverse.collision_pairs import SPHERE
from pluriverse.dynamics.spatial import (
    Vector,
    add,
    column,
    cross,
    dot,
    matmul,
    matvec,
    negate,
    row,
    scale,
    sub,
    transpose,
)
from pluriverse.trace.functions import floor, maximum, minimum, reciprocal, rsqrt, select

MOST = 50  # contacts of a pair: mjMAXCONPAIR


class Prism(Support):
    """A triangle of the surface and what is below it. `corners`: turning left seen from above."""

    def __init__(self, corners: list[Vector], bottom: Any) -> None:
        super().__init__([0.0] * 3)
        self.corners, self.bottom = corners, bottom

    def point(self, d: Vector) -> tuple[Vector, Any]:
        down = d[2] < 0.0
        best, most = self.corners[0], -FAR
        for corner in self.corners:
            x, y, z = corner
            end = [x, y, select(down, self.bottom, z)]
            along = dot(d, end)
            farther = along > most
            best = [select(farther, new, old) for new, old in zip(end, best, strict=True)]
            most = select(farther, along, most)
        return best, 0.0

    def reach(self, d: Vector) -> Any:
        return dot(d, self.point(d)[0])

    @property
    def top(self) -> Any:
        """The height of the highest corner."""
        a, b, c = (corner[2] for corner in self.corners)
        return maximum(maximum(a, b), c)

    @property
    def middle(self) -> Vector:
        """Of the triangle."""
        return scale(add(add(self.corners[0], self.corners[1]), self.corners[2]), 1.0 / 3.0)

    @property
    def outward(self) -> list[Vector]:
        """The normals of its faces."""
        a, b, c = self.corners
        upward = cross(sub(b, a), sub(c, a))
        sides = [[end[1] - start[1], start[0] - end[0], 0.0] for start, end in ((a, b), (b, c), (c, a))]
        return [scale(v, rsqrt(dot(v, v))) for v in [upward, *sides]] + [[0.0, 0.0, -1.0]]


def field_convex(run: Any, geom1: Placed, geom2: Placed, margin: Any, emit: Emit) -> None:
    """At most 50 contacts, one for each prism of a height field and a convex shape."""
    field, shape = geom1.field, support_of(run, geom2)
    assert field is not None
    inverse = transpose(geom1.rotation)
    centre, rotation = matvec(inverse, sub(geom2.position, geom1.position)), matmul(inverse, geom2.rotation)
    part = _Part(field, shape, rotation, centre, margin)
    number, contacts, running = run.variable(0.0), run.variable(0.0), run.variable(part.count > 0.0)
    for _ in run.repeat(field.fields.most_prisms, running):
        prism = part.prism(number.value)
        for _ in run.when((prism.top >= part.lowest) & (contacts.value < MOST)):
            shapes = Difference(prism, shape, rotation, [0.0, 0.0, 0.0])
            size = minimum(geom2.rbound, field.cell)
            found = least_overlap(run, shapes, _seeds(run, shapes, geom2), margin + shape.radius, size, geom2.rbound)
            distance = -found.depth.value - shape.radius
            for _ in run.when(distance < margin):
                normal = found.direction[0]
                middle = add(centre, sub(found.point[0], scale(normal, 0.5 * shape.radius)))
                position = add(geom1.position, matvec(geom1.rotation, middle))
                emit(distance, position, matvec(geom1.rotation, normal), None)
                contacts.value = contacts.value + 1.0
        number.value = number.value + 1.0
        running.value = number.value < part.count


class _Part:
    """The part of a field that a shape is above or in: how many prisms that are, 0 if the shape is off the field."""

    def __init__(self, field: HeightField, shape: Support, rotation: Vector, centre: Vector, margin: Any) -> None:
        self.field, self.centre = field, centre
        axes = [row(rotation, k) for k in range(3)]  # of the field, in the shape's frame
        lower = [-shape.reach(negate(axis)) - shape.radius - margin for axis in axes]
        upper = [shape.reach(axis) + shape.radius + margin for axis in axes]
        self.lowest = lower[2]  # height above the shape's centre of what can touch
        (self._column, self._columns), (self._row, rows) = (
            _cells(centre[k] + lower[k], centre[k] + upper[k], field.half[k], field.step[k], points)
            for k, points in enumerate((field.columns, field.rows))
        )
        beside = (centre[2] + self.lowest <= field.top) & (centre[2] + upper[2] >= -field.base)
        self.count = select(beside, 2.0 * rows * self._columns, 0.0)

    def prism(self, number: Any) -> Prism:
        """A prism about the shape's centre: row by row, of each cell the upper left one, then the lower right one."""
        cell = floor(0.5 * number)
        row = floor((cell + 0.5) * reciprocal(maximum(self._columns, 1.0)))
        column, row = self._column + cell - row * self._columns, self._row + row
        upper_left = select(number - 2.0 * cell < 0.5, 1.0, 0.0)
        places = (row, column), (row + upper_left, column + 1.0), (row + 1.0, column + 1.0 - upper_left)
        return Prism(
            [sub(self.field.point(*place), self.centre) for place in places], -self.field.base - self.centre[2]
        )


def _cells(lowest: Any, highest: Any, half: Any, step: Any, points: Any) -> tuple[Any, Any]:
    """The first cell of a grid below an extent along one axis, and the number of cells."""
    first = maximum(floor((lowest + half) / step), 0.0)
    last = minimum(-floor(-(highest + half) / step), points - 1.0)
    return first, maximum(last - first, 0.0)


def _seeds(run: Any, shapes: Difference, geom: Placed) -> Seeds:
    """The normals of the prism's faces, the direction from it to the shape, and the shape's axes."""
    assert isinstance(shapes.first, Prism)
    seeds = Seeds(run, shapes)
    for normal in shapes.first.outward:
        seeds.add(normal)
    away = negate(shapes.first.middle)
    length2 = dot(away, away)
    seeds.add([select(length2 > TINY, x * rsqrt(maximum(length2, TINY)), float(k == 2)) for k, x in enumerate(away)])
    for axis in [column(shapes.rotation, k) for k in range(3)] if geom.type != SPHERE else []:
        backward = dot(axis, away) < 0.0
        seeds.add([select(backward, -x, x) for x in axis])
    return seeds
