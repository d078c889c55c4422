"""What the actuators of a model file mean for dofs: gains to start from, force ranges, and the laws of their controls.

A joint actuator with gear G, fixed gain g and bias (b0, b1, b2) has length G q and velocity G v, so its dof feels

    G (g ctrl + b0) + G^2 b1 q + G^2 b2 v,   clamped to G times the force range

(MuJoCo, Computation, "Actuation model").
"""

from __future__ import annotations

import numpy as np
import torch

from pluriverse.broadcasting import column, write
from pluriverse.control_laws import control_laws
from pluriverse.indexing import Envs, Rows
from pluriverse.model import Model

_BIAS_AFFINE = 1  # mjtBias


def dof_gains(model: Model) -> np.ndarray:
    """(nv, 4) gain and bias (g, b0, b1, b2) of position commands.

    They are those of the dof's first actuator, at ctrl = G target. A dof without an actuator has zeros.
    """
    gains = np.zeros((model.nv, 4))
    for law in control_laws(model)[: model.nv]:
        if law.actuator >= 0:
            gear = model.actuator_gear[law.actuator, 0]
            b0, b1, b2 = _bias(model)[law.actuator]
            gains[law.dof] = gear**2 * model.actuator_gainprm[law.actuator, 0], gear * b0, gear**2 * b1, gear**2 * b2
    return gains


def dof_limits(model: Model) -> np.ndarray:
    """(nv, 2) range of the force of commands: that of the first actuator and that of the joint.

    A motor's control range limits its force as well.
    """
    laws = control_laws(model)
    limits = np.tile((-np.inf, np.inf), (model.nv, 1))
    for dof in range(model.nv):
        actuator = laws[dof].actuator
        ranges = []
        if actuator >= 0:
            ranges.append(_force_range(model)[actuator])
            if model.actuator_ctrllimited[actuator] and not np.any(_bias(model)[actuator]):
                slope = model.actuator_gear[actuator, 0] * model.actuator_gainprm[actuator, 0]
                ranges.append(np.sort(slope * model.actuator_ctrlrange[actuator]))
        joint = model.dof_jntid[dof]
        if model.jnt_actfrclimited[joint] and sum(law.dof == dof for law in laws) == 1:
            ranges.append(model.jnt_actfrcrange[joint])
        for lower, upper in ranges:
            limits[dof] = max(limits[dof, 0], lower), min(limits[dof, 1], upper)
    return limits


class ActuatorLaws:
    """Turns MuJoCo's ctrl into rows of `state.control`."""

    def __init__(self, model: Model, like: torch.Tensor) -> None:
        laws = control_laws(model)
        law_of = {law.actuator: k for k, law in enumerate(laws)}
        self.laws = np.array([law_of[actuator] for actuator in range(model.nu)], dtype=np.int64)
        self.dofs = np.array([laws[k].dof for k in self.laws], dtype=np.int64)
        self.further_dofs = tuple(law.dof for law in laws[model.nv :])
        self._n_dof_laws = model.nv
        gear = model.actuator_gear[:, 0]
        bias = _bias(model)
        ctrl = np.where(model.actuator_ctrllimited[:, None], model.actuator_ctrlrange, (-np.inf, np.inf))
        force = _force_range(model)

        def row(values: np.ndarray) -> torch.Tensor:
            return column(values, like)[:, 0]

        self._ctrl_lower, self._ctrl_upper = row(ctrl[:, 0]), row(ctrl[:, 1])
        self._slope, self._offset = row(gear * model.actuator_gainprm[:, 0]), row(gear * bias[:, 0])
        # c1, c2, lo, hi
        self._constants = [row(v) for v in (gear**2 * bias[:, 1], gear**2 * bias[:, 2], force[:, 0], force[:, 1])]
        self._complete = np.zeros(model.nu, dtype=bool)  # the law's constants stand in every environment

    def command(self, control: torch.Tensor, rows: Rows, envs: Envs, ctrl: torch.Tensor) -> bool:
        """Commands the actuators `rows`; ctrl broadcasts to (environments, count).

        Returns whether some of these laws were not yet in force in all environments.
        """
        laws = rows.map(self.laws, control.device)
        ctrl = ctrl.clamp(self._ctrl_lower[rows.where], self._ctrl_upper[rows.where])
        write(control[:, 0], laws, envs, self._offset[rows.where] + self._slope[rows.where] * ctrl)
        if self._complete[rows.indices].all():
            return False
        # The first law of a dof keeps its force range, which users may have set.
        further = np.flatnonzero(laws.indices >= self._n_dof_laws)
        for i, constant in enumerate(self._constants):
            chosen = rows if i < 2 else rows.pick(further, control.device)
            write(control[:, 1 + i], chosen.map(self.laws, control.device), envs, constant[chosen.where][None])
        if envs.is_all:
            self._complete[rows.indices] = True
        return True

    def forget(self) -> None:
        """The laws of some environments have been cleared."""
        self._complete[:] = False


def law_force(law: torch.Tensor, position: torch.Tensor, velocity: torch.Tensor) -> torch.Tensor:
    """(..., N) force clamp(c0 + c1 q + c2 v, lo, hi) of laws (..., 5, N)."""
    c0, c1, c2, lower, upper = law.unbind(-2)
    return torch.minimum(torch.maximum(c0 + c1 * position + c2 * velocity, lower), upper)


def _bias(model: Model) -> np.ndarray:
    """(nu, 3) constant, position and velocity bias; zero for actuators whose bias type is none."""
    return np.where((model.actuator_biastype == _BIAS_AFFINE)[:, None], model.actuator_biasprm[:, :3], 0.0)


def _force_range(model: Model) -> np.ndarray:
    """(nu, 2) range of the dof's force."""
    scaled = np.sort(model.actuator_gear[:, :1] * model.actuator_forcerange, axis=1)
    return np.where(model.actuator_forcelimited[:, None], scaled, (-np.inf, np.inf))
