"""What a user says about a scene, besides what is in it."""

from __future__ import annotations

from pluriverse.options.base import Options
from pluriverse.options.rigid import KinematicOptions, RigidOptions
from pluriverse.options.sim import SimOptions
from pluriverse.options.unsupported import UNSUPPORTED_OPTIONS, refusing_classes
from pluriverse.options.visual import ProfilingOptions, ViewerOptions, VisOptions

globals().update(refusing_classes("options", UNSUPPORTED_OPTIONS))

__all__ = [
    "KinematicOptions",
    "Options",
    "ProfilingOptions",
    "RigidOptions",
    "SimOptions",
    "ViewerOptions",
    "VisOptions",
    *UNSUPPORTED_OPTIONS,
]
