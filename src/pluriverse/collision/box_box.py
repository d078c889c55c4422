"""Contacts of two boxes: along the axis of least overlap, either all around where two faces overlap, or of two edges.

Of the 15 axes that can separate two boxes (6 face normals, 9 products of two edges; Gottschalk et al., "OBBTree", 1996)
the one with the largest separation decides. If it is a face normal, the face of the other box which looks most against
it is clipped by the first face, and each corner of what is left touches. If it belongs to two edges, their nearest
places touch. MuJoCo prefers faces where they are nearly as good: only they hold a stack.

Which axis decides differs between environments. It is kept as a number, the feature: 3 f + k for face f (0..2 of box 1,
3..5 of box 2) against the faces of the other box across its axis k; 18 + 3 i + j for the edges along axis i of box 1
and axis j of box 2. A `_View` holds what there is to know of the boxes in an order that begins with these axes.
"""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

from pluriverse.collision.placed import Emit, Placed
from pluriverse.collision.slots import array_of, assign, values_of, variables
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
from pluriverse.trace.functions import absolute, clamp, logical_not, maximum, minimum, reciprocal, rsqrt, select

# Tolerances, in roundings (`run.rounding`); so they are about MuJoCo's for either precision.
SLACK = 16.0  # of a separation, times the sum of all half sizes
SLACK_ON_FACE = 8.0  # of a place on a face, times the sum of all half sizes
SAME_PLACE = 32.0  # between places on a face of which only one touches, times the sum of all half sizes
PARALLEL = 2.0  # squared sine of the angle between edges below which their product has no direction
# MuJoCo's preferences.
ALIKE, EDGE_GAIN = 0.99, 0.05  # cosine of the angle to the best face above which two edges must be better by this part
EDGE_BIAS = 1e-6  # part of its separation by which they must be better than any face
NEAR = 1e-7  # between places on a face of which only one touches, in units of half its diagonal

FEATURES = [(3 * box + axis, other) for box in (0, 1) for axis in range(3) for other in range(3)]
FEATURES += [(axis1, axis2) for axis1 in range(3) for axis2 in range(3)]
FIRST_EDGE = 18
CORNERS = ((1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0), (1.0, -1.0))  # of a face, around it
MOST = 8  # corners of a quadrilateral that is clipped by another


def box_box(run: Any, box1: Placed, box2: Placed, margin: float, emit: Emit) -> None:
    """At most 8 contacts."""
    boxes = _Boxes(run, box1, box2)
    face = _best_face(boxes)
    for _ in run.when(face.separation.value < margin + boxes.slack):
        feature, farthest = _best_feature(boxes, face)
        for _ in run.when(farthest < margin + boxes.slack):
            _touch(boxes, _View.of(boxes, feature), feature, margin, emit)


class _Boxes:
    """Two boxes in each other's frames, in arrays: those of box 1 first."""

    def __init__(self, run: Any, box1: Placed, box2: Placed) -> None:
        self.run, self.positions = run, (box1.position, box2.position)
        axes1, axes2 = transpose(box1.rotation), transpose(box2.rotation)
        apart = sub(box2.position, box1.position)
        turn = matmul(axes1, box2.rotation)
        sizes = [*box1.size, *box2.size]
        self.rounding = run.rounding * (sizes[0] + sizes[1] + sizes[2] + sizes[3] + sizes[4] + sizes[5])
        self.slack = SLACK * self.rounding
        self.size = array_of(run, sizes)
        self.axes = array_of(run, axes1 + axes2)  # each axis's parts in world axes
        self.turn = array_of(run, turn + transpose(turn))  # each axis's parts along the axes of the other box
        self.centre = array_of(run, matvec(axes1, apart) + negate(matvec(axes2, apart)))  # of the other box, along each


class _Face(NamedTuple):
    """The face normal with the largest separation."""

    separation: Any
    feature: Any
    normal: list[Any]  # of either sign


def _best_face(boxes: _Boxes) -> _Face:
    run = boxes.run
    best = _Face(run.variable(-inf), run.variable(0.0), variables(run, 3))
    first = run.table([float(3 * face) for face in range(6)])
    others = run.table([3, 3, 3, 0, 0, 0])
    for face in run.range(6):
        x, y, z = (absolute(boxes.turn[3 * face + k]) for k in range(3))
        size = [boxes.size[others[face] + k] for k in range(3)]
        separation = absolute(boxes.centre[face]) - boxes.size[face] - dot(size, [x, y, z])
        across = select(z > maximum(x, y), 2.0, select(y > x, 1.0, 0.0))
        for _ in run.when(separation > best.separation.value):
            best.separation.value, best.feature.value = separation, first[face] + across
            assign(best.normal, [boxes.axes[3 * face + k] for k in range(3)])
    return best


def _best_feature(boxes: _Boxes, face: _Face) -> tuple[Any, Any]:
    """The feature that decides, and the largest separation of all axes."""
    run, turn, size, parallel = boxes.run, boxes.turn, boxes.size, PARALLEL * boxes.run.rounding
    level, normal = face.separation.value, values_of(face.normal)
    best, feature, alike = run.variable(level), run.variable(0.0), run.variable(False)
    numbers = run.table([float(FIRST_EDGE + n) for n in range(9)])
    i0, i1, i2 = (run.table([(n // 3 + k) % 3 for n in range(9)]) for k in range(3))
    j0, j1, j2 = (run.table([(n + k) % 3 for n in range(9)]) for k in range(3))
    for n in run.range(9):
        # The product of the edges in box 1's frame, (0, a, b), and in box 2's, (0, c, d), along these axes.
        a, b = -turn[3 * i2[n] + j0[n]], turn[3 * i1[n] + j0[n]]
        c, d = turn[3 * i0[n] + j2[n]], -turn[3 * i0[n] + j1[n]]
        length2 = a * a + b * b
        unit = rsqrt(maximum(length2, parallel))
        reach = size[i1[n]] * absolute(a) + size[i2[n]] * absolute(b)
        reach = reach + (size[3 + j1[n]] * absolute(c) + size[3 + j2[n]] * absolute(d))
        separation = (absolute(a * boxes.centre[i1[n]] + b * boxes.centre[i2[n]]) - reach) * unit
        for _ in run.when((length2 >= parallel) & (separation > best.value)):
            best.value, feature.value = separation, numbers[n]
            one, two = ([boxes.axes[first + k] for k in range(3)] for first in (3 * i0[n], 9 + 3 * j0[n]))
            alike.value = absolute(dot(cross(one, two), normal)) * unit > ALIKE
    needed = level + boxes.slack + select(alike.value, EDGE_GAIN, EDGE_BIAS) * absolute(level)
    return select(best.value > needed, feature.value, face.feature.value), best.value


class _View(NamedTuple):
    """The boxes as a feature sees them: first the axis of the box that has the face (or of box 1), then the next two of
    it; and likewise for the other box, which has the opposing face."""

    first: Any  # whether the box with the face is box 1
    position: Vector  # of its centre
    axes: Vector  # its three axes in world axes, one a row
    size: Vector
    turn: Vector  # each of its axes' (a row) parts along the other box's axes
    centre: Vector  # of the other box, along its axes
    other_size: Vector

    @classmethod
    def of(cls, boxes: _Boxes, feature: Any) -> _View:
        run = boxes.run
        numbers = run.table([float(n) for n in range(len(FEATURES))])
        is_first = run.table([1.0 if axis < 3 else 0.0 for axis, _ in FEATURES])
        rows = [run.table([axis - axis % 3 + (axis + k) % 3 for axis, _ in FEATURES]) for k in range(3)]
        columns = [run.table([(other + k) % 3 for _, other in FEATURES]) for k in range(3)]
        start = run.table([3 if axis < 3 else 0 for axis, _ in FEATURES])
        first = run.variable(0.0)
        axes, turn = variables(run, 9), variables(run, 9)
        size, centre, other_size = variables(run, 3), variables(run, 3), variables(run, 3)
        for n in run.range(len(FEATURES)):
            for _ in run.when(absolute(feature - numbers[n]) < 0.5):
                r, c = [table[n] for table in rows], [table[n] for table in columns]
                first.value = is_first[n]
                assign(axes, [boxes.axes[3 * i + k] for i in r for k in range(3)])
                assign(turn, [boxes.turn[3 * i + j] for i in r for j in c])
                assign(size, [boxes.size[i] for i in r])
                assign(centre, [boxes.centre[i] for i in r])
                assign(other_size, [boxes.size[start[n] + j] for j in c])
        one = first.value > 0.5
        position = [select(one, p, q) for p, q in zip(*boxes.positions, strict=True)]
        return cls(one, position, *(values_of(v) for v in (axes, size, turn, centre, other_size)))


class _Patch:
    """The contacts: places on a plane between the boxes, [x, y, z], with x and y along it and z the distance."""

    def __init__(self, run: Any, same2: Any) -> None:
        self.run, self.same2 = run, same2  # squared distance on the plane below which two places are one
        self.number = run.table([float(n) for n in range(MOST)])
        self.count = run.variable(0.0)
        self.points = [run.array(MOST) for _ in range(3)]
        for n in run.range(MOST):
            self._put(n, [0.0, 0.0, 0.0])

    def add(self, point: Vector, most: Any) -> None:
        """Adds a contact, unless it is where another one is. most: of the contacts that there may be with it."""
        run, (x, y, _) = self.run, self.points
        new = run.variable(True)
        for n in run.range(most):
            used = self.number[n] < self.count.value
            apart = [point[0] - x[n], point[1] - y[n]]
            new.value = new.value & logical_not(used & (dot(apart, apart) < self.same2))
            here = new.value & (absolute(self.number[n] - self.count.value) < 0.5)
            self._put(n, [select(here, p, array[n]) for p, array in zip(point, self.points, strict=True)])
        self.count.value = minimum(self.count.value + select(new.value, 1.0, 0.0), float(MOST))

    def only(self, point: Vector) -> None:
        """Makes this the only contact."""
        self._put(0, point)
        self.count.value = 1.0

    def each(self) -> Any:
        """A traced loop over the contacts."""
        for n in self.run.range(MOST):
            for _ in self.run.when(self.number[n] < self.count.value):
                yield [array[n] for array in self.points]

    def _put(self, n: Any, point: Vector) -> None:
        for array, value in zip(self.points, point, strict=True):
            array[n] = value


def _touch(boxes: _Boxes, view: _View, feature: Any, margin: float, emit: Emit) -> None:
    """The contacts of a feature. Those of a face lie around its middle, each at half its distance along the normal;
    that of two edges is the middle."""
    run = boxes.run
    by_edges = feature > FIRST_EDGE - 0.5
    ahead = select(view.centre[0] >= 0.0, 1.0, -1.0)
    outward = scale(row(view.axes, 0), ahead)
    middle = add(view.position, scale(outward, view.size[0]))
    *middle, nx, ny, nz, distance = run.choose(by_edges, lambda: _crossing(run, view), [*middle, *outward, inf])
    outward = [nx, ny, nz]

    same = SAME_PLACE * boxes.rounding
    near2 = (NEAR * NEAR) * (view.size[1] * view.size[1] + view.size[2] * view.size[2])
    patch = _Patch(run, maximum(same * same, near2))
    for _ in run.when(distance < margin):
        patch.only([0.0, 0.0, distance])
    for _ in run.when(logical_not(by_edges)):
        for point, most in _clipped_face(boxes, view, ahead):
            for _ in run.when(point[2] < margin):
                patch.add(point, most)
    side = select(view.first, 1.0, -1.0)
    normal = scale(outward, side)
    for x, y, z in patch.each():
        along = add(scale(row(view.axes, 1), x), scale(row(view.axes, 2), y))
        emit(z, add(middle, add(along, scale(outward, 0.5 * z))), normal, None)


def _crossing(run: Any, view: _View) -> Vector:
    """Of two edges: the point between their nearest places that lies half their distance behind it, the unit normal
    away from the view's first box, and the distance along it (Ericson 2005, section 5.1.9).

    No part of the normal is so small that rounding decides between an edge and the opposite one: such a normal would be
    that of a face, to which faces of no less separation are preferred.
    """
    turn, (h0, h1, h2), (g0, g1, g2) = view.turn, view.size, view.other_size
    sine2 = maximum(turn[3] * turn[3] + turn[6] * turn[6], PARALLEL * run.rounding)
    unit = rsqrt(sine2)
    unit = select(turn[3] * view.centre[2] - turn[6] * view.centre[1] < 0.0, -unit, unit)
    a, b, c, d = -turn[6] * unit, turn[3] * unit, turn[2] * unit, -turn[1] * unit  # of the normal, as in _best_feature

    def side(part: Any, size: Any) -> Any:
        """Where an edge lies along an axis of which the normal away from its box has this part."""
        return select(part >= 0.0, size, -size)

    edge = [side(a, h1), side(b, h2)]
    other_edge = [0.0, -side(c, g1), -side(d, g2)]
    e0, e1, e2 = add(view.centre, matvec(turn, other_edge))
    e1, e2 = e1 - edge[0], e2 - edge[1]  # from the middle of one edge to that of the other
    cosine, along1, along2 = column(turn, 0)  # of the other edge
    beside = along1 * e1 + along2 * e2
    s = clamp(e0 - cosine * beside * reciprocal(sine2), -h0, h0)
    t = clamp(cosine * (s - e0) - beside, -g0, g0)
    s = clamp(e0 + cosine * t, -h0, h0)
    gap = [e0 + cosine * t - s, e1 + along1 * t, e2 + along2 * t]
    distance = a * gap[1] + b * gap[2]
    behind = sub(add([s, *edge], scale(gap, 0.5)), scale([0.0, a, b], 0.5 * distance))
    to_world = transpose(view.axes)
    return [*add(view.position, matvec(to_world, behind)), *matvec(to_world, [0.0, a, b]), distance]


def _clipped_face(boxes: _Boxes, view: _View, ahead: Any) -> Any:
    """A traced loop over the corners of the other box's face clipped by the view's first one, some of them twice.

    Yields ([x, y, distance], how many there may be with it): x and y on the first face, and the distance from it.
    An edge of the other face is cut at four lines (Liang and Barsky, 1984); a corner of the first may lie in the other.
    Rounding may put points of edges that nearly coincide on either side: those within a slack count as inside.
    """
    run, slack, turn = boxes.run, SLACK_ON_FACE * boxes.rounding, view.turn
    (h0, h1, h2), (g0, g1, g2) = view.size, view.other_size
    # Middle of the other face and its half edges, as (x, y, distance).
    inward = g0 * select(ahead * turn[0] > 0.0, -1.0, 1.0)
    middle = [view.centre[1] + inward * turn[3], view.centre[2] + inward * turn[6]]
    middle.append(absolute(view.centre[0]) - h0 - g0 * absolute(turn[0]))
    u = [g1 * turn[4], g1 * turn[7], g1 * turn[1] * ahead]
    v = [g2 * turn[5], g2 * turn[8], g2 * turn[2] * ahead]

    here = [run.table(signs) for signs in zip(*CORNERS, strict=True)]
    following = [run.table(signs) for signs in zip(*CORNERS[1:], CORNERS[0], strict=True)]
    most = run.table([min(n + 1, MOST) for n in range(12)])
    candidates = [run.array(12) for _ in range(3)]

    def keep(n: Any, exists: Any, point: Vector) -> None:
        for array, value in zip(candidates, [*point[:2], select(exists, point[2], inf)], strict=True):
            array[n] = value

    for n in run.range(4):
        p = add(middle, add(scale(u, here[0][n]), scale(v, here[1][n])))
        q = add(middle, add(scale(u, following[0][n]), scale(v, following[1][n])))
        start, end, exists = _cut(p, q, (h1, h2), slack)
        edge = sub(q, p)
        keep(3 * n, exists, add(p, scale(edge, start)))
        keep(3 * n + 1, exists & (end < 1.0), add(p, scale(edge, end)))

        x, y = here[0][n] * h1 - middle[0], here[1][n] * h2 - middle[1]
        depth = -(turn[3] * x + turn[6] * y) * reciprocal(turn[0])  # where the other face is under or over that corner
        along = absolute(turn[4] * x + turn[7] * y + turn[1] * depth)
        aside = absolute(turn[5] * x + turn[8] * y + turn[2] * depth)
        inside = (along < g1 + slack) & (aside < g2 + slack)
        keep(3 * n + 2, inside, add(middle, [x, y, depth * ahead]))
    for n in run.range(12):
        yield [array[n] for array in candidates], most[n]


def _cut(p: Vector, q: Vector, sizes: Any, slack: Any) -> tuple[Any, Any, Any]:
    """The part of the way from p to q over a rectangle: where it starts and ends (0..1), and whether there is any."""
    start: Any = 0.0
    end: Any = 1.0
    exists: Any = True
    for k, size in enumerate(sizes):
        for side in (1.0, -1.0):
            over_p, over_q = side * p[k] - size, side * q[k] - size
            in_p, in_q = over_p <= slack, over_q <= slack
            leaves, enters = in_p & logical_not(in_q), in_q & logical_not(in_p)
            place = clamp(over_p * reciprocal(select(leaves | enters, over_p - over_q, 1.0)), 0.0, 1.0)
            start, end = select(enters, maximum(start, place), start), select(leaves, minimum(end, place), end)
            exists = exists & (in_p | in_q)
    return start, end, exists & (start <= end)
