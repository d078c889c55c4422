"""Positions, velocities and accelerations of dofs, and the model's constants for them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from pluriverse import rotations
from pluriverse.model import Model
from pluriverse.solver.axes import JOINT_FREE, Axes
from pluriverse.solver.broadcasting import Field, column, spread
from pluriverse.solver.indexing import Envs, Rows, rows_at
from pluriverse.solver.state import State
from pluriverse.typing import ArrayLike, IndexLike


class DofStates:
    """Getters and setters over `state.qpos`, `qvel` and `qacc`. `on_change` is told which environments were set."""

    def __init__(self, model: Model, state: State, axes: Axes, on_change: Callable[[Envs], None]) -> None:
        self._model, self._axes, self._on_change = model, axes, on_change
        self._qpos, self._qvel, self._qacc = Field(state.qpos), Field(state.qvel), Field(state.qacc)

    # motion

    def get_qpos(self, qs_idx: IndexLike = None, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,] n_qs) positions, [m] or [rad]; a free joint is xyz + wxyz, a ball joint wxyz."""
        return self._qpos.read(self._axes.qs.select(qs_idx), self._axes.envs.select(envs_idx))

    def set_qpos(
        self, qpos: ArrayLike, qs_idx: IndexLike = None, envs_idx: IndexLike = None, *, skip_forward: bool = False
    ) -> None:
        """Set positions. qpos: ([n_envs,] n_qs), as `get_qpos` returns them.

        `skip_forward` has no effect: link poses are computed when they are read.
        """
        rows, envs = self._axes.qs.select(qs_idx).unique(), self._axes.envs.select(envs_idx).unique()
        self._qpos.write(rows, envs, self._spread(qpos, rows, envs, "qpos"))
        self._on_change(envs)

    def get_dofs_position(self, dofs_idx: IndexLike = None, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,] n_dofs) positions, [m] or [rad].

        The rotation of a free or ball joint is given as angles about the fixed axes x, y, z.
        """
        rows, envs = self._axes.to_get(dofs_idx, envs_idx)
        if rows.all(self._axes.is_coordinate):
            return self._qpos.read(self._coordinates(rows), envs)
        return Field(self._positions(rows)).read(_each(rows), envs)

    def set_dofs_position(self, position: ArrayLike, dofs_idx: IndexLike = None, envs_idx: IndexLike = None) -> None:
        """Set positions. position: ([n_envs,] n_dofs), as `get_dofs_position` returns them.

        Setting some of the three angles of a joint keeps the others.
        """
        rows, envs = self._axes.to_set(dofs_idx, envs_idx)
        value = self._spread(position, rows, envs, "position")
        if rows.all(self._axes.is_coordinate):
            self._qpos.write(self._coordinates(rows), envs, value)
        else:
            value = value.expand(-1, rows.count)
            plain = np.flatnonzero(self._axes.is_coordinate[rows.indices])
            places = rows_at(plain, value.device, rows.argument)
            self._qpos.write(self._coordinates(rows.pick(plain, value.device)), envs, value[:, places.where])
            for joint in np.unique(self._model.dof_jntid[rows.indices]):
                self._set_angles(int(joint), rows, envs, value)
        self._on_change(envs)

    def get_dofs_velocity(self, dofs_idx: IndexLike = None, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,] n_dofs) velocities, [m/s] or [rad/s].

        A free joint has its linear velocity in world axes, then its angular velocity in body axes.
        """
        return self._qvel.read(*self._axes.to_get(dofs_idx, envs_idx))

    def set_dofs_velocity(
        self,
        velocity: ArrayLike | None = None,
        dofs_idx: IndexLike = None,
        envs_idx: IndexLike = None,
        *,
        skip_forward: bool = False,
    ) -> None:
        """Set velocities; None is zero. velocity: ([n_envs,] n_dofs), as `get_dofs_velocity` returns them.

        `skip_forward` has no effect: link velocities are computed when they are read.
        """
        rows, envs = self._axes.to_set(dofs_idx, envs_idx)
        value = 0.0 if velocity is None else self._spread(velocity, rows, envs, "velocity")
        self._qvel.write(rows, envs, value)
        self._on_change(envs)

    def zero_all_dofs_velocity(self, envs_idx: IndexLike = None, *, skip_forward: bool = False) -> None:
        """Stop every dof."""
        self.set_dofs_velocity(None, None, envs_idx)

    def get_dofs_acc(self, dofs_idx: IndexLike = None, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,] n_dofs) accelerations of the last step, [m/s^2] or [rad/s^2]; zero after a reset or a setter."""
        return self._qacc.read(*self._axes.to_get(dofs_idx, envs_idx))

    # constants of the model, the same in every environment

    def get_dofs_limit(
        self, dofs_idx: IndexLike = None, envs_idx: IndexLike = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(lower, upper) joint limits, [m] or [rad], infinite where there are none: (n_dofs,), or with envs_idx
        (n_envs, n_dofs)."""
        joint = self._model.dof_jntid
        limited = (self._model.jnt_limited[joint] & self._axes.is_scalar)[:, None]
        limits = np.where(limited, self._model.jnt_range[joint], (-np.inf, np.inf))
        return self._constant(limits[:, 0], dofs_idx, envs_idx), self._constant(limits[:, 1], dofs_idx, envs_idx)

    def get_dofs_armature(self, dofs_idx: IndexLike = None, envs_idx: IndexLike = None) -> torch.Tensor:
        """Rotor inertia [kg] or [kg m^2]: (n_dofs,), or with envs_idx (n_envs, n_dofs)."""
        return self._constant(self._model.dof_armature, dofs_idx, envs_idx)

    def get_dofs_damping(self, dofs_idx: IndexLike = None, envs_idx: IndexLike = None) -> torch.Tensor:
        """Viscous damping [N s/m] or [N m s/rad]: (n_dofs,), or with envs_idx (n_envs, n_dofs)."""
        return self._constant(self._model.dof_damping, dofs_idx, envs_idx)

    def get_dofs_stiffness(self, dofs_idx: IndexLike = None, envs_idx: IndexLike = None) -> torch.Tensor:
        """Spring stiffness [N/m] or [N m/rad]: (n_dofs,), or with envs_idx (n_envs, n_dofs)."""
        return self._constant(self._model.jnt_stiffness[self._model.dof_jntid], dofs_idx, envs_idx)

    def get_dofs_frictionloss(self, dofs_idx: IndexLike = None, envs_idx: IndexLike = None) -> torch.Tensor:
        """Dry friction [N] or [N m]: (n_dofs,), or with envs_idx (n_envs, n_dofs)."""
        return self._constant(self._model.dof_frictionloss, dofs_idx, envs_idx)

    def get_dofs_invweight(self, dofs_idx: IndexLike = None, envs_idx: IndexLike = None) -> torch.Tensor:
        """Diagonal of the inverse mass matrix at the rest pose: (n_dofs,), or with envs_idx (n_envs, n_dofs)."""
        return self._constant(self._model.dof_invweight0, dofs_idx, envs_idx)

    def _constant(self, values: np.ndarray, dofs_idx: IndexLike, envs_idx: IndexLike) -> torch.Tensor:
        rows, envs = self._axes.to_get(dofs_idx, envs_idx)
        tensor = column(values[rows.indices], self._qpos.tensor)
        if envs_idx is None:
            return tensor[:, 0]
        return Field(tensor.expand(-1, envs.total)).read(_each(rows), envs)

    def _spread(self, value: ArrayLike, rows: Rows, envs: Envs, name: str) -> torch.Tensor:
        return spread(value, envs, rows.count, name=name, like=self._qpos.tensor)

    def _coordinates(self, rows: Rows) -> Rows:
        """The rows of qpos that belong to dofs."""
        return rows.map(self._axes.q_of_dof, self._qpos.tensor.device)

    def _positions(self, rows: Rows) -> torch.Tensor:
        """(count, N) dof positions, rotations as angles."""
        position = self._qpos.tensor[self._coordinates(rows).where].clone()
        rotational = ~self._axes.is_coordinate[rows.indices]
        for joint in np.unique(self._model.dof_jntid[rows.indices[rotational]]):
            angles = rotations.to_euler(self._qpos.tensor[self._quaternion(int(joint))])
            for k in np.flatnonzero(rotational & (self._model.dof_jntid[rows.indices] == joint)):
                position[k] = angles[rows.indices[k] - self._first_angle(int(joint))]
        return position

    def _set_angles(self, joint: int, rows: Rows, envs: Envs, value: torch.Tensor) -> None:
        """Sets the chosen angles of one joint. value: (environments or 1, count)."""
        of_joint = ~self._axes.is_coordinate[rows.indices] & (self._model.dof_jntid[rows.indices] == joint)
        if not of_joint.any():
            return
        quaternion = rows_at(np.arange(*self._quaternion(joint).indices(self._model.nq)), value.device, rows.argument)
        angles = list(rotations.to_euler(self._qpos.part(quaternion, envs).movedim(-1, 0)))
        for k in np.flatnonzero(of_joint):
            i = int(rows.indices[k] - self._first_angle(joint))
            angles[i] = value[:, k].expand_as(angles[i])
        self._qpos.write(quaternion, envs, rotations.from_euler(torch.stack(angles)).movedim(0, -1))

    def _quaternion(self, joint: int) -> slice:
        first = int(self._model.jnt_qposadr[joint]) + (3 if self._model.jnt_type[joint] == JOINT_FREE else 0)
        return slice(first, first + 4)

    def _first_angle(self, joint: int) -> int:
        return int(self._model.jnt_dofadr[joint]) + (3 if self._model.jnt_type[joint] == JOINT_FREE else 0)


def _each(rows: Rows) -> Rows:
    """All rows of a tensor that already holds just the chosen ones."""
    return Rows(np.arange(rows.count), slice(0, rows.count), rows.argument, ())
