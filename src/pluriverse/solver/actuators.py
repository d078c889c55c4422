"""What the actuators of a model file mean for dofs: gains to start from, force ranges, and the laws of their controls.

A joint actuator with gear G, fixed gain g and bias (b0, b1, b2) has length G q and velocity G v, so its dof feels

    G (g ctrl + b0) + G^2 b1 q + G^2 b2 v,   clamped to G times the force range

(MuJoCo, Computation, "Actuation model").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from pluriverse.control_laws import AFFINE_BIAS, actuator_of_control, clamped_sums, clamps_controls, control_laws
from pluriverse.model import Model
from pluriverse.solver.broadcasting import Field, column
from pluriverse.solver.indexing import Envs, Memory, Rows, rows_at, to_device


def dof_gains(model: Model) -> np.ndarray:
    """(nv, 4) gain and bias (g, b0, b1, b2) of position commands.

    They are those of the dof's first law, at ctrl = G target. A dof without one has zeros.
    """
    gains = np.zeros((model.nv, 4))
    for law in control_laws(model)[: model.nv]:
        if law.actuator >= 0:
            gear = _gear(model)[law.actuator]
            b0, b1, b2 = _bias(model)[law.actuator]
            gains[law.dof] = gear**2 * model.actuator_gainprm[law.actuator, 0], gear * b0, gear**2 * b1, gear**2 * b2
    return gains


def dof_limits(model: Model) -> np.ndarray:
    """(nv, 2) range of the force of commands: that of the first law, and the joint's where nothing else drives it.

    A motor's control range limits its force as well. Ranges clamp one after the other, as in MuJoCo.
    """
    sums = clamped_sums(model)
    limits = np.tile((-np.inf, np.inf), (model.nv, 1))
    for law in control_laws(model)[: model.nv]:
        actuator, ranges = law.actuator, []
        if actuator >= 0:
            control = model.actuator_ctrladr[actuator]
            if model.actuator_ctrllimited[control] and clamps_controls(model) and not np.any(_bias(model)[actuator]):
                slope = _gear(model)[actuator] * model.actuator_gainprm[actuator, 0]
                ranges.append(np.sort(slope * model.actuator_ctrlrange[control]))
            ranges.append(_force_range(model)[actuator])
        joint = model.dof_jntid[law.dof]
        if model.jnt_actfrclimited[joint] and law.dof not in sums:
            ranges.append(model.jnt_actfrcrange[joint])
        for lower, upper in ranges:
            limits[law.dof] = np.clip(limits[law.dof], lower, upper)
    return limits


def sum_ranges(model: Model) -> dict[int, tuple[float, float]]:
    """To what the summed actuator force of a dof is clamped (MuJoCo's actuatorfrcrange), where a law alone does not."""
    ranges = {dof: model.jnt_actfrcrange[model.dof_jntid[dof]].tolist() for dof in clamped_sums(model)}
    return {dof: (lower, upper) for dof, (lower, upper) in ranges.items()}


@dataclass(frozen=True)
class Kinds:
    """Chosen controls by what they command: their rows, and their places among the chosen ones."""

    laws: Rows
    law_places: torch.Tensor
    general: Rows
    general_places: torch.Tensor


@dataclass(frozen=True)
class _Chosen:
    """Some controls of laws: where the laws stand, and the constants of them, each (count,) or (count, 2)."""

    laws: Rows
    ctrl_range: tuple[torch.Tensor, torch.Tensor] | None  # None: not one of them has a range
    offset: torch.Tensor  # c0 = offset + slope ctrl
    slope: torch.Tensor
    feedback: torch.Tensor  # c1, c2
    further_laws: Rows  # those whose force range belongs to the actuator
    further_limits: torch.Tensor  # their lo, hi


class ActuatorLaws:
    """Turns MuJoCo's ctrl into rows of `state.control`. Rows are those of controls: a law has one."""

    def __init__(self, model: Model, control: torch.Tensor) -> None:
        laws = control_laws(model)
        law_of = {law.actuator: k for k, law in enumerate(laws)}
        self._actuator = actuator_of_control(model)
        self._laws = np.array([law_of.get(actuator, -1) for actuator in self._actuator], dtype=np.int64)
        self.dofs = np.array([laws[law].dof if law >= 0 else -1 for law in self._laws], dtype=np.int64)
        self.further_dofs = tuple(law.dof for law in laws[model.nv :])
        self._model = model
        self._c0, self._feedback, self._limits = Field(control[:, 0]), Field(control[:, 1:3]), Field(control[:, 3:])
        self._known: Memory[_Chosen] = Memory()
        self._kinds: Memory[Kinds] = Memory()
        self._complete = np.zeros(model.nu, dtype=bool)  # the law's constants stand in every environment

    def kinds(self, rows: Rows) -> Kinds:
        """The chosen controls of laws and of general actuators."""
        kinds = self._kinds.get(rows)
        if kinds is None:
            device, is_law = self._c0.tensor.device, self._laws[rows.indices] >= 0
            places = [np.flatnonzero(is_law), np.flatnonzero(~is_law)]
            laws, general = ((rows.pick(p, device), to_device(torch.from_numpy(p), device)) for p in places)
            kinds = self._kinds[rows] = Kinds(*laws, *general)
        return kinds

    def is_complete(self, rows: Rows) -> bool:
        """Whether only the ctrl of the laws of `rows` is missing, in every environment."""
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
        """Commands the laws of `rows`; ctrl broadcasts to (environments, count)."""
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
        actuators = self._actuator[rows.indices]
        gear, bias = _gear(model), _bias(model)
        is_further = self._laws[rows.indices] >= model.nv

        def constant(values: np.ndarray) -> torch.Tensor:
            return column(values, like)[..., 0]

        def laws(controls: np.ndarray) -> Rows:
            return rows_at(self._laws[controls], like.device, rows.argument)

        limited = model.actuator_ctrllimited[rows.indices] & clamps_controls(model)
        lower, upper = np.where(limited[:, None], model.actuator_ctrlrange[rows.indices], (-np.inf, np.inf)).T
        return _Chosen(
            laws=laws(rows.indices),
            ctrl_range=(constant(lower), constant(upper)) if limited.any() else None,
            offset=constant(gear[actuators] * bias[actuators, 0]),
            slope=constant(gear[actuators] * model.actuator_gainprm[actuators, 0]),
            feedback=constant(gear[actuators, None] ** 2 * bias[actuators, 1:]),
            further_laws=laws(rows.indices[is_further]),
            further_limits=constant(_force_range(model)[actuators[is_further]]),
        )


def law_force(law: torch.Tensor, position: torch.Tensor, velocity: torch.Tensor) -> torch.Tensor:
    """(..., N) force clamp(c0 + c1 q + c2 v, lo, hi) of laws (..., 5, N)."""
    c0, c1, c2, lower, upper = law.unbind(-2)
    return torch.minimum(torch.maximum(c0 + c1 * position + c2 * velocity, lower), upper)


def _gear(model: Model) -> np.ndarray:
    """(nactuator,) the ratio that counts for a hinge or slide."""
    return model.actuator_gear[model.actuator_outadr, 0]


def _bias(model: Model) -> np.ndarray:
    """(nactuator, 3) constant, position and velocity bias; zero for actuators whose bias type is none."""
    return np.where((model.actuator_biastype == AFFINE_BIAS)[:, None], model.actuator_biasprm[:, :3], 0.0)


def _force_range(model: Model) -> np.ndarray:
    """(nactuator, 2) range of the dof's force."""
    scaled = np.sort(_gear(model)[:, None] * model.actuator_forcerange, axis=1)
    return np.where(model.actuator_forcelimited[:, None], scaled, (-np.inf, np.inf))
