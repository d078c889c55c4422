"""Activations of stateful actuators (muscles, integrators, filters, motors), in each environment."""

from __future__ import annotations

from collections.abc import Callable

import torch

from pluriverse.solver.axes import Axes
from pluriverse.solver.broadcasting import Field, spread
from pluriverse.solver.indexing import Envs
from pluriverse.solver.state import State
from pluriverse.typing import ArrayLike, IndexLike


class Activations:
    """Reads and writes `state.act`, which a step advances. They start as zeros, and a reset makes them so again."""

    def __init__(self, state: State, axes: Axes, changed: Callable[[Envs], None]) -> None:
        self._axes, self._act, self._changed = axes, Field(state.act), changed

    def get_act(self, activations_idx: IndexLike = None, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,] n_activations) MuJoCo's act, in the order of its actuators."""
        return self._act.read(self._axes.activations.select(activations_idx), self._axes.envs.select(envs_idx))

    def set_act(self, act: ArrayLike, activations_idx: IndexLike = None, envs_idx: IndexLike = None) -> None:
        """Set MuJoCo's act. act: ([n_envs,] n_activations), each in its actuator's unit."""
        rows, envs = self._axes.activations.select(activations_idx).unique(), self._axes.envs.select(envs_idx).unique()
        self._act.write(rows, envs, spread(act, envs, rows.count, name="act", like=self._act.tensor))
        self._changed(envs)
