"""Which equality constraints act, in each environment."""

from __future__ import annotations

import numpy as np
import torch

from pluriverse.errors import GenesisException
from pluriverse.solver.axes import Axes
from pluriverse.solver.broadcasting import Field, spread
from pluriverse.solver.state import State
from pluriverse.typing import ArrayLike, IndexLike


class EqualitySwitches:
    """Reads and writes `state.eq_active`. A reset puts back what the model file says."""

    def __init__(self, state: State, axes: Axes) -> None:
        self._axes, self._active = axes, Field(state.eq_active)

    def get_equalities_active(self, equalities_idx: IndexLike = None, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,] n_equalities) bool: whether each equality constraint acts."""
        rows, envs = self._axes.equalities.select(equalities_idx), self._axes.envs.select(envs_idx)
        return self._active.read(rows, envs) != 0

    def set_equalities_active(
        self, active: bool | ArrayLike, equalities_idx: IndexLike = None, envs_idx: IndexLike = None
    ) -> None:
        """Let equality constraints act or not, from the next step on. active: ([n_envs,] n_equalities), booleans."""
        rows, envs = self._axes.equalities.select(equalities_idx).unique(), self._axes.envs.select(envs_idx).unique()
        numbers = _numbers(active)
        self._active.write(rows, envs, spread(numbers, envs, rows.count, name="active", like=self._active.tensor))


def _numbers(active: bool | ArrayLike) -> torch.Tensor | np.ndarray:
    """Booleans as 0 and 1."""
    values = active if isinstance(active, torch.Tensor) else np.asarray(active)
    if isinstance(values, torch.Tensor) and values.dtype == torch.bool:
        return values.float()
    if isinstance(values, np.ndarray) and values.dtype == np.bool_:
        return values.astype(float)
    raise GenesisException(f"active holds {values.dtype}; allowed are booleans: True where the constraint acts.")
