"""Gains and force ranges of dofs, one value for each environment."""

from __future__ import annotations

from collections.abc import Callable

import torch

from pluriverse.errors import GenesisException
from pluriverse.model import Model
from pluriverse.solver.actuators import dof_gains, dof_limits
from pluriverse.solver.axes import Axes
from pluriverse.solver.broadcasting import (
    FINITE,
    FINITE_OR_INFINITE,
    NOT_NEGATIVE,
    Allowed,
    Field,
    column,
    spread,
)
from pluriverse.solver.element_names import ElementNames
from pluriverse.solver.indexing import Envs, Rows
from pluriverse.solver.state import State
from pluriverse.typing import ArrayLike, IndexLike


class Gains:
    """Gain g and bias (b0, b1, b2) of every dof; they start as those of the dof's first actuator.

    A PD controller is g = kp, b = (0, -kp, -kv). `on_change` is told which dofs and environments have new ones.
    """

    def __init__(self, model: Model, state: State, axes: Axes, names: ElementNames) -> None:
        self._axes, self._names = axes, names
        self._eps = torch.finfo(state.control.dtype).eps
        limits = state.control[: model.nv, 3:]  # (nv, 2, N)
        limits.copy_(column(dof_limits(model), limits))
        self._lower, self._upper = Field(limits[:, 0]), Field(limits[:, 1])
        values = state.control.new_zeros(model.nv, 4, state.n_padded)
        values.copy_(column(dof_gains(model), values))
        self._values = Field(values)
        self.gain, self.bias0, self.bias1, self.bias2 = self._columns = [Field(values[:, i]) for i in range(4)]
        self.slopes = Field(values[:, 2:])  # b1 and b2
        self.on_change: Callable[[Rows, Envs], None] = lambda rows, envs: None

    def saved(self) -> dict[str, torch.Tensor]:
        """The live tensors (..., N) that a saved state holds; force ranges lie in `state.control`."""
        return {"gains": self._values.tensor}

    def set_dofs_kp(self, kp: ArrayLike, dofs_idx: IndexLike = None, envs_idx: IndexLike = None) -> None:
        """Position gain, of running commands too. kp: ([n_envs,] n_dofs), >= 0, [N/m] or [N m/rad]."""
        rows, envs = self._axes.to_set(dofs_idx, envs_idx)
        value = self._spread(kp, rows, envs, "kp", NOT_NEGATIVE)
        self._set(rows, envs, {0: value, 1: 0.0, 2: -value})

    def set_dofs_kv(self, kv: ArrayLike, dofs_idx: IndexLike = None, envs_idx: IndexLike = None) -> None:
        """Velocity gain, of running commands too. kv: ([n_envs,] n_dofs), >= 0, [N s/m] or [N m s/rad]."""
        rows, envs = self._axes.to_set(dofs_idx, envs_idx)
        self._set(rows, envs, {3: -self._spread(kv, rows, envs, "kv", NOT_NEGATIVE)})

    def set_dofs_act_gain(self, act_gain: ArrayLike, dofs_idx: IndexLike = None, envs_idx: IndexLike = None) -> None:
        """The gain g of position commands. act_gain: ([n_envs,] n_dofs)."""
        rows, envs = self._axes.to_set(dofs_idx, envs_idx)
        self._set(rows, envs, {0: self._spread(act_gain, rows, envs, "act_gain")})

    def set_dofs_act_bias(
        self,
        bias0: ArrayLike,
        bias1: ArrayLike,
        bias2: ArrayLike,
        dofs_idx: IndexLike = None,
        envs_idx: IndexLike = None,
    ) -> None:
        """The bias b0 + b1 q + b2 v of position commands, each ([n_envs,] n_dofs)."""
        rows, envs = self._axes.to_set(dofs_idx, envs_idx)
        biases = enumerate((bias0, bias1, bias2))
        self._set(rows, envs, {i + 1: self._spread(bias, rows, envs, f"bias{i}") for i, bias in biases})

    def set_dofs_force_range(
        self, lower: ArrayLike, upper: ArrayLike, dofs_idx: IndexLike = None, envs_idx: IndexLike = None
    ) -> None:
        """Range to which the force of a command is clamped. lower, upper: ([n_envs,] n_dofs), may be infinite."""
        rows, envs = self._axes.to_set(dofs_idx, envs_idx)
        low = self._spread(lower, rows, envs, "lower", FINITE_OR_INFINITE)
        high = self._spread(upper, rows, envs, "upper", FINITE_OR_INFINITE)
        if _cross(lower, upper) or (low.is_cpu and bool((low > high).any())):
            raise GenesisException("set_dofs_force_range: a lower bound lies above its upper bound. Nothing was set.")
        self._lower.write(rows, envs, low)
        self._upper.write(rows, envs, high)

    def get_dofs_kp(self, dofs_idx: IndexLike = None, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,] n_dofs) position gain. An error where gain and bias are no PD controller."""
        return self._pd(dofs_idx, envs_idx)[..., 0].clone()

    def get_dofs_kv(self, dofs_idx: IndexLike = None, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,] n_dofs) velocity gain. An error where gain and bias are no PD controller."""
        return -self._pd(dofs_idx, envs_idx)[..., 3]

    def get_dofs_act_gain(self, dofs_idx: IndexLike = None, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,] n_dofs) the gain g of position commands."""
        return self.gain.read(*self._axes.to_get(dofs_idx, envs_idx))

    def get_dofs_act_bias(self, dofs_idx: IndexLike = None, envs_idx: IndexLike = None) -> tuple[torch.Tensor, ...]:
        """(b0, b1, b2), each ([n_envs,] n_dofs)."""
        rows, envs = self._axes.to_get(dofs_idx, envs_idx)
        return tuple(bias.read(rows, envs) for bias in (self.bias0, self.bias1, self.bias2))

    def get_dofs_force_range(self, dofs_idx: IndexLike = None, envs_idx: IndexLike = None) -> tuple[torch.Tensor, ...]:
        """(lower, upper), each ([n_envs,] n_dofs), [N] or [N m]."""
        rows, envs = self._axes.to_get(dofs_idx, envs_idx)
        return self._lower.read(rows, envs), self._upper.read(rows, envs)

    def _spread(self, value: ArrayLike, rows: Rows, envs: Envs, name: str, allowed: Allowed = FINITE) -> torch.Tensor:
        return spread(value, envs, rows.count, name=name, like=self._values.tensor, allowed=allowed)

    def _set(self, rows: Rows, envs: Envs, columns: dict[int, torch.Tensor | float]) -> None:
        for i, value in columns.items():
            self._columns[i].write(rows, envs, value)
        self.on_change(rows, envs)

    def _pd(self, dofs_idx: IndexLike, envs_idx: IndexLike) -> torch.Tensor:
        """([n_envs,] n_dofs, 4) gain and bias, checked to be those of a PD controller; waits for the device."""
        rows, envs = self._axes.to_get(dofs_idx, envs_idx)
        gains = self._values.read(rows, envs)
        gain, constant, slope = gains[..., 0], gains[..., 1], gains[..., 2]
        other = (gain + slope).abs() > self._eps * gain.abs().clamp(min=1.0)
        other |= constant.abs() > self._eps
        bad = other.reshape(-1, rows.count).any(0).cpu().numpy()
        if bad.any():
            raise GenesisException(
                f"{self._names.of_dofs(rows, bad)}: gain and bias are those of no PD controller (gain != -bias1, or "
                "bias0 != 0), so there is no kp and kv. Read get_dofs_act_gain() and get_dofs_act_bias(), or set both."
            )
        return gains


def _cross(lower: ArrayLike, upper: ArrayLike) -> bool:
    """Whether a lower bound lies above its upper one, where the host can tell whatever device the State is on."""
    if any(isinstance(bound, torch.Tensor) and not bound.is_cpu for bound in (lower, upper)):
        return False
    low, high = (torch.as_tensor(bound) for bound in (lower, upper))
    return (low.shape == high.shape or not low.ndim or not high.ndim) and bool((low > high).any())
