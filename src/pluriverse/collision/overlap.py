"""How far two convex shapes overlap or are apart: the direction along which they overlap least.

All points a - b of two shapes make their difference, and h(d), how far that reaches along the unit vector d, is by how
much the second shape must move along d to be beyond a plane from the first. The least h is the penetration depth, or
where it is negative, minus the distance; it belongs to the contact's normal.

The search moves the second shape along the best direction yet, until it is clear of the first by a part of its size,
and finds the nearest points there by the method of Gilbert, Johnson and Keerthi (GJK, 1988): the direction between
these is no worse, and is where the next round starts. Where it does not change, it is the best around. Nothing is ever
computed at touching points, where directions are lost in rounding, and there is no polytope to expand. Every round is a
step of the proximal point method (Rockafellar 1976) on h.

Along curved surfaces GJK converges slowly. There every other direction is Newton's: h is curved as its shapes are, and
while two corners are farthest, an edge lies in the plane across the direction, which turns about that edge only.

Deep inside each other, shapes overlap least along one direction here and along another there. Then the search begins
again from the next best of the directions that the faces of both shapes propose.
"""

from __future__ import annotations

from typing import Any

from pluriverse.collision.support import Mesh, Support
from pluriverse.dynamics.spatial import (
    Vector,
    add,
    cross,
    dot,
    matvec,
    negate,
    rotate_symmetric,
    scale,
    sub,
    symmetric_matrix,
    transpose,
)
from pluriverse.trace.functions import absolute, clamp, logical_not, maximum, minimum, reciprocal, rsqrt, select, sqrt

FAR = 1e18
TINY = 1e-30
CLEAR = 0.3  # how far apart shapes are moved, in units of the smaller one's bounding radius
DEEP = 0.05  # penetration in that unit from which the search begins again
STARTS = 3
ITERATIONS = 40  # points of the difference that are tried from one direction on
TOLERANCE = 1e-6  # of the depth, in units of the smaller shape's bounding radius,
ROUNDINGS = 2.0  # and by how many roundings of the coordinates
TURN = 0.3  # the most that one step of Newton's turns the direction [rad]
EXACT, ALMOST = 1e-5, 1e-3  # a step of Newton's [rad] that need not be made, and one after which it is exact
FLAT = 1e-10  # squared sine of a triangle's angle below which it has no direction


class Difference:
    """The difference of two cores, in the frame of the first. `rotation`, `position`: of the second, in there."""

    def __init__(self, first: Support, second: Support, rotation: Vector, position: Vector) -> None:
        self.first, self.second, self.rotation, self.position = first, second, rotation, position
        self.inverse = transpose(rotation)
        self.curved = max(first.curved, second.curved)

    def point(self, d: Vector) -> tuple[Vector, Vector, Vector]:
        """The farthest point along d: of the first core, of the difference, and the names of both vertices."""
        a, name1 = self.first.point(d)
        b, name2 = self.second.point(negate(matvec(self.inverse, d)))
        return a, sub(sub(a, matvec(self.rotation, b)), self.position), [name1, name2]

    def reach(self, d: Vector) -> Any:
        """How far the difference reaches along d, at most."""
        return self.first.reach(d) + self.second.reach(negate(matvec(self.inverse, d))) - dot(d, self.position)

    def middle(self, d: Vector, depth: Any, point: Vector) -> Vector:
        """The point half way between the cores' nearest points, which a search has found roughly: where one is curved,
        the direction d and the depth along it tell more exactly."""
        half = scale(d, 0.5 * depth)
        if self.first.curved >= self.second.curved:
            return sub(self.first.on_surface(d, add(point, half)), half)
        local = matvec(self.inverse, sub(sub(point, half), self.position))
        exact = self.second.on_surface(negate(matvec(self.inverse, d)), local)
        return add(add(matvec(self.rotation, exact), self.position), half)

    def curvature(self, d: Vector) -> Vector:
        """How the farthest point moves with d, as a flat 3x3."""
        second = rotate_symmetric(self.rotation, self.second.curvature(negate(matvec(self.inverse, d))))
        return symmetric_matrix(add(self.first.curvature(d), second))

    def straight(self, a: Vector, difference: Vector) -> Vector:
        """The part of a farthest point that stays while d turns a little."""
        b = matvec(self.inverse, sub(sub(a, difference), self.position))
        return sub(self.first.straight(a), matvec(self.rotation, self.second.straight(b)))


class Overlap:
    """What the search finds, in variables, in the frame of the first shape."""

    def __init__(self, run: Any) -> None:
        self.depth = run.variable(FAR)  # of the cores; negative: their distance [m]
        self.direction = Vectors(run, 1)  # from the first to the second
        self.point = Vectors(run, 1)  # half way between the cores' nearest points
        self.names = [run.variable(0.0), run.variable(0.0)]  # of the vertices that are farthest along the direction

    def improve(self, depth: Any, direction: Vector, point: Vector, names: Vector) -> None:
        better = depth < self.depth.value
        self.depth.value = select(better, depth, self.depth.value)
        self.direction.set(0, direction, better)
        self.point.set(0, point, better)
        for variable, name in zip(self.names, names, strict=True):
            variable.value = select(better, name, variable.value)


class Vectors:
    """Vectors that change, where asked to."""

    def __init__(self, run: Any, count: int) -> None:
        self.variables = [[run.variable(0.0) for _ in range(3)] for _ in range(count)]

    def __getitem__(self, k: int) -> Vector:
        return [variable.value for variable in self.variables[k]]

    def set(self, k: int, vector: Vector, where: Any = True) -> None:
        for variable, x in zip(self.variables[k], vector, strict=True):
            variable.value = x if where is True else select(where, x, variable.value)


class Seeds:
    """Directions to begin from, with how far the difference reaches along them at most."""

    MOST = 9

    def __init__(self, run: Any, shapes: Difference) -> None:
        self.run, self.shapes, self.count = run, shapes, 0
        self.directions, self.reaches = run.array(3 * self.MOST), run.array(self.MOST)

    def add(self, direction: Vector, reach: Any = None) -> None:
        """Adds a direction; the reach is computed where it is not given."""
        for k in range(3):
            self.directions[3 * self.count + k] = direction[k]
        self.reaches[self.count] = self.shapes.reach(direction) if reach is None else reach
        self.count += 1

    def add_best_face(self, mesh: Mesh, second: bool) -> None:
        """Adds that normal of a mesh's faces along which the reach, as far as bounds tell, is the least.

        second: the mesh is the second shape; then it is the normal's opposite.
        """
        run, shapes, hulls = self.run, self.shapes, mesh.hull.hulls
        least, best = run.variable(FAR), Vectors(run, 1)
        other = shapes.first if second else shapes.second
        for face in run.range(*mesh.hull.faces):
            normal = [axis[face] for axis in hulls.normal_axes]
            outward = negate(matvec(shapes.rotation, normal)) if second else normal
            facing = outward if second else negate(matvec(shapes.inverse, normal))
            reach = hulls.face_offsets[face] + other.reach(facing) - dot(outward, shapes.position)
            less = reach < least.value
            least.value = select(less, reach, least.value)
            best.set(0, outward, less)
        self.add(best[0], least.value)

    def take(self) -> tuple[Vector, Any]:
        """The direction with the least reach, which is not given out again, and its reach; FAR: none is left."""
        run, least, best = self.run, self.run.variable(FAR), Vectors(self.run, 1)
        best.set(0, [1.0, 0.0, 0.0])
        for k in run.range(self.count):
            reach = self.reaches[k]
            less = reach < least.value
            least.value = select(less, reach, least.value)
            best.set(0, [self.directions[k * 3 + i] for i in range(3)], less)
        for k in run.range(self.count):
            reach = self.reaches[k]
            self.reaches[k] = select(reach <= least.value, FAR, reach)
        return best[0], least.value


def least_overlap(run: Any, shapes: Difference, seeds: Seeds, cutoff: Any, size: Any, extent: Any) -> Overlap:
    """The direction along which two shapes overlap least.

    The search ends early where the cores are farther apart than `cutoff` [m]: then the depth is below -cutoff, and
    nothing else is of use. size: bounding radius of the smaller shape [m]; extent: how large coordinates are [m].
    """
    tolerance = TOLERANCE * size + ROUNDINGS * run.rounding * extent
    found, again = Overlap(run), run.variable(True)
    for _ in run.repeat(STARTS, again):
        direction, reach = seeds.take()
        apart = reach < -cutoff  # the first time, or never
        found.depth.value = select(apart, reach, found.depth.value)
        for _ in run.when(logical_not(apart) & (reach < FAR)):
            _Descent(run, shapes, direction, size, tolerance).improve(found, cutoff)
        again.value = (found.depth.value > DEEP * size) & (reach < FAR)
    if shapes.curved:
        found.point.set(0, shapes.middle(found.direction[0], found.depth.value, found.point[0]))
    return found


class _Descent:
    """The search from one direction on."""

    def __init__(self, run: Any, shapes: Difference, direction: Vector, size: Any, tolerance: Any) -> None:
        self.run, self.shapes, self.clear, self.tolerance = run, shapes, CLEAR * size, tolerance
        # The best direction yet, what the difference's farthest point along it is, and how far along it that lies.
        self.direction, self.farthest, self.reach = Vectors(run, 1), Vectors(run, 1), run.variable(FAR)
        self.names = [run.variable(0.0), run.variable(0.0)]
        # How the second shape is moved now, how far that is, and the reach when it was moved.
        self.shift, self.distance, self.reach_before = Vectors(run, 1), run.variable(0.0), run.variable(FAR)
        # Points of the difference around the one nearest to the origin, and the same of the first shape; weights.
        self.simplex, self.points = Vectors(run, 3), Vectors(run, 3)
        self.weights = [run.variable(float(k == 0)) for k in range(3)]
        # The nearest point after the move, and a lower bound of its distance.
        self.nearest, self.bound = Vectors(run, 1), run.variable(-FAR)
        self.nearest.set(0, negate(direction))
        # The first pass; whether the second shape was moved since the nearest point was found; go on; Newton's step.
        self.fresh, self.moved = run.variable(True), run.variable(True)
        self.running, self.newtons_turn = run.variable(True), run.variable(False)

    def improve(self, found: Overlap, cutoff: Any) -> None:
        """Goes on to the end, and keeps what is better than what has been found."""
        for _ in self.run.repeat(ITERATIONS, self.running):
            self._iterate(cutoff)
        nearest = add(self.nearest[0], self.shift[0])  # a - b of the nearest points, unmoved
        first = [0.0, 0.0, 0.0]
        for k in range(3):
            first = add(first, scale(self.points[k], self.weights[k].value))
        names = [name.value for name in self.names]
        found.improve(self.reach.value, self.direction[0], sub(first, scale(nearest, 0.5)), names)

    def _iterate(self, cutoff: Any) -> None:
        nearest = self.nearest[0]
        direction, by_newton, exact = self._next_direction(nearest)
        point, difference, names = self.shapes.point(direction)
        reach = dot(direction, difference)
        better = reach < self.reach.value
        self.reach.value = select(better, reach, self.reach.value)
        self.direction.set(0, direction, better)
        self.farthest.set(0, difference, better)
        for variable, name in zip(self.names, names, strict=True):
            variable.value = select(better, name, variable.value)
        fresh = self.fresh.value
        self._move(fresh | (by_newton & better))

        shift = self.shift[0]
        new = sub(difference, shift)
        self.bound.value = maximum(self.bound.value, -dot(direction, new))
        old = [[select(fresh, x, y - s) for x, y, s in zip(new, self.simplex[k], shift, strict=True)] for k in range(3)]
        best = _Nearest(new, old, self.nearest[0], [w.value for w in self.weights], logical_not(self.moved.value))
        self._keep(best, point, difference)
        self.fresh.value, self.moved.value = False, False

        length = sqrt(dot(best.vector, best.vector))
        converged = length - self.bound.value <= self.tolerance
        unmoved = self.distance.value <= 0.0
        done = converged & exact & (unmoved | (self.reach_before.value - self.reach.value <= self.tolerance))
        done = done | (self.reach.value < -cutoff)
        self.running.value = logical_not(done)
        self._move(converged & logical_not(done))

    def _next_direction(self, nearest: Vector) -> tuple[Vector, Any, Any]:
        """The direction in which to look for a point, whether it is Newton's, and whether the best one will be exact as
        far as curvature tells."""
        ahead = scale(nearest, -rsqrt(maximum(dot(nearest, nearest), TINY)))
        if not self.shapes.curved:
            return ahead, False, True
        best = self.direction[0]
        upwards, turned = _newton(self.shapes, best, self.farthest[0], self.reach.value, self._straight_parts())
        turn = sub(turned, best)
        angle2 = dot(turn, turn)
        by_newton = upwards & self.newtons_turn.value
        exact = logical_not(upwards) | (angle2 < EXACT * EXACT) | (by_newton & (angle2 < ALMOST * ALMOST))
        self.newtons_turn.value = logical_not(self.newtons_turn.value)
        return [select(by_newton, x, y) for x, y in zip(turned, ahead, strict=True)], by_newton, exact

    def _straight_parts(self) -> list[Vector]:
        return [self.shapes.straight(self.points[k], self.simplex[k]) for k in range(3)]

    def _move(self, where: Any) -> None:
        """Moves the second shape along the best direction until it is clear of the first."""
        reach, shift, nearest = self.reach.value, self.shift[0], self.nearest[0]
        distance = maximum(reach + self.clear, 0.0)
        moved = scale(self.direction[0], distance)
        self.nearest.set(0, add(nearest, sub(shift, moved)), where)
        self.shift.set(0, moved, where)
        self.distance.value = select(where, distance, self.distance.value)
        self.bound.value = select(where, distance - reach, self.bound.value)
        self.reach_before.value = select(where, reach, self.reach_before.value)
        self.moved.value = self.moved.value | where

    def _keep(self, best: _Nearest, point: Vector, difference: Vector) -> None:
        """Keeps those points around which the nearest one lies."""
        for vectors, new in ((self.simplex, difference), (self.points, point)):
            chosen = best.choose(new, [vectors[k] for k in range(3)])
            for k in range(3):
                vectors.set(k, chosen[k])
        for variable, weight in zip(self.weights, best.weights, strict=True):
            variable.value = weight
        self.nearest.set(0, best.vector)


class _Nearest:
    """The point nearest to the origin of the triangles of a new point and two of three old ones, or of the old triangle
    where its nearest point is known.

    Old points may coincide. Points without weight are replaced by the new one.
    """

    def __init__(self, new: Vector, old: list[Vector], known: Vector, weights: Vector, is_known: Any) -> None:
        self.vector, self.weights = known, list(weights)
        self.square = select(is_known, dot(known, known), FAR)
        self.kept: Any = True
        self.places: list[Any] = [0.0, 0.0]  # of the second and third point: 0 the new one, k + 1 the old one k
        edges = [sub(point, new) for point in old]
        squares = [dot(e, e) for e in edges]
        for k in range(3):
            along = clamp(-dot(new, edges[k]) * reciprocal(maximum(squares[k], TINY)), 0.0, 1.0)
            place = select(along > 0.0, float(k + 1), 0.0)
            self._consider(True, add(new, scale(edges[k], along)), [1.0 - along, along, 0.0], [place, 0.0])
        for i, j in ((0, 1), (1, 2), (2, 0)):
            normal = cross(edges[i], edges[j])
            square = dot(normal, normal)
            inverse = reciprocal(maximum(square, TINY))
            first = -dot(cross(new, edges[j]), normal) * inverse
            second = -dot(cross(edges[i], new), normal) * inverse
            third = 1.0 - first - second
            inside = minimum(minimum(first, second), third) > 0.0
            inside = inside & (square > FLAT * squares[i] * squares[j])
            foot = scale(normal, dot(new, normal) * inverse)
            self._consider(inside, foot, [third, first, second], [float(i + 1), float(j + 1)])

    def _consider(self, exists: Any, vector: Vector, weights: Vector, places: Vector) -> None:
        square = dot(vector, vector)
        nearer = exists & (square < self.square)
        self.square = select(nearer, square, self.square)
        self.vector = [select(nearer, x, y) for x, y in zip(vector, self.vector, strict=True)]
        self.weights = [select(nearer, x, y) for x, y in zip(weights, self.weights, strict=True)]
        self.places = [select(nearer, x, y) for x, y in zip(places, self.places, strict=True)]
        self.kept = self.kept & logical_not(nearer)

    def choose(self, new: Vector, old: list[Vector]) -> list[Vector]:
        """The three points, of a new one and three old ones."""

        def at(place: Any) -> Vector:
            chosen = new
            for k in range(3):
                chosen = [select(place > k + 0.5, x, y) for x, y in zip(old[k], chosen, strict=True)]
            return chosen

        picked = [new, at(self.places[0]), at(self.places[1])]
        return [[select(self.kept, x, y) for x, y in zip(o, p, strict=True)] for o, p in zip(old, picked, strict=True)]


def _newton(
    shapes: Difference, direction: Vector, farthest: Vector, reach: Any, straight: list[Vector]
) -> tuple[Any, Vector]:
    """A step of Newton's on h along the unit sphere: whether h curves upwards there, and not a face decides on the
    direction, and where the step leads.

    straight: the straight parts of the farthest points around. Two that differ are the ends of an edge, three a face.
    """
    edge = sub(straight[1], straight[0])
    other = sub(straight[2], straight[0])
    longer = dot(other, other) > dot(edge, edge)
    edge = [select(longer, x, y) for x, y in zip(other, edge, strict=True)]
    length2 = dot(edge, edge)
    on_edge = length2 > 1e-12 * dot(farthest, farthest) + TINY
    normal = cross(edge, sub(straight[2], straight[1]))
    on_face = dot(normal, normal) > FLAT * length2 * length2 + TINY

    H = shapes.curvature(direction)
    along = select(on_edge, dot(edge, direction) * reciprocal(maximum(length2, TINY)), 0.0)
    start = sub(direction, scale(edge, along))
    start = scale(start, rsqrt(maximum(dot(start, start), TINY)))
    slope = add(farthest, matvec(H, sub(start, direction)))

    across = [select(on_edge, x, y) for x, y in zip(edge, perpendicular(start), strict=True)]
    u = scale(across, rsqrt(maximum(dot(across, across), TINY)))
    w = cross(start, u)
    Hu, Hw = matvec(H, u), matvec(H, w)
    a, b, c = dot(u, Hu) - reach, select(on_edge, 0.0, dot(u, Hw)), dot(w, Hw) - reach
    p, q = select(on_edge, 0.0, dot(u, slope)), dot(w, slope)
    a = select(on_edge, 1.0, a)
    determinant = a * c - b * b
    upwards = (minimum(a, c) > 0.0) & (determinant > 0.0) & logical_not(on_face)
    inverse = reciprocal(maximum(determinant, TINY))
    x, y = (b * q - c * p) * inverse, (b * p - a * q) * inverse
    shorten = minimum(1.0, TURN * rsqrt(maximum(x * x + y * y, TINY)))
    turned = add(start, add(scale(u, x * shorten), scale(w, y * shorten)))
    return upwards, scale(turned, rsqrt(maximum(dot(turned, turned), TINY)))


def perpendicular(unit: Vector) -> Vector:
    """Some vector across a unit vector, not short."""
    x, y, z = unit
    steep = absolute(z) > 0.7
    return [select(steep, 0.0, -y), select(steep, -z, x), select(steep, y, 0.0)]
