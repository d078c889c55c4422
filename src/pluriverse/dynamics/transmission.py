"""What a tendon or an actuator pulls on: a length that joints change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pluriverse.trace.expression import is_zero

Damping = dict[tuple[int, int], Any]
"""{(i, j): -d force_i / d velocity_j} of generalized forces, zeros by structure left out. Integrators use the pairs
whose dofs lie on one chain, i = j among them: those where the mass matrix is not zero by structure."""


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

    def damp(self, damping: Damping, slope: Any) -> None:
        """Adds moment' slope moment, where the force along the length falls by `slope` times its rate."""
        if is_zero(slope):
            return
        for i, lever in self.moment.items():
            for j, other in self.moment.items():
                add_damping(damping, i, j, lever * slope * other)


def add_damping(damping: Damping, i: int, j: int, value: Any) -> None:
    """Adds -d force_i / d velocity_j."""
    if not is_zero(value):
        damping[i, j] = damping.get((i, j), 0.0) + value
