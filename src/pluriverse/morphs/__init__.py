"""Morphs: what an entity is, and where it starts."""

from __future__ import annotations

from pluriverse.morphs.base import Morph
from pluriverse.morphs.files import MJCF
from pluriverse.morphs.primitives import Box, Capsule, Cylinder, Ellipsoid, Plane, Primitive, Sphere
from pluriverse.options.unsupported import refusing_classes

_LATER = "not supported yet. Supported are Plane, Box, Sphere, Cylinder, Capsule, Ellipsoid and MJCF."

UNSUPPORTED_MORPHS = dict.fromkeys(("URDF", "Mesh", "MeshSet", "Terrain", "Drone", "USD", "Nowhere"), _LATER)
globals().update(refusing_classes("morphs", UNSUPPORTED_MORPHS))

__all__ = [
    "MJCF",
    "Box",
    "Capsule",
    "Cylinder",
    "Ellipsoid",
    "Morph",
    "Plane",
    "Primitive",
    "Sphere",
    *UNSUPPORTED_MORPHS,
]
