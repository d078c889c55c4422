"""pluriverse: many copies of a robot world at once, on CPUs and GPUs. Use it as `import pluriverse as gs`.

Importing the package starts nothing: it creates no CUDA context and no thread, and loads neither Warp nor MuJoCo.
Names below are loaded at first use; those of a session (`gs.device`, `gs.tc_float`, ...) follow `gs.init`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from pluriverse.constants import (
    ACTIVE,
    CTRL_MODE,
    EQUALITY_TYPE,
    GEOM_TYPE,
    IMAGE_TYPE,
    INACTIVE,
    JOINT_TYPE,
    PARA_LEVEL,
    Backend,
    broadphase_traversal,
    constraint_solver,
    contact_resolution,
    friction_cone,
    integrator,
    link_ref_frame,
)
from pluriverse.errors import GenesisException, PluriverseError
from pluriverse.logging import Logger
from pluriverse.logging import logger as _logger
from pluriverse.runtime import runtime as _runtime

if TYPE_CHECKING:
    from pluriverse import constants, distributed, materials, morphs, options, surfaces, textures
    from pluriverse.scene import Scene

    device: torch.device | None
    backend: Backend | None
    tc_float: torch.dtype
    np_float: type[np.floating]
    EPS: float | None
    SEED: int | None
    debug: bool
    logger: Logger
    _initialized: bool

__version__ = "0.1.0"

cpu, gpu, cuda, amdgpu, metal = Backend
tc_int, tc_bool = torch.int32, torch.bool
np_int, np_bool = np.int32, np.bool_

init = _runtime.init
destroy = _runtime.destroy

_SUBMODULES = ("constants", "distributed", "materials", "morphs", "options", "surfaces", "textures")
_CLASSES = {"Scene": "pluriverse.scene"}
_SESSION = ("EPS", "SEED", "_initialized", "backend", "debug", "device", "logger", "np_float", "tc_float")

__all__ = [
    "ACTIVE",
    "CTRL_MODE",
    "EQUALITY_TYPE",
    "GEOM_TYPE",
    "IMAGE_TYPE",
    "INACTIVE",
    "JOINT_TYPE",
    "PARA_LEVEL",
    "GenesisException",
    "PluriverseError",
    "Scene",
    "amdgpu",
    "broadphase_traversal",
    "constants",
    "constraint_solver",
    "contact_resolution",
    "cpu",
    "cuda",
    "destroy",
    "distributed",
    "friction_cone",
    "gpu",
    "init",
    "integrator",
    "link_ref_frame",
    "materials",
    "metal",
    "morphs",
    "np_bool",
    "np_int",
    "options",
    "surfaces",
    "tc_bool",
    "tc_int",
    "textures",
]


def _session_attribute(name: str) -> Any:
    """`gs.<name>` as the session has it; None outside one, but for the float types, which nothing may default to."""
    session = _runtime.session
    if name == "_initialized":
        return session is not None
    if session is None:
        if name in ("tc_float", "np_float"):
            raise AttributeError(f"gs.{name} is known in a session only. Call gs.init() first.")
        return False if name == "debug" else None
    if name == "logger":
        return _logger
    return getattr(session, name.lower() if name in ("EPS", "SEED") else name)


def __getattr__(name: str) -> Any:
    if name in _SESSION:
        return _session_attribute(name)
    if name in _SUBMODULES:
        return importlib.import_module(f"pluriverse.{name}")
    if name in _CLASSES:
        return getattr(importlib.import_module(_CLASSES[name]), name)
    raise AttributeError(f"module 'pluriverse' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SESSION})
