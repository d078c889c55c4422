"""Commands to dofs and actuators, written as the control laws of the State.

The force of a dof is clamp(c0 + c1 q + c2 v, lo, hi). Its gain g, bias (b0, b1, b2) and mode decide what is clamped:

    POSITION           g target + b0 + b1 q + b2 v
    POSITION_VELOCITY  g target + b0 + b1 q + b2 (v - target velocity)
    VELOCITY           b2 (v - target velocity)
    FORCE              target

and ACTUATOR leaves the law to `control_actuators`. All of it is torch on the State's device and waits for nothing.
"""

from __future__ import annotations

import numpy as np
import torch

from pluriverse.constants import CTRL_MODE
from pluriverse.errors import GenesisException
from pluriverse.model import Model
from pluriverse.solver.actuators import ActuatorLaws, law_force, sum_ranges
from pluriverse.solver.axes import Axes
from pluriverse.solver.broadcasting import Field, fill_envs, spread
from pluriverse.solver.element_names import ElementNames
from pluriverse.solver.gains import Gains
from pluriverse.solver.indexing import Envs, Memory, Rows
from pluriverse.solver.state import State
from pluriverse.typing import ArrayLike, IndexLike

POSITION, VELOCITY, FORCE = int(CTRL_MODE.POSITION), int(CTRL_MODE.VELOCITY), int(CTRL_MODE.FORCE)
ACTUATOR, POSITION_VELOCITY = 3, 4

_MIXED = -1  # environments differ in mode
_METHODS = {
    POSITION: "control_dofs_position",
    VELOCITY: "control_dofs_velocity",
    POSITION_VELOCITY: "control_dofs_position_velocity",
}  # whose laws exist for hinges and slides only
_NOBODY, _DOF_COMMANDS, _ACTUATORS = range(3)  # who commands a dof
_HOLDERS = ("nobody", "control_dofs_*", "control_actuators")


class Commands:
    """Mode and targets of every dof in every environment. They persist until the next command or reset."""

    def __init__(self, model: Model, state: State, axes: Axes, gains: Gains, names: ElementNames) -> None:
        self._state, self._axes, self._gains, self._names = state, axes, gains, names
        self._laws, self._further_laws = state.control[: model.nv], state.control[model.nv :]
        self._offset, self._feedback = Field(self._laws[:, 0]), Field(self._laws[:, 1:3])  # c0; c1 and c2
        shape = (model.nv, state.n_padded)
        self._mode = Field(torch.full(shape, FORCE, dtype=torch.int8, device=state.control.device))
        self._target = Field(state.control.new_zeros(shape))
        self._target_velocity = Field(state.control.new_zeros(shape))
        self._zero = state.control.new_zeros(())
        self._actuators = ActuatorLaws(model, state.control)
        self._ctrl = Field(state.ctrl)  # of general actuators
        # The sum of several laws is clamped; the range of a single one has the joint's in it.
        self._sum_ranges = sum_ranges(model)
        # What the host knows without asking the device.
        self._mode_of_all = np.full(model.nv, FORCE)
        self._holder = np.full(model.nv, _NOBODY)
        # Rows that are in a mode in every environment, and whose dofs are held accordingly: only targets are new then.
        self._standing: Memory[bool] = Memory()
        gains.on_change = self._refresh

    def reset(self, envs: Envs) -> None:
        """Leaves the chosen environments limp: mode FORCE, force 0. Gains and force ranges stay."""
        fill_envs(self._mode.tensor, envs, FORCE)
        fill_envs(self._laws[:, :3], envs, 0.0)
        fill_envs(self._further_laws, envs, 0.0)
        fill_envs(self._state.ctrl, envs, 0.0)
        self._actuators.forget()
        self._standing.clear()
        if envs.is_all:
            self._mode_of_all[:] = FORCE
            self._holder[:] = _NOBODY
        else:
            self._mode_of_all[self._mode_of_all != FORCE] = _MIXED

    def saved(self) -> dict[str, torch.Tensor]:
        """The live tensors (..., N) that a saved state holds."""
        return {
            "mode": self._mode.tensor,
            "target": self._target.tensor,
            "target_velocity": self._target_velocity.tensor,
        }

    @property
    def holders(self) -> list[int]:
        """Who commands each dof; a saved state holds it too."""
        return self._holder.tolist()

    def restored(self, holders: list[int]) -> None:
        """To be called when the saved tensors have been written: learns what the host has to know of them."""
        modes = self._mode.tensor[:, : self._axes.envs.total]
        alike = (modes == modes[:, :1]).all(1)
        self._mode_of_all[:] = torch.where(alike, modes[:, 0], _MIXED).cpu().numpy()
        self._holder[:] = holders
        self._actuators.forget()
        self._standing.clear()

    def control_dofs_position(
        self, position: ArrayLike, dofs_idx: IndexLike = None, envs_idx: IndexLike = None
    ) -> None:
        """Drive dofs towards positions with their gains. position: ([n_envs,] n_dofs), [m] or [rad]."""
        rows, envs = self._axes.to_set(dofs_idx, envs_idx)
        target = self._spread(position, rows, envs, "position")
        self._enter(rows, envs, POSITION)
        self._target.write(rows, envs, target)
        self._write_offset(POSITION, rows, envs, target, self._zero)

    def control_dofs_velocity(
        self, velocity: ArrayLike, dofs_idx: IndexLike = None, envs_idx: IndexLike = None
    ) -> None:
        """Drive dofs towards velocities with their kv. velocity: ([n_envs,] n_dofs), [m/s] or [rad/s]."""
        rows, envs = self._axes.to_set(dofs_idx, envs_idx)
        target_velocity = self._spread(velocity, rows, envs, "velocity")
        self._enter(rows, envs, VELOCITY)
        self._target_velocity.write(rows, envs, target_velocity)
        self._write_offset(VELOCITY, rows, envs, self._zero, target_velocity)

    def control_dofs_position_velocity(
        self, position: ArrayLike, velocity: ArrayLike, dofs_idx: IndexLike = None, envs_idx: IndexLike = None
    ) -> None:
        """Drive dofs along a moving target. position, velocity: ([n_envs,] n_dofs), [m] or [rad], and per second."""
        rows, envs = self._axes.to_set(dofs_idx, envs_idx)
        target = self._spread(position, rows, envs, "position")
        target_velocity = self._spread(velocity, rows, envs, "velocity")
        self._enter(rows, envs, POSITION_VELOCITY)
        self._target.write(rows, envs, target)
        self._target_velocity.write(rows, envs, target_velocity)
        self._write_offset(POSITION_VELOCITY, rows, envs, target, target_velocity)

    def control_dofs_force(self, force: ArrayLike, dofs_idx: IndexLike = None, envs_idx: IndexLike = None) -> None:
        """Apply generalized forces, clamped to the force range. force: ([n_envs,] n_dofs), [N] or [N m].

        A free joint takes a force in world axes, then a torque in body axes. Forces of actuators that are no plain
        motors or servos add to it. The number 0 for all environments also releases the dofs: after it `control_dofs_*`
        and `control_actuators` may both take them.
        """
        rows, envs = self._axes.to_set(dofs_idx, envs_idx)
        releases = envs.is_all and isinstance(force, (int, float)) and force == 0
        value = self._spread(force, rows, envs, "force")
        self._enter(rows, envs, FORCE, _NOBODY if releases else _DOF_COMMANDS)
        self._offset.write(rows, envs, value)

    def control_actuators(self, ctrl: ArrayLike, actuators_idx: IndexLike = None, envs_idx: IndexLike = None) -> None:
        """MuJoCo's ctrl for the actuators of the model files, clamped to their ctrlrange.

        ctrl: ([n_envs,] n_controls), each in its actuator's unit. Indices count controls, in the order of MuJoCo's
        ctrl: all actuators but `pid`, `dcmotor` and `orientation` have one. The dof of a plain motor or servo takes
        either these or `control_dofs_*`; forces of all other actuators (tendons, sites, muscles, activations ...) add
        to whatever commands the dofs that they drive.
        """
        rows, envs = self._axes.actuators.select(actuators_idx).unique(), self._axes.envs.select(envs_idx).unique()
        value = spread(ctrl, envs, rows.count, name="ctrl", like=self._laws)
        kinds = self._actuators.kinds(rows)
        if not kinds.general.count:
            self._control_laws(rows, envs, value)
            return
        self._ctrl.write(kinds.general, envs, _columns(value, kinds.general_places))
        if kinds.laws.count:
            self._control_laws(kinds.laws, envs, _columns(value, kinds.law_places))

    def _control_laws(self, rows: Rows, envs: Envs, ctrl: torch.Tensor) -> None:
        """Commands actuators that are control laws."""
        if (rows, ACTUATOR) not in self._standing:
            dofs = rows.map(self._actuators.dofs, ctrl.device)
            self._hold(dofs, _ACTUATORS)
            if not self._actuators.is_complete(rows):
                self._set_mode(dofs, envs, ACTUATOR)
                self._actuators.write_constants(rows, envs)
            if self._actuators.is_complete(rows):
                self._standing[rows, ACTUATOR] = True
        self._actuators.write_ctrl(rows, envs, ctrl)

    def get_dofs_control_force(self, dofs_idx: IndexLike = None, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,] n_dofs) force of the present command at the present state, clamped, [N] or [N m].

        Without those of actuators that are no plain motors or servos.
        """
        rows, envs = self._axes.to_get(dofs_idx, envs_idx)
        position = self._state.qpos[self._axes.dofs.select().map(self._axes.q_of_dof, self._laws.device).where]
        force = law_force(self._laws, position, self._state.qvel)
        for law, dof in enumerate(self._actuators.further_dofs):
            force[dof] += law_force(self._further_laws[law], position[dof], self._state.qvel[dof])
        for dof, (lower, upper) in self._sum_ranges.items():
            force[dof].clamp_(lower, upper)
        return Field(force).read(rows, envs)

    def _spread(self, value: ArrayLike, rows: Rows, envs: Envs, name: str) -> torch.Tensor:
        return spread(value, envs, rows.count, name=name, like=self._laws)

    def _enter(self, rows: Rows, envs: Envs, mode: int, holder: int = _DOF_COMMANDS) -> None:
        """Puts dofs into a mode, with all of their laws but c0. Raises where they cannot take it."""
        if (rows, mode) in self._standing and holder != _NOBODY:
            return
        if mode in _METHODS:
            self._require_scalar(rows, _METHODS[mode])
        self._hold(rows, holder)
        if not self._is_mode_of_all(rows, mode):
            self._set_mode(rows, envs, mode)
            self._feedback.write(rows, envs, self._feedback_of(mode, rows, envs))
        if holder != _NOBODY and self._is_mode_of_all(rows, mode):
            self._standing[rows, mode] = True

    def _is_mode_of_all(self, rows: Rows, mode: int) -> bool:
        return bool((self._mode_of_all[rows.indices] == mode).all())

    def _set_mode(self, dofs: Rows, envs: Envs, mode: int) -> None:
        self._mode.write(dofs, envs, mode)
        self._mode_of_all[dofs.indices] = mode if envs.is_all else _MIXED
        self._standing.clear()

    def _refresh(self, rows: Rows, envs: Envs) -> None:
        """Writes the laws again after gains have changed. Those of modes FORCE and ACTUATOR do not depend on them."""
        known = set(self._mode_of_all[rows.indices].tolist())
        modes = self._mode.part(rows, envs)
        target, velocity = self._target.part(rows, envs), self._target_velocity.part(rows, envs)
        for mode in (POSITION, POSITION_VELOCITY, VELOCITY):
            if mode in known or _MIXED in known:
                base, factor, value, sign = self._offset_terms(mode, rows, envs, target, velocity)
                offset = torch.addcmul(base, factor, value, value=sign)
                feedback, is_in_mode = self._feedback_of(mode, rows, envs), modes == mode
                self._offset.write(rows, envs, torch.where(is_in_mode, offset, self._offset.part(rows, envs)))
                feedback = torch.where(is_in_mode[..., None], feedback, self._feedback.part(rows, envs))
                self._feedback.write(rows, envs, feedback)

    def _write_offset(self, mode: int, rows: Rows, envs: Envs, target: torch.Tensor, velocity: torch.Tensor) -> None:
        self._offset.write_product(rows, envs, *self._offset_terms(mode, rows, envs, target, velocity))

    def _offset_terms(
        self, mode: int, rows: Rows, envs: Envs, target: torch.Tensor, velocity: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, float]:
        """(base, factor, value, sign) of c0 = base + sign factor value; each broadcasts to (environments, count)."""
        gains = self._gains
        if mode == VELOCITY:
            return self._zero, gains.bias2.part(rows, envs), velocity, -1.0
        constant, gain = gains.bias0.part(rows, envs), gains.gain.part(rows, envs)
        if mode == POSITION:
            return constant, gain, target, 1.0
        return torch.addcmul(constant, gain, target), gains.bias2.part(rows, envs), velocity, -1.0

    def _feedback_of(self, mode: int, rows: Rows, envs: Envs) -> torch.Tensor | float:
        """(environments, count, 2) c1 and c2, or one number."""
        if mode == FORCE:
            return 0.0
        if mode == VELOCITY:
            slope = self._gains.bias2.part(rows, envs)
            return torch.stack((torch.zeros_like(slope), slope), -1)
        return self._gains.slopes.part(rows, envs)

    def _require_scalar(self, rows: Rows, method: str) -> None:
        if not rows.all(self._axes.is_scalar):
            others = ~self._axes.is_scalar[rows.indices]
            raise GenesisException(
                f"{method}: free and ball joints take forces only so far. Given were dofs of such: "
                f"{self._names.of_dofs(rows, others)}. Name the other dofs alone, or use control_dofs_force."
            )

    def _hold(self, rows: Rows, holder: int) -> None:
        """Notes who commands the dofs; the other kind of command on one of them is an error."""
        present = self._holder[rows.indices]
        taken = (present != _NOBODY) & (present != holder)
        if holder == _NOBODY:
            for law, dof in enumerate(self._actuators.further_dofs):
                if dof in rows.indices:
                    self._further_laws[law] = 0.0
            self._actuators.forget()
        elif taken.any():
            raise GenesisException(
                f"{_HOLDERS[holder]} cannot take {self._names.of_dofs(rows, taken)}. {_HOLDERS[present[taken][0]]} "
                "commands this already, and the forces of both would add. Release it with control_dofs_force(0.0, ...) "
                "for these dofs, or with scene.reset()."
            )
        if (present != holder).any():
            self._holder[rows.indices] = holder
            self._standing.clear()


def _columns(value: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Some of the chosen columns of (environments, count), or the one that stands for all."""
    return value if value.shape[-1] == 1 else value[..., places]
