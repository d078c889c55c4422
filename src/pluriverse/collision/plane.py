"""Contacts of a plane: a few points of the other geom's surface, each at its height above the plane."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from math import sqrt as root
from typing import Any

from pluriverse.collision.hulls import HullView
from pluriverse.collision.placed import Emit, Placed
from pluriverse.dynamics.spatial import Vector, add, column, dot, matvec, scale, sub
from pluriverse.trace.functions import absolute, maximum, reciprocal, rsqrt, select, sqrt

SMALL = 1e-15  # mjMINVAL


def plane_sphere(run: Any, plane: Placed, sphere: Placed, margin: float, emit: Emit) -> None:
    """At most 1 contact."""
    radius = sphere.size[0]

    def lowest_point() -> Vector:
        return sub(sphere.position, scale(plane.axis, radius))

    _touch(run, plane, height_above(plane, sphere) - radius, lowest_point, margin, emit)


def plane_capsule(run: Any, plane: Placed, capsule: Placed, margin: float, emit: Emit) -> None:
    """At most 2 contacts, one at each end, with tangents along the axis."""
    radius, half, axis = capsule.size[0], capsule.size[1], capsule.axis
    height, slope = height_above(plane, capsule), dot(plane.axis, axis)

    def lowest_point(end: Any) -> Vector:
        return sub(add(capsule.position, scale(axis, end)), scale(plane.axis, radius))

    for end in (half, -half):
        _touch(run, plane, height + slope * end - radius, partial(lowest_point, end), margin, emit, axis)


def plane_ellipsoid(run: Any, plane: Placed, ellipsoid: Placed, margin: float, emit: Emit) -> None:
    """At most 1 contact."""
    stretched = [s * n for s, n in zip(ellipsoid.size, _normal_in_frame(plane, ellipsoid), strict=True)]
    depth = sqrt(dot(stretched, stretched))

    def lowest_point() -> Vector:
        unit = scale(stretched, reciprocal(depth))
        return _at(ellipsoid, [-s * u for s, u in zip(ellipsoid.size, unit, strict=True)])

    _touch(run, plane, height_above(plane, ellipsoid) - depth, lowest_point, margin, emit)


def plane_cylinder(run: Any, plane: Placed, cylinder: Placed, margin: float, emit: Emit) -> None:
    """At most 4 contacts: the lowest point of each cap, and two more that make a triangle on the lower cap."""
    radius, half = cylinder.size[0], cylinder.size[1]
    height = height_above(plane, cylinder)
    x, y, z = _normal_in_frame(plane, cylinder)
    steepness2 = x * x + y * y
    shrink = radius * rsqrt(maximum(steepness2, SMALL * SMALL))
    # To the lowest point of a cap from its centre, in the geom frame. Flat on the plane, MuJoCo takes the x-axis.
    flat = steepness2 < SMALL * SMALL
    rim_x, rim_y = select(flat, radius, -x * shrink), select(flat, 0.0, -y * shrink)
    lower_cap = select(z > 0.0, -half, half)
    cap_drop, rim_drop = half * absolute(z), -(x * rim_x + y * rim_y)

    def on_cap(rise: Any, forward: float, sideways: Any) -> Vector:
        """A point of a cap, `forward` along the rim vector and `sideways` across it, in units of the radius."""
        return _at(cylinder, [forward * rim_x - sideways * rim_y, forward * rim_y + sideways * rim_x, rise])

    first_side = select(z > 0.0, 0.5 * root(3.0), -0.5 * root(3.0))  # the order of MuJoCo's list
    for distance, point in (
        (height - cap_drop - rim_drop, (lower_cap, 1.0, 0.0)),
        (height + cap_drop - rim_drop, (-lower_cap, 1.0, 0.0)),
        (height - cap_drop + 0.5 * rim_drop, (lower_cap, -0.5, first_side)),
        (height - cap_drop + 0.5 * rim_drop, (lower_cap, -0.5, -first_side)),
    ):
        _touch(run, plane, distance, partial(on_cap, *point), margin, emit)


def plane_box(run: Any, plane: Placed, box: Placed, margin: float, emit: Emit) -> None:
    """At most 4 contacts: of two opposite corners, the lower one."""
    height = height_above(plane, box)
    rise = [s * n for s, n in zip(box.size, _normal_in_frame(plane, box), strict=True)]

    def lower_corner(signs: tuple[float, ...], above: Any) -> Vector:
        flip = select(above > 0.0, -1.0, 1.0)
        return _at(box, [sign * s * flip for sign, s in zip(signs, box.size, strict=True)])

    for signs in ((-1.0, -1.0, -1.0), (1.0, -1.0, -1.0), (-1.0, 1.0, -1.0), (1.0, 1.0, -1.0)):
        above = dot(signs, rise)  # of this corner above the centre; the opposite one lies as much below
        _touch(run, plane, height - absolute(above), partial(lower_corner, signs, above), margin, emit)


def plane_mesh(run: Any, plane: Placed, mesh: Placed, margin: float, emit: Emit) -> None:
    """At most 4 contacts: the lowest vertex, and others of that face of it which looks down most steeply (MuJoCo 4).

    Which vertex is the lowest differs between environments: its number is kept as a float, and looked up by `gather`.
    """
    assert mesh.hull is not None
    height, up = height_above(plane, mesh), _normal_in_frame(plane, mesh)
    centre, half = mesh.hull.box
    sag = dot([absolute(u) for u in up], half) - dot(up, centre)
    for _ in run.when(height - sag < margin):  # the lowest corner of the box around the mesh
        _plane_vertices(run, plane, mesh, mesh.hull, height, up, margin, emit)


def _plane_vertices(
    run: Any, plane: Placed, mesh: Placed, hull: HullView, height: Any, up: Vector, margin: float, emit: Emit
) -> None:
    lowest, number = run.variable(margin), run.variable(0.0)
    for i in run.range(hull.start, hull.stop):
        distance = height + dot(up, hull.vertex(i))
        closer = distance < lowest.value
        lowest.value = select(closer, distance, lowest.value)
        number.value = select(closer, hull.hulls.vertex_names[i], number.value)

    def at_vertex(vertex: Any) -> Vector:
        return _at(mesh, hull.gather_vertex(vertex))

    for _ in run.when(lowest.value < margin):
        here = number.value
        _touch(run, plane, lowest.value, partial(at_vertex, here), margin, emit)
        _touch_steepest_face(run, plane, mesh, hull, height, up, here, margin, emit)


def _touch_steepest_face(
    run: Any,
    plane: Placed,
    mesh: Placed,
    hull: HullView,
    height: Any,
    up: Vector,
    lowest: Any,
    margin: float,
    emit: Emit,
) -> None:
    """Contacts of further vertices of the face, among those around the lowest vertex, that looks down most steeply.

    Below the mesh's centre only: there the vertices lie that stand in where a face has none left.
    """
    hulls = hull.hulls
    steepest, best = run.variable(inf), run.variable(hulls.no_corner)
    for corner in hull.fan(lowest):
        upward = dot(up, hull.gather_normal(run.gather(hulls.fan_faces, corner)))
        steeper = upward < steepest.value
        steepest.value = select(steeper, upward, steepest.value)
        best.value = select(steeper, corner, best.value)
    chosen = best.value
    for others in hulls.fan_others:
        other = hull.gather_vertex(run.gather(others, chosen))
        rise = dot(up, other)
        reach = select(rise < 0.0, height + rise, margin)
        _touch(run, plane, reach, partial(_at, mesh, other), margin, emit)


def height_above(plane: Placed, geom: Placed) -> Any:
    """How high the geom's centre is above the plane."""
    # The geom lies near the reference point, the plane perhaps far away: apart, the nearer part keeps its digits.
    return dot(geom.position, plane.axis) - dot(plane.position, plane.axis)


def _normal_in_frame(plane: Placed, geom: Placed) -> Vector:
    """The plane's normal in the geom's frame: how much each of its axes rises."""
    return [dot(column(geom.rotation, k), plane.axis) for k in range(3)]


def _at(geom: Placed, local: Vector) -> Vector:
    """The place of a point that is given in the geom's frame."""
    return add(geom.position, matvec(geom.rotation, local))


def _touch(
    run: Any,
    plane: Placed,
    distance: Any,
    point: Callable[[], Vector],
    margin: float,
    emit: Emit,
    tangent: Vector | None = None,
) -> None:
    """The contact of a surface point at this signed distance, half way between the point and the plane."""
    for _ in run.when(distance < margin):
        emit(distance, sub(point(), scale(plane.axis, 0.5 * distance)), plane.axis, tangent)
