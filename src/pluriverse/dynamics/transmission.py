"""What a tendon or an actuator pulls on: a length that joints change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Transmission:
    """A length [m] (or angle [rad]) and how each degree of freedom changes it."""

    length: Any
    moment: dict[int, Any]  # by dof: d length / d q, zeros by structure left out

    def velocity(self, qvel: list[Any]) -> Any:
        """Rate of the length at joint velocities by dof."""
        rate: Any = 0.0
        for dof, lever in self.moment.items():
            rate = rate + lever * qvel[dof]
        return rate
