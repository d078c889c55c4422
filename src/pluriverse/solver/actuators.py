"""What the actuators of a model file mean for dofs: gains to start from, force ranges, and the laws of their controls.

A joint actuator with gear G, fixed gain g and bias (b0, b1, b2) has length G q and velocity G v, so its dof feels

    G (g ctrl + b0) + G^2 b1 q + G^2 b2 v,   clamped to G times the force range

(MuJoCo, Computation, "Actuation model").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from pluriverse.control_laws import control_laws
from pluriverse.model import Model
from pluriverse.solver.broadcasting import Field, column
from pluriverse.solver.indexing import Envs, Memory, Rows, rows_at

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
    """(nv, 2) range of the force of commands: that of the first actuator, and the joint's where there is no other.

    A motor's control range limits its force as well. Ranges clamp one after the other, as in MuJoCo.
    """
    laws = control_laws(model)
    limits = np.tile((-np.inf, np.inf), (model.nv, 1))
    for dof in range(model.nv):
        actuator = laws[dof].actuator
        ranges = []
        if actuator >= 0:
            if model.actuator_ctrllimited[actuator] and not np.any(_bias(model)[actuator]):
                slope = model.actuator_gear[actuator, 0] * model.actuator_gainprm[actuator, 0]
                ranges.append(np.sort(slope * model.actuator_ctrlrange[actuator]))
            ranges.append(_force_range(model)[actuator])
        joint = model.dof_jntid[dof]
        if model.jnt_actfrclimited[joint] and sum(law.dof == dof for law in laws) == 1:
            ranges.append(model.jnt_actfrcrange[joint])
        for lower, upper in ranges:
            limits[dof] = np.clip(limits[dof], lower, upper)
    return limits


def sum_range(model: Model, dof: int) -> tuple[float, float]:
    """To what the summed actuator force of a dof is clamped (MuJoCo's actuatorfrcrange); infinite: not at all."""
    joint = model.dof_jntid[dof]
    if not model.jnt_actfrclimited[joint]:
        return -np.inf, np.inf
    lower, upper = model.jnt_actfrcrange[joint].tolist()
    return lower, upper


@dataclass(frozen=True)
class _Chosen:
    """Some actuators: where their laws stand, and the constants of them, each (count,) or (count, 2)."""

    laws: Rows
    ctrl_range: tuple[torch.Tensor, torch.Tensor] | None  # None: not one of them has a range
    offset: torch.Tensor  # c0 = offset + slope ctrl
    slope: torch.Tensor
    feedback: torch.Tensor  # c1, c2
    further_laws: Rows  # those whose force range belongs to the actuator
    further_limits: torch.Tensor  # their lo, hi


class ActuatorLaws:
    """Turns MuJoCo's ctrl into rows of `state.control`."""

    def __init__(self, model: Model, control: torch.Tensor) -> None:
        laws = control_laws(model)
        law_of = {law.actuator: k for k, law in enumerate(laws)}
        self.dofs = np.array([laws[law_of[actuator]].dof for actuator in range(model.nu)], dtype=np.int64)
        self.further_dofs = tuple(law.dof for law in laws[model.nv :])
        self._laws = np.array([law_of[actuator] for actuator in range(model.nu)], dtype=np.int64)
        self._model = model
        self._c0, self._feedback, self._limits = Field(control[:, 0]), Field(control[:, 1:3]), Field(control[:, 3:])
        self._known: Memory[_Chosen] = Memory()
        self._complete = np.zeros(model.nu, dtype=bool)  # the law's constants stand in every environment

    def is_complete(self, rows: Rows) -> bool:
        """Whether only the ctrl of the actuators `rows` is missing, in every environment."""
        return bool(self._complete[rows.indices].all())

    def write_constants(self, rows: Rows, envs: Envs) -> None:
        """Writes all of the laws but what depends on the ctrl."""
        chosen = self._chosen(rows)
        self._feedback.write(chosen.laws, envs, chosen.feedback)
        # The first law of a dof keeps its force range, which users may have set.
        self._limits.write(chosen.further_laws, envs, chosen.further_limits)
        if envs.is_all:
            self._complete[rows.indices] = True

    def write_ctrl(self, rows: Rows, envs: Envs, ctrl: torch.Tensor) -> None:
        """Commands the actuators `rows`; ctrl broadcasts to (environments, count)."""
        chosen = self._chosen(rows)
        if chosen.ctrl_range is not None:
            ctrl = ctrl.clamp(*chosen.ctrl_range)
        self._c0.write_product(chosen.laws, envs, chosen.offset, chosen.slope, ctrl)

    def forget(self) -> None:
        """The laws of some environments have been cleared."""
        self._complete[:] = False

    def _chosen(self, rows: Rows) -> _Chosen:
        chosen = self._known.get(rows)
        if chosen is None:
            chosen = self._known[rows] = self._choose(rows)
        return chosen

    def _choose(self, rows: Rows) -> _Chosen:
        model, like = self._model, self._c0.tensor
        gear, bias = model.actuator_gear[:, 0], _bias(model)
        further = rows.indices[self._laws[rows.indices] >= model.nv]

        def constant(values: np.ndarray, actuators: np.ndarray = rows.indices) -> torch.Tensor:
            return column(values[actuators], like)[..., 0]

        def laws(actuators: np.ndarray) -> Rows:
            return rows_at(self._laws[actuators], like.device, rows.argument)

        limited = model.actuator_ctrllimited[:, None]
        lower, upper = np.where(limited, model.actuator_ctrlrange, (-np.inf, np.inf)).T
        return _Chosen(
            laws=laws(rows.indices),
            ctrl_range=(constant(lower), constant(upper)) if limited[rows.indices].any() else None,
            offset=constant(gear * bias[:, 0]),
            slope=constant(gear * model.actuator_gainprm[:, 0]),
            feedback=constant(gear[:, None] ** 2 * bias[:, 1:]),
            further_laws=laws(further),
            further_limits=constant(_force_range(model), further),
        )


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
