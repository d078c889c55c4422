"""Primitive morphs -> one body with one geom in a MjSpec."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pluriverse.materials import Rigid
from pluriverse.morphs import Box, Capsule, Cylinder, Ellipsoid, Plane, Primitive, Sphere
from pluriverse.surfaces import Surface

if TYPE_CHECKING:
    import mujoco

# Genesis's defaults where a material says nothing
DENSITY = 600.0  # [kg/m^3]
FRICTION = (1.0, 0.005, 0.0001)  # sliding, torsional [m], rolling [m]

_PLANE_GRID = 0.05  # third size of a MuJoCo plane: drawing only


def primitive_name(morph: Primitive) -> str:
    """`box`, `sphere` ... as Genesis names such entities."""
    return type(morph).__name__.lower()


def add_primitive(spec: mujoco.MjSpec, prefix: str, morph: Primitive, material: Rigid, surface: Surface) -> None:
    """Adds the body `box_baselink` with its geom `box` and, unless fixed, its free joint `box_joint`."""
    name = prefix + primitive_name(morph)
    body = spec.worldbody.add_body(name=f"{name}_baselink", pos=morph.pos, quat=morph.rotation)
    body.gravcomp = material.gravity_compensation
    if not morph.fixed:
        body.add_freejoint(name=f"{name}_joint")
    geom = body.add_geom(name=name, **_shape(morph))
    geom.density = DENSITY if material.rho is None else material.rho
    given = (material.friction, material.friction_torsional, material.friction_rolling)
    geom.friction = [default if own is None else own for own, default in zip(given, FRICTION, strict=True)]
    geom.contype = _signed(morph.contype if morph.collision else 0)
    geom.conaffinity = _signed(morph.conaffinity if morph.collision else 0)
    if surface.color is not None:
        geom.rgba = [*surface.color, 1.0][:4]


def _shape(morph: Primitive) -> dict[str, Any]:
    """MuJoCo's geom type, its half sizes and, for a plane, its orientation."""
    import mujoco

    kind = mujoco.mjtGeom
    if isinstance(morph, Box):
        return {"type": kind.mjGEOM_BOX, "size": [edge / 2 for edge in morph.size or ()]}
    if isinstance(morph, Sphere):
        return {"type": kind.mjGEOM_SPHERE, "size": [morph.radius, 0, 0]}
    if isinstance(morph, Cylinder):
        return {"type": kind.mjGEOM_CYLINDER, "size": [morph.radius, morph.height / 2, 0]}
    if isinstance(morph, Capsule):
        return {"type": kind.mjGEOM_CAPSULE, "size": [morph.radius, morph.height / 2, 0]}
    if isinstance(morph, Ellipsoid):
        return {"type": kind.mjGEOM_ELLIPSOID, "size": list(morph.radii)}
    if isinstance(morph, Plane):
        quat = np.zeros(4)
        mujoco.mju_quatZ2Vec(quat, np.array(morph.normal))
        return {"type": kind.mjGEOM_PLANE, "size": [0, 0, _PLANE_GRID], "quat": quat}
    raise TypeError(f"no shape for {type(morph).__name__}")


def _signed(bits: int) -> int:
    """32 bits as MuJoCo's int32."""
    return bits - (1 << 32) if bits >= 1 << 31 else bits
