"""Which control laws a model has: one for each degree of freedom, and one for each further actuator on it."""

from __future__ import annotations

from dataclasses import dataclass

from pluriverse.model import Model


@dataclass(frozen=True)
class ControlLaw:
    """A law adds clamp(c0 + c1 q + c2 v, lo, hi) to the generalized force of one degree of freedom."""

    dof: int
    actuator: int  # -1: none


def control_laws(model: Model) -> tuple[ControlLaw, ...]:
    """The model's laws. Law d < nv belongs to dof d and to its first actuator; the others follow in actuator order."""
    first = [-1] * model.nv
    further = []
    for actuator in range(model.nu):
        dof = int(model.jnt_dofadr[model.actuator_trnid[actuator, 0]])
        if first[dof] < 0:
            first[dof] = actuator
        else:
            further.append(ControlLaw(dof, actuator))
    return (*(ControlLaw(dof, actuator) for dof, actuator in enumerate(first)), *further)
