"""Classes of Genesis that this package does not have: a script may name them, but making one is an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pluriverse.errors import GenesisException

_SOLVERS = "{} not part of this package, which simulates rigid bodies only. Remove it."

UNSUPPORTED_OPTIONS = {
    "ToolOptions": _SOLVERS.format("tool bodies are"),
    "MPMOptions": _SOLVERS.format("soft bodies are"),
    "SPHOptions": _SOLVERS.format("fluids are"),
    "PBDOptions": _SOLVERS.format("soft bodies are"),
    "FEMOptions": _SOLVERS.format("soft bodies are"),
    "SFOptions": _SOLVERS.format("smoke is"),
    "LegacyCouplerOptions": _SOLVERS.format("coupling between solvers is"),
    "SAPCouplerOptions": _SOLVERS.format("coupling between solvers is"),
    "IPCCouplerOptions": _SOLVERS.format("coupling between solvers is"),
}


def refusing_classes(prefix: str, reasons: Mapping[str, str]) -> dict[str, type]:
    """For each name a class whose construction raises, saying `prefix.name: reason`."""
    return {name: _refusing_class(name, f"{prefix}.{name}: {reason}") for name, reason in reasons.items()}


def _refusing_class(name: str, message: str) -> type:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> None:
        raise GenesisException(message)

    return type(name, (), {"__init__": refuse, "__doc__": f"Not supported. {message}"})
