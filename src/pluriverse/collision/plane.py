"""Contacts of a plane: a few points of the other geom's surface, each at its height above the plane."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt as root
from typing import Any

from pluriverse.collision.placed import Emit, Placed
from pluriverse.dynamics.spatial import Vector, add, column, cross, dot, matvec, scale, sub
from pluriverse.trace.functions import absolute, logical_not, maximum, reciprocal, rsqrt, select, sqrt

SMALL = 1e-15  # mjMINVAL
MESH_SPACING = 0.3  # further points of a mesh are at least so many bounding radii from the first (tolplanemesh)


def plane_sphere(run: Any, plane: Placed, sphere: Placed, margin: float, emit: Emit) -> None:
    """At most 1 contact."""
    normal, height = _normal_height(plane, sphere)
    radius = sphere.size[0]
    _touch(run, normal, height - radius, lambda: sub(sphere.position, scale(normal, radius)), margin, emit)


def plane_capsule(run: Any, plane: Placed, capsule: Placed, margin: float, emit: Emit) -> None:
    """At most 2 contacts, one at each end, with tangents along the axis."""
    normal, height = _normal_height(plane, capsule)
    radius, axis = capsule.size[0], capsule.axis
    slope = dot(normal, axis)
    for end in (capsule.size[1], -capsule.size[1]):

        def lowest_point(end: Any = end) -> Vector:
            return sub(add(capsule.position, scale(axis, end)), scale(normal, radius))

        _touch(run, normal, height + slope * end - radius, lowest_point, margin, emit, axis)


def plane_ellipsoid(run: Any, plane: Placed, ellipsoid: Placed, margin: float, emit: Emit) -> None:
    """At most 1 contact."""
    normal, height = _normal_height(plane, ellipsoid)
    for _ in run.when(height - ellipsoid.rbound < margin):
        stretched = [s * n for s, n in zip(ellipsoid.size, _in_frame(normal, ellipsoid), strict=True)]
        depth = sqrt(dot(stretched, stretched))

        def lowest_point() -> Vector:
            unit = scale(stretched, reciprocal(depth))
            return _at(ellipsoid, [-s * u for s, u in zip(ellipsoid.size, unit, strict=True)])

        _touch(run, normal, height - depth, lowest_point, margin, emit)


def plane_cylinder(run: Any, plane: Placed, cylinder: Placed, margin: float, emit: Emit) -> None:
    """At most 4 contacts: the lowest point of each cap, and two more that make a triangle on the lower cap."""
    normal, height = _normal_height(plane, cylinder)
    for _ in run.when(height - cylinder.rbound < margin):
        x, y, z = _in_frame(normal, cylinder)
        radius, half = cylinder.size[0], cylinder.size[1]
        steepness2 = x * x + y * y
        flat = steepness2 < SMALL * SMALL
        shrink = radius * rsqrt(maximum(steepness2, SMALL * SMALL))
        # To the lowest point of a cap from its centre, in the geom frame. Flat on the plane, MuJoCo takes the x-axis.
        rim = [select(flat, radius, -x * shrink), select(flat, 0.0, -y * shrink), 0.0]
        lower_cap = select(z > 0.0, -half, half)
        cap_drop, rim_drop = -half * absolute(z), x * rim[0] + y * rim[1]

        def place(local: Callable[[], Vector]) -> Callable[[], Vector]:
            return lambda: _at(cylinder, local())

        def corner(side: float) -> Vector:
            across = [-side * rim[1], side * rim[0], 0.0]
            return [across[0] - 0.5 * rim[0], across[1] - 0.5 * rim[1], lower_cap]

        sideways = select(z > 0.0, 0.5 * root(3.0), -0.5 * root(3.0))  # MuJoCo's order of the two: rim x (lower axis) first
        for distance, local in (
            (height + cap_drop + rim_drop, lambda: [rim[0], rim[1], lower_cap]),
            (height - cap_drop + rim_drop, lambda: [rim[0], rim[1], -lower_cap]),
            (height + cap_drop - 0.5 * rim_drop, lambda: corner(sideways)),
            (height + cap_drop - 0.5 * rim_drop, lambda: corner(-sideways)),
        ):
            _touch(run, normal, distance, place(local), margin, emit)


def plane_box(run: Any, plane: Placed, box: Placed, margin: float, emit: Emit) -> None:
    """At most 4 contacts: of two opposite corners, the lower one."""
    normal, height = _normal_height(plane, box)
    for _ in run.when(height - box.rbound < margin):
        rise = [s * n for s, n in zip(box.size, _in_frame(normal, box), strict=True)]
        for i, j in ((-1.0, -1.0), (1.0, -1.0), (-1.0, 1.0), (1.0, 1.0)):
            signs = (i, j, -1.0)
            above = dot(signs, rise)  # of this corner above the centre; the opposite one lies as much below

            def lower_corner(signs: tuple[float, ...] = signs, above: Any = above) -> Vector:
                flip = select(above > 0.0, -1.0, 1.0)
                return _at(box, [sign * s * flip for sign, s in zip(signs, box.size, strict=True)])

            _touch(run, normal, height - absolute(above), lower_corner, margin, emit)


def plane_mesh(run: Any, plane: Placed, mesh: Placed, margin: float, emit: Emit) -> None:
    """At most 3 contacts: the lowest vertex of the hull, and the first two neighbours of it that touch too.

    Indices that differ between environments are kept as floats, because a loop runs for many environments at once.
    """
    assert mesh.hull is not None
    normal, height = _normal_height(plane, mesh)
    count = len(mesh.hull.vertices)
    x, y, z = (run.table(values) for values in mesh.hull.vertices.T.tolist())
    number = run.table([float(i) for i in range(count)])
    starts = run.table([float(i) for i, ends in enumerate(mesh.hull.edges) for _ in ends])
    ends = run.table([j for neighbours in mesh.hull.edges for j in neighbours])
    n_edges = sum(map(len, mesh.hull.edges))

    for _ in run.when(height - mesh.rbound < margin):
        up = _in_frame(normal, mesh)
        lowest, second, third = (_Vertex(run, margin) for _ in range(3))
        index = run.variable(-1.0)
        for k in run.range(count):
            vertex = [x[k], y[k], z[k]]
            distance = height + dot(up, vertex)
            for _ in run.when(distance < lowest.distance):
                lowest.store(distance, vertex)
                index.value = number[k]

        for _ in run.when(lowest.distance < margin):
            contact = sub(lowest.point, scale(up, 0.5 * lowest.distance))
            spacing = MESH_SPACING * mesh.rbound
            for e in run.range(n_edges):
                for _ in run.when(absolute(starts[e] - index.value) < 0.5):
                    vertex = [x[ends[e]], y[ends[e]], z[ends[e]]]
                    distance = height + dot(up, vertex)
                    apart = sub(vertex, contact)
                    found = (distance < margin) & (dot(apart, apart) >= spacing * spacing)
                    have_second, have_third = second.distance < margin, third.distance < margin
                    for _ in run.when(found & logical_not(have_second)):
                        second.store(distance, vertex)
                    for _ in run.when(found & have_second & logical_not(have_third)):
                        third.store(distance, vertex)

            for corner in (lowest, second, third):
                _touch(run, normal, corner.distance, lambda at=corner.point: _at(mesh, at), margin, emit)


class _Vertex:
    """Variables that hold one vertex of a mesh and its distance; at the margin, so out of touch, until one is stored."""

    def __init__(self, run: Any, margin: float) -> None:
        self._distance = run.variable(float(margin))
        self._point = [run.variable(0.0) for _ in range(3)]

    @property
    def distance(self) -> Any:
        return self._distance.value

    @property
    def point(self) -> Vector:
        return [p.value for p in self._point]

    def store(self, distance: Any, point: Vector) -> None:
        self._distance.value = distance
        for variable, value in zip(self._point, point, strict=True):
            variable.value = value


def _normal_height(plane: Placed, geom: Placed) -> tuple[Vector, Any]:
    """The plane's normal, and how high the geom's centre is above the plane."""
    return plane.axis, dot(sub(geom.position, plane.position), plane.axis)


def _in_frame(v: Vector, geom: Placed) -> Vector:
    """A vector of world axes in the geom's frame."""
    return [dot(column(geom.rotation, k), v) for k in range(3)]


def _at(geom: Placed, local: Vector) -> Vector:
    """The place of a point that is given in the geom's frame."""
    return add(geom.position, matvec(geom.rotation, local))


def _touch(
    run: Any,
    normal: Vector,
    distance: Any,
    point: Callable[[], Vector],
    margin: float,
    emit: Emit,
    tangent: Vector | None = None,
) -> None:
    """The contact of a surface point at this signed distance, half way between the point and the plane."""
    for _ in run.when(distance < margin):
        emit(distance, sub(point(), scale(normal, 0.5 * distance)), normal, tangent)
