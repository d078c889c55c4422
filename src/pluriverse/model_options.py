"""MuJoCo's `<option>`, frozen."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import mujoco


@dataclasses.dataclass(frozen=True)
class ModelOptions:
    """MuJoCo's `<option>`, as compiled."""

    timestep: float  # [s]
    gravity: np.ndarray  # (3,) [m/s^2]
    integrator: int  # mjtIntegrator
    cone: int  # mjtCone
    solver: int  # mjtSolver
    impratio: float  # frictional over normal impedance of a contact
    tolerance: float  # of the constraint solver, scaled by 1 / (meaninertia nv)
    ls_tolerance: float  # of its line search
    noslip_tolerance: float  # of the pass that takes slip away
    density: float  # of the medium [kg/m^3]
    viscosity: float  # of the medium [Pa s]
    wind: np.ndarray  # (3,) velocity of the medium [m/s]
    ccd_tolerance: float  # of convex collision [m]
    ccd_iterations: int  # at most, of convex collision
    noslip_iterations: int  # of the pass that takes slip away
    disableactuator: int  # bits of actuator groups
    iterations: int  # at most, of the constraint solver
    ls_iterations: int  # at most, of its line search
    disableflags: int  # mjtDisableBit
    enableflags: int  # mjtEnableBit

    @classmethod
    def from_mujoco(cls, opt: mujoco.MjOption) -> ModelOptions:
        return cls(**{f.name: _option(getattr(opt, f.name)) for f in dataclasses.fields(cls)})

    def spelled(self) -> list[Any]:
        """The values as plain numbers and lists."""
        values = [getattr(self, f.name) for f in dataclasses.fields(self)]
        return [value.tolist() if isinstance(value, np.ndarray) else value for value in values]


def _option(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        copied = np.array(value, dtype=np.float64)
        copied.setflags(write=False)
        return copied
    return value if isinstance(value, float) else int(value)
