"""Commands to dofs and actuators, written as the control laws of the State.

The force of a dof is clamp(c0 + c1 q + c2 v, lo, hi). Its gain g, bias (b0, b1, b2) and mode decide what is clamped:

    POSITION           g target + b0 + b1 q + b2 v
    POSITION_VELOCITY  g target + b0 + b1 q + b2 (v - target velocity)
    VELOCITY           b0 + b2 (v - target velocity)
    FORCE              target

and ACTUATOR leaves the law to `control_actuators`. All of it is torch on the State's device and waits for nothing.
"""

from __future__ import annotations

import numpy as np
import torch

from pluriverse.actuators import ActuatorLaws, law_force
from pluriverse.axes import Axes
from pluriverse.broadcasting import fill_envs, part, put, read, spread, write
from pluriverse.constants import CTRL_MODE
from pluriverse.errors import GenesisException
from pluriverse.gains import Gains
from pluriverse.indexing import Envs, Rows
from pluriverse.model import Model
from pluriverse.state import State
from pluriverse.typing import ArrayLike, IndexLike

POSITION, VELOCITY, FORCE = int(CTRL_MODE.POSITION), int(CTRL_MODE.VELOCITY), int(CTRL_MODE.FORCE)
ACTUATOR, POSITION_VELOCITY = 3, 4

_MIXED = -1  # environments differ in mode
_NOBODY, _DOF_COMMANDS, _ACTUATORS = range(3)  # who commands a dof
_HOLDERS = ("nobody", "control_dofs_*", "control_actuators")


class Commands:
    """Mode and targets of every dof in every environment. They persist until the next command or reset."""

    def __init__(self, model: Model, state: State, axes: Axes, gains: Gains) -> None:
        self._model, self._state, self._axes, self._gains = model, state, axes, gains
        self._laws, self._further_laws = state.control[: model.nv], state.control[model.nv :]
        shape = (model.nv, state.n_padded)
        self._mode = torch.full(shape, FORCE, dtype=torch.int8, device=state.control.device)
        self._target = state.control.new_zeros(shape)  # position or force
        self._target_velocity = state.control.new_zeros(shape)
        self._actuators = ActuatorLaws(model, state.control)
        # What the host knows without asking the device.
        self._mode_of_all = np.full(model.nv, FORCE)
        self._holder = np.full(model.nv, _NOBODY)
        gains.on_change = self._refresh

    def reset(self, envs: Envs) -> None:
        """Leaves the chosen environments limp: mode FORCE, force 0. Gains and force ranges stay."""
        fill_envs(self._mode, envs, FORCE)
        fill_envs(self._target, envs, 0.0)
        fill_envs(self._laws[:, :3], envs, 0.0)
        fill_envs(self._further_laws, envs, 0.0)
        self._actuators.forget()
        if envs.is_all:
            self._mode_of_all[:] = FORCE
            self._holder[:] = _NOBODY
        else:
            self._mode_of_all[self._mode_of_all != FORCE] = _MIXED

    def control_dofs_position(
        self, position: ArrayLike, dofs_idx: IndexLike = None, envs_idx: IndexLike = None
    ) -> None:
        """Drive dofs towards positions with their gains. position: ([n_envs,] n_dofs), [m] or [rad]."""
        rows, envs = self._axes.to_set(dofs_idx, envs_idx)
        self._require_scalar(rows, "control_dofs_position")
        self._command(rows, envs, POSITION, target=self._spread(position, rows, envs, "position"))

    def control_dofs_velocity(
        self, velocity: ArrayLike, dofs_idx: IndexLike = None, envs_idx: IndexLike = None
    ) -> None:
        """Drive dofs towards velocities with their kv. velocity: ([n_envs,] n_dofs), [m/s] or [rad/s]."""
        rows, envs = self._axes.to_set(dofs_idx, envs_idx)
        self._require_scalar(rows, "control_dofs_velocity")
        self._command(rows, envs, VELOCITY, velocity=self._spread(velocity, rows, envs, "velocity"))

    def control_dofs_position_velocity(
        self, position: ArrayLike, velocity: ArrayLike, dofs_idx: IndexLike = None, envs_idx: IndexLike = None
    ) -> None:
        """Drive dofs along a moving target. position, velocity: ([n_envs,] n_dofs), [m] or [rad], and per second."""
        rows, envs = self._axes.to_set(dofs_idx, envs_idx)
        self._require_scalar(rows, "control_dofs_position_velocity")
        target = self._spread(position, rows, envs, "position")
        self._command(rows, envs, POSITION_VELOCITY, target, self._spread(velocity, rows, envs, "velocity"))

    def control_dofs_force(self, force: ArrayLike, dofs_idx: IndexLike = None, envs_idx: IndexLike = None) -> None:
        """Apply generalized forces, clamped to the force range. force: ([n_envs,] n_dofs), [N] or [N m].

        A free joint takes a force in world axes, then a torque in body axes. The number 0 for all environments also
        releases the dofs: after it `control_dofs_*` and `control_actuators` may both take them.
        """
        rows, envs = self._axes.to_set(dofs_idx, envs_idx)
        releases = envs.is_all and isinstance(force, (int, float)) and force == 0
        value = self._spread(force, rows, envs, "force")
        self._command(rows, envs, FORCE, target=value, holder=_NOBODY if releases else _DOF_COMMANDS)

    def control_actuators(self, ctrl: ArrayLike, actuators_idx: IndexLike = None, envs_idx: IndexLike = None) -> None:
        """MuJoCo's ctrl for the actuators of the model files, clamped to their ctrlrange.

        ctrl: ([n_envs,] n_actuators), each in its actuator's unit. A dof takes either these or `control_dofs_*`.
        """
        rows, envs = self._axes.actuators.select(actuators_idx).unique(), self._axes.envs.select(envs_idx)
        value = spread(ctrl, envs, rows.count, name="ctrl", like=self._laws)
        dofs = rows.map(self._actuators.dofs, value.device)
        self._hold(dofs, _ACTUATORS)
        if self._actuators.command(self._state.control, rows, envs, value):
            self._set_mode(dofs, envs, ACTUATOR)

    def get_dofs_control_force(self, dofs_idx: IndexLike = None, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,] n_dofs) force of the present command at the present state, clamped, [N] or [N m]."""
        rows, envs = self._axes.to_get(dofs_idx, envs_idx)
        position = self._state.qpos[self._axes.dofs.select().map(self._axes.q_of_dof, self._laws.device).where]
        force = law_force(self._laws, position, self._state.qvel)
        for law, dof in enumerate(self._actuators.further_dofs):
            force[dof] += law_force(self._further_laws[law], position[dof], self._state.qvel[dof])
        return read(force, rows, envs)

    def _spread(self, value: ArrayLike, rows: Rows, envs: Envs, name: str) -> torch.Tensor:
        return spread(value, envs, rows.count, name=name, like=self._laws)

    def _command(
        self,
        rows: Rows,
        envs: Envs,
        mode: int,
        target: torch.Tensor | None = None,
        velocity: torch.Tensor | None = None,
        holder: int = _DOF_COMMANDS,
    ) -> None:
        self._hold(rows, holder)
        if target is not None:
            write(self._target, rows, envs, target)
        if velocity is not None:
            write(self._target_velocity, rows, envs, velocity)
        if (self._mode_of_all[rows.indices] == mode).all():  # the usual case: only the target is new
            put(self._laws[:, 0], rows, envs, self._offset(mode, rows, envs))
        else:
            self._set_mode(rows, envs, mode)
            self._refresh(rows, envs)

    def _set_mode(self, rows: Rows, envs: Envs, mode: int) -> None:
        write(self._mode, rows, envs, mode)
        self._mode_of_all[rows.indices] = mode if envs.is_all else _MIXED

    def _refresh(self, rows: Rows, envs: Envs) -> None:
        """Writes c0, c1, c2 as modes, targets and gains say; laws in mode ACTUATOR stay."""
        known = set(self._mode_of_all[rows.indices].tolist())
        modes = part(self._mode, rows, envs)
        laws = part(self._laws[:, :3], rows, envs)
        for mode in (POSITION, POSITION_VELOCITY, VELOCITY, FORCE):
            if mode in known or _MIXED in known:
                law = torch.stack((self._offset(mode, rows, envs), *self._feedback(mode, rows, envs)), 1)
                laws = law if known == {mode} else torch.where((modes == mode)[:, None], law, laws)
        put(self._laws[:, :3], rows, envs, laws)

    def _offset(self, mode: int, rows: Rows, envs: Envs) -> torch.Tensor:
        """(count, environments) c0."""
        target = part(self._target, rows, envs)
        if mode == FORCE:
            return target
        gain, c0, _, bias_velocity = part(self._gains.values, rows, envs).unbind(1)
        if mode != POSITION:
            c0 = torch.addcmul(c0, bias_velocity, part(self._target_velocity, rows, envs), value=-1)
        return torch.addcmul(c0, gain, target) if mode != VELOCITY else c0

    def _feedback(self, mode: int, rows: Rows, envs: Envs) -> tuple[torch.Tensor, torch.Tensor]:
        """c1 and c2, each (count, environments)."""
        _, constant, slope, bias_velocity = part(self._gains.values, rows, envs).unbind(1)
        zero = torch.zeros_like(constant)
        return (slope if mode in (POSITION, POSITION_VELOCITY) else zero, bias_velocity if mode != FORCE else zero)

    def _require_scalar(self, rows: Rows, method: str) -> None:
        if not self._axes.is_scalar[rows.indices].all():
            others = rows.indices[~self._axes.is_scalar[rows.indices]]
            raise GenesisException(
                f"{method}: {self._names(others)} belong to free or ball joints, which take forces only so far. "
                "Name the other dofs in dofs_idx, or use control_dofs_force."
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
                f"{_HOLDERS[holder]} cannot take {self._names(rows.indices[taken])}: {_HOLDERS[present[taken][0]]} "
                "commands it already, and the forces of both would add. Release it with "
                "control_dofs_force(0.0, dofs_idx), or with scene.reset()."
            )
        self._holder[rows.indices] = holder

    def _names(self, dofs: np.ndarray) -> str:
        names = (
            f"dof {dof} ({self._model.joint_names[self._model.dof_jntid[dof]] or 'unnamed joint'})" for dof in dofs
        )
        return ", ".join(names)
