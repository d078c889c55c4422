"""Convex shapes by their support functions: the farthest point along a direction, and what is near it.

A shape is a core, grown by a radius: a sphere is a point with a radius, a capsule a segment with one. Directions and
points are in the geom's frame.

Some have flat faces and straight edges, along which they touch others at several points. Of the faces, one is asked
for: the one at a farthest point which looks most along the direction.
"""

from __future__ import annotations

from math import cos, pi, sin
from typing import Any, NamedTuple

from pluriverse.collision.hulls import HullView
from pluriverse.collision.placed import Placed
from pluriverse.collision_pairs import BOX, CAPSULE, CYLINDER, ELLIPSOID, MESH, SPHERE
from pluriverse.dynamics.spatial import SYMMETRIC, Vector, dot, scale, sub
from pluriverse.trace.functions import absolute, logical_not, maximum, minimum, rsqrt, select, sqrt

SMALL = 1e-15  # mjMINVAL
AXIAL = 1e-5  # angle [rad] to a cylinder's axis below which a direction is along the axis
STRAIGHT = 1e-3  # angle [rad] to a cylinder's cap or side below which a direction may be the normal of it


class Face(NamedTuple):
    """A flat face: its outward normal, how far it is along that from the frame's origin [m], its number of corners, and
    its name (of a mesh, else 0)."""

    normal: Vector
    offset: Any
    count: Any  # a float
    name: Any


class Support:
    """A point: the core of a sphere."""

    curved = 0  # along how many directions the core's surface is curved, at most
    most_corners = 0  # of a face; 0: there are no faces
    has_edges = False

    def __init__(self, size: Any, radius: Any = 0.0) -> None:
        self.size, self.radius = size, radius

    def point(self, d: Vector) -> tuple[Vector, Any]:
        """The core's farthest point along the unit vector d, and the name of this vertex of a mesh (else 0)."""
        return [0.0, 0.0, 0.0], 0.0

    def reach(self, d: Vector) -> Any:
        """How far the core reaches along d from the frame's origin, at most."""
        return 0.0

    def curvature(self, d: Vector) -> Vector:
        """How the farthest point moves with d: a symmetric 3x3 of six numbers, zero on flat faces, edges and
        corners."""
        return [0.0] * 6

    def straight(self, point: Vector) -> Vector:
        """The part of a farthest point that stays while d turns a little: all of a corner, none of an ellipsoid's."""
        return list(point)

    def on_surface(self, d: Vector, point: Vector) -> Vector:
        """A point near the farthest one along d, moved there as far as curvature says where that is."""
        return point

    def face(self, d: Vector, name: Any) -> Face:
        """The face at the farthest point along d, a vertex of this name, that looks most along d."""
        raise NotImplementedError

    def corner(self, face: Face, i: Any) -> Vector:
        """Corner i of a face (int; beyond the last one: the last), left around its normal."""
        raise NotImplementedError

    def edge(self, d: Vector, name: Any, normal: Vector) -> tuple[Vector, Vector]:
        """The ends of that edge at the farthest point along d, a vertex of this name, that lies most across `normal`;
        on the surface, not the core."""
        raise NotImplementedError


class Segment(Support):
    """The core of a capsule, along z."""

    has_edges = True

    def point(self, d: Vector) -> tuple[Vector, Any]:
        half = self.size[1]
        return [0.0, 0.0, select(d[2] < 0.0, -half, half)], 0.0

    def reach(self, d: Vector) -> Any:
        return absolute(d[2]) * self.size[1]

    def edge(self, d: Vector, name: Any, normal: Vector) -> tuple[Vector, Vector]:
        side, half = scale(d, self.radius), self.size[1]
        return [side[0], side[1], side[2] - half], [side[0], side[1], side[2] + half]


class Ellipsoid(Support):
    curved = 2

    def point(self, d: Vector) -> tuple[Vector, Any]:
        stretched = [s * x for s, x in zip(self.size, d, strict=True)]
        shrink = rsqrt(maximum(dot(stretched, stretched), SMALL * SMALL))
        return [s * x * shrink for s, x in zip(self.size, stretched, strict=True)], 0.0

    def reach(self, d: Vector) -> Any:
        stretched = [s * x for s, x in zip(self.size, d, strict=True)]
        return sqrt(dot(stretched, stretched))

    def curvature(self, d: Vector) -> Vector:
        square = [s * s for s in self.size]
        shrink = rsqrt(maximum(dot([s * x for s, x in zip(square, d, strict=True)], d), SMALL * SMALL))
        unit = [s * x * shrink for s, x in zip(square, d, strict=True)]
        return [((square[i] if i == j else 0.0) - unit[i] * unit[j]) * shrink for i, j in SYMMETRIC]

    def straight(self, point: Vector) -> Vector:
        return [0.0, 0.0, 0.0]

    def on_surface(self, d: Vector, point: Vector) -> Vector:
        return self.point(d)[0]


class Cylinder(Support):
    """Along z. A cap counts as a face with 16 corners, as in MuJoCo."""

    curved = 1
    has_edges = True
    most_corners = 16

    def __init__(self, run: Any, size: Any) -> None:
        super().__init__(size)
        angles = [pi * i / 8.0 for i in range(self.most_corners)]
        self._rim = [run.table([f(angle) for angle in angles]) for f in (cos, sin)]

    def point(self, d: Vector) -> tuple[Vector, Any]:
        radius, half = self.size[0], self.size[1]
        stretch = radius * self._shrink(d)
        return [d[0] * stretch, d[1] * stretch, select(d[2] < 0.0, -half, half)], 0.0

    def reach(self, d: Vector) -> Any:
        return self.size[0] * sqrt(d[0] * d[0] + d[1] * d[1]) + self.size[1] * absolute(d[2])

    def curvature(self, d: Vector) -> Vector:
        slant2 = d[0] * d[0] + d[1] * d[1]
        shrink = rsqrt(maximum(slant2, AXIAL * AXIAL))
        x, y, radius = d[0] * shrink, d[1] * shrink, self.size[0] * shrink
        axial = slant2 < AXIAL * AXIAL  # the normal of a cap: whichever way it turns, the point goes to the rim
        return [
            select(axial, radius, radius * y * y),
            select(axial, radius, radius * x * x),
            0.0,
            -radius * x * y,
            0.0,
            0.0,
        ]

    def straight(self, point: Vector) -> Vector:
        return [0.0, 0.0, point[2]]

    def on_surface(self, d: Vector, point: Vector) -> Vector:
        x, y, z = self.point(d)[0]
        steep, level = d[0] * d[0] + d[1] * d[1] < STRAIGHT * STRAIGHT, absolute(d[2]) < STRAIGHT
        return [select(steep, point[0], x), select(steep, point[1], y), select(level, point[2], z)]

    def face(self, d: Vector, name: Any) -> Face:
        return Face([0.0, 0.0, select(d[2] < 0.0, -1.0, 1.0)], self.size[1], float(self.most_corners), 0.0)

    def corner(self, face: Face, i: Any) -> Vector:
        radius, upwards = self.size[0], face.normal[2]
        return [self._rim[0][i] * radius, self._rim[1][i] * radius * upwards, self.size[1] * upwards]

    def edge(self, d: Vector, name: Any, normal: Vector) -> tuple[Vector, Vector]:
        x, y, z = self.point(d)[0]
        return [x, y, z], [x, y, -z]

    @staticmethod
    def _shrink(d: Vector) -> Any:
        return rsqrt(maximum(d[0] * d[0] + d[1] * d[1], SMALL * SMALL))


class Box(Support):
    has_edges = True
    most_corners = 4

    def __init__(self, run: Any, size: Any) -> None:
        super().__init__(size)
        self._sides = [run.table(list(signs)) for signs in ((1.0, -1.0, -1.0, 1.0), (1.0, 1.0, -1.0, -1.0))]

    def point(self, d: Vector) -> tuple[Vector, Any]:
        return [select(x < 0.0, -s, s) for s, x in zip(self.size, d, strict=True)], 0.0

    def reach(self, d: Vector) -> Any:
        return dot([absolute(x) for x in d], self.size)

    def face(self, d: Vector, name: Any) -> Face:
        x, y, z = (absolute(v) for v in d)
        is_x, is_z = (x >= y) & (x >= z), z > maximum(x, y)
        across = [select(is_x, 1.0, 0.0), select(is_x, 0.0, select(is_z, 0.0, 1.0)), select(is_z, 1.0, 0.0)]
        normal = [select(v < 0.0, -a, a) for v, a in zip(d, across, strict=True)]
        return Face(normal, dot(across, self.size), 4.0, 0.0)

    def corner(self, face: Face, i: Any) -> Vector:
        n = face.normal
        side1, side2 = (side[i] for side in self._sides)
        outward = n[0] + n[1] + n[2]  # 1 or -1, which also turns the corners' order
        first, second = [n[(k + 2) % 3] * outward * side1 for k in range(3)], [n[(k + 1) % 3] * side2 for k in range(3)]
        return [s * (a + b + c) for s, a, b, c in zip(self.size, n, first, second, strict=True)]

    def edge(self, d: Vector, name: Any, normal: Vector) -> tuple[Vector, Vector]:
        start = self.point(d)[0]
        x, y, z = (absolute(v) for v in normal)
        is_x, is_z = (x <= y) & (x <= z), z < minimum(x, y)
        turned = [is_x, logical_not(is_x | is_z), is_z]
        return start, [select(t, -v, v) for t, v in zip(turned, start, strict=True)]


class Mesh(Support):
    has_edges = True

    def __init__(self, hull: HullView) -> None:
        super().__init__([0.0] * 3)
        self.hull, self.run = hull, hull.hulls.run
        self.centre, self.half = hull.box
        self.most_corners = hull.hulls.most_corners

    def point(self, d: Vector) -> tuple[Vector, Any]:
        hulls = self.hull.hulls
        farthest, name = self.run.variable(-1e18), self.run.variable(hulls.no_vertex)
        for i in self.run.range(self.hull.start, self.hull.stop, unroll=4):
            along = dot(d, self.hull.vertex(i))
            farther = along > farthest.value
            farthest.value = select(farther, along, farthest.value)
            name.value = select(farther, hulls.vertex_names[i], name.value)
        return self.hull.gather_vertex(name.value), name.value

    def reach(self, d: Vector) -> Any:
        """By the box around the hull."""
        return dot([absolute(x) for x in d], self.half) + dot(d, self.centre)

    def face(self, d: Vector, name: Any) -> Face:
        hulls, gather = self.hull.hulls, self.run.gather
        most, best = self.run.variable(-2.0), self.run.variable(hulls.no_corner)
        for corner in self.hull.fan(name):
            along = dot(d, self.hull.gather_normal(gather(hulls.fan_faces, corner)))
            better = along > most.value
            most.value, best.value = select(better, along, most.value), select(better, corner, best.value)
        face = gather(hulls.fan_faces, best.value)
        count = gather(hulls.face_start, face + 1.0) - gather(hulls.face_start, face)
        return Face(self.hull.gather_normal(face), gather(hulls.face_offsets, face), count, face)

    def corner(self, face: Face, i: Any) -> Vector:
        hulls, gather = self.hull.hulls, self.run.gather
        number = self.run.table([float(k) for k in range(self.most_corners)])[i]
        place = gather(hulls.face_start, face.name) + maximum(minimum(number, face.count - 1.0), 0.0)
        return self.hull.gather_vertex(gather(hulls.face_vertices, place))

    def edge(self, d: Vector, name: Any, normal: Vector) -> tuple[Vector, Vector]:
        hulls, gather = self.hull.hulls, self.run.gather
        start = self.hull.gather_vertex(name)
        least, other = self.run.variable(2.0), self.run.variable(name)
        for corner in self.hull.fan(name):
            vertex = gather(hulls.fan_neighbours, corner)
            along = sub(self.hull.gather_vertex(vertex), start)
            slope = absolute(dot(along, normal)) * rsqrt(maximum(dot(along, along), SMALL))
            less = slope < least.value
            least.value, other.value = select(less, slope, least.value), select(less, vertex, other.value)
        return start, self.hull.gather_vertex(other.value)


def support_of(run: Any, geom: Placed) -> Support:
    """The support function of a geom's shape."""
    if geom.type == MESH:
        assert geom.hull is not None
        return Mesh(geom.hull)
    if geom.type == SPHERE:
        return Support(geom.size, geom.size[0])
    if geom.type == CAPSULE:
        return Segment(geom.size, geom.size[0])
    if geom.type == ELLIPSOID:
        return Ellipsoid(geom.size)
    return {CYLINDER: Cylinder, BOX: Box}[geom.type](run, geom.size)
