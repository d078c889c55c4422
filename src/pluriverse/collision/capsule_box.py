"""Contacts of a capsule with a box, in the box's frame."""

from __future__ import annotations

from typing import Any, NamedTuple

from pluriverse.collision.box import SMALL, ball_box, in_frame
from pluriverse.collision.placed import Emit, Placed
from pluriverse.collision.slots import array_of, assign, values_of, variables
from pluriverse.dynamics.spatial import Vector, add, dot, scale, sub
from pluriverse.trace.functions import absolute, clamp, logical_not, maximum, minimum, reciprocal, select

ALIGNED = 64.0  # part of the capsule's direction along an axis that says nothing, in roundings
STEEP = 0.5  # squared cosine of the angle to an edge above which a capsule at a corner is taken to lie along that edge
# The edges of a box, in MuJoCo's order: the axis that each runs along, the next two, and the edge's side of these.
EDGES = [
    (axis, (axis + 1) % 3, (axis + 2) % 3, *(1.0 if corner >> (axis + k) % 3 & 1 else -1.0 for k in (1, 2)))
    for axis in range(3)
    for corner in range(8)
    if not corner >> axis & 1
]


def capsule_box(run: Any, capsule: Placed, box: Placed, margin: float, emit: Emit) -> None:
    """At most 2 contacts, of balls on the capsule's axis.

    The first ball is about the place on the axis that is nearest to the box: an end over a face, or near an edge. The
    second goes from there as far as the axis stays over the face or along the edge, by rules of MuJoCo that look at
    the signs of the axis and of the nearest corner. Places are in units of the half length, from the centre.

    Where a capsule is parallel to a face and hangs over at both ends, MuJoCo finds one contact or two, as rounding has
    it (of lines that are exactly parallel, by the face); here they are always two.
    """
    nearest = _Nearest(run, capsule, box, margin)
    first = nearest.place.value
    step, two = run.choose(nearest.at_edge.value, nearest.step_at_edge, nearest.step_over_face())
    places = run.array(2)
    places[0], places[1] = first, first + step
    count = select(nearest.found, select(two, 2.0, 1.0), 0.0)
    number = run.table([0.0, 1.0])
    for k in run.range(2):
        for _ in run.when(number[k] < count):
            centre = add(capsule.position, scale(capsule.axis, places[k] * capsule.size[1]))
            ball_box(run, centre, capsule.size[0], box, margin, emit)


class _Nearest:
    """The place on a capsule's axis that is nearest to a box, whether it is nearest to an edge, and then to which."""

    def __init__(self, run: Any, capsule: Placed, box: Placed, margin: float) -> None:
        self.size, self.length = list(box.size), capsule.size[1]
        self.aligned = ALIGNED * run.rounding * self.length
        self.centre = in_frame(box, sub(capsule.position, box.position))
        self.half = scale(in_frame(box, capsule.axis), self.length)
        # MuJoCo starts from this length, and compares it with squared distances.
        self.reach = margin + 2.0 * (capsule.size[0] + self.length + self.size[0] + self.size[1] + self.size[2])
        self.distance2, self.place, self.at_edge = run.variable(self.reach), run.variable(0.0), run.variable(False)
        # Of the edge, along it and along the next two axes: the half axis, the box, the signs of the nearest corner and
        # the way there from the axis. Then the place on the edge in units of its half length, and the end of the edge
        # that is nearest, +-1, or 0 for none.
        self.edge_half, self.edge_size, self.corner, self.gap = (variables(run, 3) for _ in range(4))
        self.edge_place, self.edge_end = run.variable(0.0), run.variable(0.0)
        self._search_faces()
        self._search_edges(run)

    @property
    def found(self) -> Any:
        return self.distance2.value < self.reach

    def _search_faces(self) -> None:
        """The capsule's ends, where they are over a face or inside."""
        for end in (-1.0, 1.0):
            point = add(self.centre, scale(self.half, end))
            inward = [clamp(p, -s, s) - p for p, s in zip(point, self.size, strict=True)]
            distance2 = dot(inward, inward)
            x, y, z = _outside(point, self.size)
            nearer = logical_not((x & y) | (y & z) | (z & x)) & (distance2 < self.distance2.value)
            self.distance2.value = select(nearer, distance2, self.distance2.value)
            self.place.value = select(nearer, end, self.place.value)

    def _search_edges(self, run: Any) -> None:
        """The nearest places of the capsule's axis and each edge (Ericson 2005, section 5.1.9)."""
        centre, half, size = (array_of(run, v) for v in (self.centre, self.half, self.size))
        tables = [run.table(column) for column in zip(*EDGES, strict=True)]
        length2 = self.length * self.length
        for edge in run.range(len(EDGES)):
            *axes, side1, side2 = (table[edge] for table in tables)
            h, s, c = ([v[axis] for axis in axes] for v in (half, size, centre))
            d = [-c[0], side1 * s[1] - c[1], side2 * s[2] - c[2]]  # from the capsule's centre to the edge's
            across2, beside = h[1] * h[1] + h[2] * h[2], h[1] * d[1] + h[2] * d[2]

            # The nearest places of the lines, then of each segment to the other's place.
            unclamped = (h[0] * beside * reciprocal(maximum(across2, SMALL * SMALL)) - d[0]) * reciprocal(s[0])
            x, end = clamp(unclamped, -1.0, 1.0), _beyond(unclamped, 0.0)
            unclamped = (beside + h[0] * (d[0] + s[0] * x)) * reciprocal(maximum(length2, SMALL * SMALL))
            place = clamp(unclamped, -1.0, 1.0)
            moved = absolute(unclamped) > 1.0
            unclamped = (h[0] * place - d[0]) * reciprocal(s[0])
            x, end = select(moved, clamp(unclamped, -1.0, 1.0), x), select(moved, _beyond(unclamped, end), end)

            gap = sub([d[0] + s[0] * x, d[1], d[2]], scale(h, place))
            distance2 = dot(gap, gap)
            crosses = (across2 * s[0] * s[0] >= SMALL) & (across2 >= self.aligned * self.aligned)
            for _ in run.when(crosses & (distance2 < self.distance2.value - SMALL)):
                self.distance2.value, self.place.value, self.at_edge.value = distance2, place, True
                self.edge_place.value, self.edge_end.value = x, end
                corner = [select(end > 0.0, 1.0, -1.0), side1, side2]
                assign(self.edge_half + self.edge_size + self.corner + self.gap, h + s + corner + gap)

    def step_over_face(self) -> list[Any]:
        """From an end over a face (there is no second contact where it is inside) to where the axis leaves the box."""
        end = self.place.value
        point = add(self.centre, scale(self.half, end))
        outside = _outside(point, self.size)
        limit: Any = 2.0
        for p, s, h, out in zip(point, self.size, self.half, outside, strict=True):
            ahead = (s - p * select(h * end > 0.0, -1.0, 1.0)) * reciprocal(maximum(absolute(h), SMALL))
            limit = select(logical_not(out) & (ahead > 0.0), minimum(limit, ahead), limit)
        return [-end * limit, outside[0] | outside[1] | outside[2]]

    def step_at_edge(self) -> list[Any]:
        """From a place near an edge."""
        half, size, corner, gap = (values_of(v) for v in (self.edge_half, self.edge_size, self.corner, self.gap))
        spans = [2.0 * s * reciprocal(maximum(absolute(h), SMALL)) for h, s in zip(half, size, strict=True)]
        ahead = [[select(x > 0.0, 1.0, 0.0) for x in vector] for vector in (half, corner)]
        directions = [
            _Direction(h, span, absolute(a - b), g * c)
            for h, span, a, b, g, c in zip(half, spans, *ahead, gap, corner, strict=True)
        ]
        at_corner, on_edge = self._step_at_corner(directions), self._step_on_edge(*directions)
        middle = absolute(self.edge_end.value) < 0.5
        return [select(middle, a, b) for a, b in zip(on_edge, at_corner, strict=True)]

    def _step_at_corner(self, directions: list[_Direction]) -> list[Any]:
        """Along the edge to which the capsule is nearly parallel, or across the face that it is nearest to; none where
        it points away from the corner."""
        x, y, z = directions
        told = self._told(directions, _wider(_wider(x, y), z))
        count = told[0] + told[1] + told[2]
        one = count < 1.5
        odd = [select(one, differs > 0.5, differs < 0.5) for differs in told]  # the axis whose sign stands alone
        along = [select(o, d.half * d.half, 0.0) for o, d in zip(odd, directions, strict=True)]
        steep = along[0] + along[1] + along[2] > STEEP * (self.length * self.length)
        way = select(one, 1.0, -1.0)
        way = select(steep, way, -way)
        limit = 1.0 - way * self.place.value
        for d, o in zip(directions, odd, strict=True):
            limit = select(select(steep, o, logical_not(o)), minimum(limit, d.span), limit)
        return [way * limit, (count > 0.5) & (count < 2.5)]

    def _step_on_edge(self, edge: _Direction, one: _Direction, two: _Direction) -> list[Any]:
        """Across the face to which the capsule is more parallel; none where it crosses both faces alike."""
        wide = _wider(two, one)
        way = select(wide.differs > 0.5, 1.0, -1.0)
        onward = select(edge.half > 0.0, way, -way)  # along the edge
        aside = 0.5 * edge.span * (1.0 - onward * self.edge_place.value)
        limit = minimum(minimum(1.0 - way * self.place.value, wide.span), aside)
        told = self._told([one, two], wide)
        return [way * limit, absolute(told[0] + told[1] - 1.0) < 0.5]

    def _told(self, directions: list[_Direction], wide: _Direction) -> Vector:
        """`differs` by axis, where a part of the axis is so small that rounding made its sign: told by the widest part.

        A line that passes a corner approaches it along one axis and recedes along the other, so the two differ; but
        not where it passes inside the box, or its end is further out than the corner.
        """
        passes = (absolute(self.place.value) < 1.0) | (wide.ahead > 0.0)
        return [
            select(
                absolute(d.half) < self.aligned,
                select(passes & (d.ahead < 0.0), 1.0 - wide.differs, wide.differs),
                d.differs,
            )
            for d in directions
        ]


class _Direction(NamedTuple):
    """What a capsule near a corner of a box does along an axis."""

    half: Any  # of its half axis
    span: Any  # the width of the box, in units of its half axis
    differs: Any  # 1 where it differs in sign from the corner, else 0
    ahead: Any  # by how much the corner is further out than the place on it


def _wider(one: _Direction, two: _Direction) -> _Direction:
    """Along which of two axes the capsule extends more."""
    wider = absolute(two.half) > absolute(one.half)
    return _Direction(*(select(wider, b, a) for a, b in zip(one, two, strict=True)))


def _outside(point: Vector, size: Vector) -> list[Any]:
    """By axis, whether a point is outside the box."""
    return [absolute(p) > s for p, s in zip(point, size, strict=True)]


def _beyond(place: Any, otherwise: Any) -> Any:
    """The end of [-1, 1] beyond which a place lies."""
    return select(place > 1.0, 1.0, select(place < -1.0, -1.0, otherwise))
