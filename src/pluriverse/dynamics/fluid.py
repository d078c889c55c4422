"""Forces of the medium on bodies, and how they change with velocity (MuJoCo, Computation, "Fluid forces").

A body without geoms of fluid shape "ellipsoid" is pushed as the box of its inertia, at its centre of mass; one with
such geoms is pushed at each of them. Local quantities are [angular, linear], in the axes of that box or geom.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from pluriverse.model import Model
from pluriverse.trace.functions import absolute

from .ellipsoid_drag import Ellipsoid
from .kinematics import Pose
from .spatial import ZERO3, Vector, add, cross, matmul, matvec, scale, skew, sub, transpose
from .tree import Node, Tree, rotation

MINIMUM = 1e-15  # mjMINVAL
Slope = tuple[Vector, Vector, Vector, Vector]
"""d [torque, force] / d [angular, linear] velocity as 3x3 blocks: torque by angular, torque by linear, force by
angular, force by linear."""
NO_SLOPE: Slope = ([0.0] * 9, [0.0] * 9, [0.0] * 9, [0.0] * 9)


@dataclass(eq=False)
class Medium:
    """What the medium does to the moving bodies, about their reference points, in world axes."""

    forces: dict[Node, Vector]
    slopes: dict[Node, Slope]


def has_medium(model: Model) -> bool:
    """Whether there is one."""
    return model.opt.density > 0 or model.opt.viscosity > 0


def fluid_forces(
    tree: Tree, poses: dict[Node, Pose], velocities: dict[Node, Vector], symmetric: Callable[[Node], bool]
) -> Medium:
    """Forces and slopes on all bodies. symmetric: whether the slopes of a node's ellipsoids are made symmetric."""
    medium = Medium({}, {})
    wind = tree.model.opt.wind.tolist()
    for node in tree.nodes:
        pose, v = poses[node], velocities[node]
        force: Vector = [0.0] * 6
        slope = NO_SLOPE
        for place, axes, shape in _shapes(tree, node):
            at, A = pose.point(place), matmul(pose.rotation, axes)
            local = matvec(transpose(A), v[:3]), matvec(transpose(A), sub(add(v[3:], cross(v[:3], at)), wind))
            torque, push = (matvec(A, x) for x in shape.force(*local))
            force = add(force, add(torque, cross(at, push)) + push)
            own = shape.slope(*local)
            slope = _sum(slope, _moved(_symmetric(own) if symmetric(node) else own, at, A))
        medium.forces[node], medium.slopes[node] = force, slope
    return medium


def slope_times(slope: Slope, v: Vector) -> Vector:
    """The change of force by a change of velocity."""
    return add(matvec(slope[0], v[:3]), matvec(slope[1], v[3:])) + add(matvec(slope[2], v[:3]), matvec(slope[3], v[3:]))


@dataclass(frozen=True)
class Box:
    """The box of a body's inertia: coefficients of linear and quadratic drag by axis."""

    viscous: tuple[float, float]  # of rotation, of translation
    quadratic: tuple[list[float], list[float]]

    @classmethod
    def of(cls, model: Model, body: int) -> Box:
        density, viscosity = model.opt.density, model.opt.viscosity
        moments, mass = model.body_inertia[body], model.body_mass[body]
        spread = np.maximum(moments.sum() - 2.0 * moments, MINIMUM)
        box = np.sqrt(spread / mass * 6.0)
        diameter = box.mean()
        fourth = box**4
        turning = box * (fourth.sum() - fourth) * (density / 64.0)
        faces = box.prod() / box * (0.5 * density)
        return cls(
            (math.pi * diameter**3 * viscosity, 3.0 * math.pi * diameter * viscosity),
            (turning.tolist(), faces.tolist()),
        )

    def force(self, angular: Vector, linear: Vector) -> tuple[Vector, Vector]:
        """Torque and force."""
        parts = zip((angular, linear), self.viscous, self.quadratic, strict=True)
        torque, force = (
            [-(x * (absolute(x) * q + viscous)) for x, q in zip(v, quadratic, strict=True)]
            for v, viscous, quadratic in parts
        )
        return torque, force

    def slope(self, angular: Vector, linear: Vector) -> Slope:
        """d force / d velocity."""
        parts = zip((angular, linear), self.viscous, self.quadratic, strict=True)
        turning, moving = (
            [-(absolute(x) * (2.0 * q) + viscous) for x, q in zip(v, quadratic, strict=True)]
            for v, viscous, quadratic in parts
        )
        return _diagonal(turning), [0.0] * 9, [0.0] * 9, _diagonal(moving)


def _shapes(tree: Tree, node: Node) -> Iterator[tuple[Vector, Vector, Box | Ellipsoid]]:
    """What the medium pushes on a node's bodies: origin and axes in the node's frame, and the shape."""
    model = tree.model
    for body, (position, axes) in tree.merged[node.bodies[0]].bodies.items():
        if model.body_mass[body] < MINIMUM:
            continue
        first = int(model.body_geomadr[body])
        geoms = [g for g in range(first, first + int(model.body_geomnum[body])) if model.geom_fluid[g, 0] > 0]
        for geom in geoms:
            yield *tree.geom_frame((geom,)), Ellipsoid.of(model, geom)
        if not geoms:
            centre = position + axes @ model.body_ipos[body]
            turned = axes @ rotation(model.body_iquat[body])
            yield tree.constants([centre]), tree.constants([turned]), Box.of(model, body)


def _diagonal(values: Vector) -> Vector:
    return [values[0], *ZERO3, values[1], *ZERO3, values[2]]


def _symmetric(slope: Slope) -> Slope:
    """(B + B') / 2."""
    corner = scale(add(slope[1], transpose(slope[2])), 0.5)
    turning, moving = (scale(add(B, transpose(B)), 0.5) for B in (slope[0], slope[3]))
    return turning, corner, transpose(corner), moving


def _moved(slope: Slope, at: Vector, A: Vector) -> Slope:
    """A slope in axes A at a point as one in world axes about the reference point, from which the point is `at`."""
    ww, wv, vw, vv = (matmul(matmul(A, B), transpose(A)) for B in slope)
    P = skew(at)
    force_by_turning = sub(vw, matmul(vv, P))
    torque_by_turning = add(sub(ww, matmul(wv, P)), matmul(P, force_by_turning))
    return torque_by_turning, add(wv, matmul(P, vv)), force_by_turning, vv


def _sum(one: Slope, two: Slope) -> Slope:
    a, b, c, d = (add(x, y) for x, y in zip(one, two, strict=True))
    return a, b, c, d
