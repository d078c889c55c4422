"""Drag, lift and added mass of an ellipsoid that moves through a medium, by MuJoCo's formulas.

Lengths are counted in units of the largest semi-axis, so that in float32 no power of a small one vanishes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pluriverse.model import Model
from pluriverse.trace.functions import maximum, sqrt

from .spatial import Vector, add, cross, dot, matmul, scale, skew, sub

SPHERE, CAPSULE, CYLINDER = 2, 3, 5  # mjtGeom
TINY = 1e-30  # a square of a velocity [m^2/s^2] below which there is no direction


@dataclass(frozen=True)
class Ellipsoid:
    """An ellipsoid's constants; forces in [N] from velocities in [m/s] and [rad/s] in its axes."""

    normals: list[float]  # areas across the axes over the largest, squared
    area: float  # pi times the product of the two larger semi-axes [m^2]
    largest: float  # the largest of the areas across the axes over pi [m^2]
    viscous: tuple[float, float]  # drag in slow flow by rotation, by translation
    blunt: float  # density times coefficients
    slender: float
    kutta: float
    magnus: float
    turning: list[float]  # moments of quadratic drag by axis
    density: float
    added_mass: list[float]  # of the medium that moves along, by axis
    added_inertia: list[float]

    @classmethod
    def of(cls, model: Model, geom: int) -> Ellipsoid:
        """The ellipsoid of a geom, with the coefficients of its `fluidcoef`."""
        density, viscosity = model.opt.density, model.opt.viscosity
        _, blunt, slender, angular, kutta, magnus, *added = model.geom_fluid[geom].tolist()
        axes = _semiaxes(model, geom)
        _, mid, high = np.sort(axes)
        diameter = 2.0 / 3.0 * axes.sum()
        across = np.prod(axes) / axes
        unit = 8.0 / 15.0 * math.pi
        own = [unit * axes[k] * max(axes[(k + 1) % 3], axes[(k + 2) % 3]) ** 4 for k in range(3)]
        most = unit * mid * high**4
        return cls(
            normals=((across / across.max()) ** 2).tolist(),
            area=math.pi * high * mid,
            largest=float(across.max()),
            viscous=(math.pi * diameter**3 * viscosity, 3.0 * math.pi * diameter * viscosity),
            blunt=blunt * density,
            slender=slender * density,
            kutta=kutta * density,
            magnus=magnus * density * 4.0 / 3.0 * math.pi * float(np.prod(axes)),
            turning=[angular * I + slender * (most - I) for I in own],
            density=density,
            added_mass=(density * np.array(added[:3])).tolist(),
            added_inertia=(density * np.array(added[3:6])).tolist(),
        )

    def force(self, w: Vector, v: Vector) -> tuple[Vector, Vector]:
        """Torque and force at angular velocity w and velocity v."""
        momentum, spin = _times(self.added_mass, v), _times(self.added_inertia, w)
        flow = self._flow(v)
        drag = self.viscous[1] + flow.speed * self._resistance(flow)
        torque = add(cross(momentum, v), cross(spin, w))
        torque = sub(torque, scale(w, self.viscous[0] + self._turning_speed(w) * self.density))
        force = add(cross(momentum, w), scale(cross(w, v), self.magnus))
        force = add(force, scale(cross(cross(flow.normal, v), v), self._lift(flow)))
        return torque, sub(force, scale(v, drag))

    def slope(self, w: Vector, v: Vector) -> tuple[Vector, Vector, Vector, Vector]:
        """d [torque, force] / d [angular, linear] velocity, as blocks (see `fluid.Slope`)."""
        W, V, mass, inertia = skew(w), skew(v), _diagonal(self.added_mass), _diagonal(self.added_inertia)
        momentum, spin = skew(_times(self.added_mass, v)), skew(_times(self.added_inertia, w))
        torque_by_linear = sub(momentum, matmul(V, mass))
        force_by_angular = sub(momentum, scale(V, self.magnus))
        force_by_linear = sub(scale(W, self.magnus), matmul(W, mass))
        force_by_linear = add(force_by_linear, sub(self._lift_slope(v), self._drag_slope(v)))
        torque_by_angular = sub(sub(spin, matmul(W, inertia)), self._turning_slope(w))
        return torque_by_angular, torque_by_linear, force_by_angular, force_by_linear

    def _flow(self, v: Vector) -> _Flow:
        normal = _times(self.normals, v)
        square = dot(v, v)
        speed = sqrt(square + TINY)
        return _Flow(normal, speed, dot(normal, v) + TINY, dot(normal, normal) + TINY)

    def _resistance(self, flow: _Flow) -> Any:
        """Density times the area that faces the flow, blunt and slender parts weighed."""
        facing = sqrt(flow.steepness / flow.projection) * (math.pi * self.largest)
        return facing * (self.blunt - self.slender) + self.slender * self.area

    def _lift(self, flow: _Flow) -> Any:
        """What multiplies (normal x v) x v."""
        return sqrt(flow.projection / flow.steepness) * (self.kutta * math.pi * self.largest) / flow.speed

    def _drag_slope(self, v: Vector) -> Vector:
        """d (drag v) / d v."""
        flow = self._flow(v)
        resistance = self._resistance(flow)
        direction = scale(v, 1.0 / flow.speed)
        facing = sqrt(flow.steepness / flow.projection) * (math.pi * self.largest)
        steep, flat = (1.0 / x for x in (flow.steepness, flow.projection))
        growth = sub(scale(_times(self.normals, flow.normal), steep), scale(flow.normal, flat))  # of facing, relative
        by_speed = add(scale(direction, resistance), scale(growth, flow.speed * facing * (self.blunt - self.slender)))
        return add(_outer(v, by_speed), _diagonal([self.viscous[1] + flow.speed * resistance] * 3))

    def _lift_slope(self, v: Vector) -> Vector:
        """d (lift (normal x v) x v) / d v."""
        flow = self._flow(v)
        circulation = cross(flow.normal, v)
        steep, flat, square = (1.0 / x for x in (flow.steepness, flow.projection, flow.speed * flow.speed))
        growth = sub(scale(flow.normal, flat), scale(_times(self.normals, flow.normal), steep))
        growth = sub(growth, scale(v, square))
        by_v = sub(skew(flow.normal), matmul(skew(v), _diagonal(self.normals)))  # d circulation / d v
        change = sub(skew(circulation), matmul(skew(v), by_v))
        return scale(add(change, _outer(cross(circulation, v), growth)), self._lift(flow))

    def _turning_speed(self, w: Vector) -> Any:
        moments = _times(self.turning, w)
        return sqrt(dot(moments, moments) + TINY)

    def _turning_slope(self, w: Vector) -> Vector:
        """d (drag w) / d w."""
        speed = self._turning_speed(w)
        growth = scale(_times(self.turning, _times(self.turning, w)), self.density / maximum(speed, TINY))
        return add(_outer(w, growth), _diagonal([self.viscous[0] + speed * self.density] * 3))


@dataclass(frozen=True, eq=False)
class _Flow:
    """The medium's motion against an ellipsoid."""

    normal: Vector  # on the surface that faces it, in `normals` times the velocity
    speed: Any
    projection: Any  # normal . v
    steepness: Any  # normal . normal


def _semiaxes(model: Model, geom: int) -> np.ndarray:
    """Of a geom's ellipsoid [m]."""
    size, kind = model.geom_size[geom], model.geom_type[geom]
    if kind == SPHERE:
        return np.full(3, size[0])
    if kind == CAPSULE:
        return np.array([size[0], size[0], size[0] + size[1]])
    if kind == CYLINDER:
        return np.array([size[0], size[0], size[1]])
    return np.array(size)


def _times(diagonal: list[float], v: Vector) -> Vector:
    return [x * d for d, x in zip(diagonal, v, strict=True)]


def _diagonal(values: Vector) -> Vector:
    return [values[0], 0.0, 0.0, 0.0, values[1], 0.0, 0.0, 0.0, values[2]]


def _outer(a: Vector, b: Vector) -> Vector:
    return [x * y for x in a for y in b]
