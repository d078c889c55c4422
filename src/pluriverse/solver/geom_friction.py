"""Sliding friction of geoms: a coefficient times a ratio, each one value for each environment."""

from __future__ import annotations

import numpy as np
import torch

from pluriverse.model import Model
from pluriverse.solver.axes import Axes
from pluriverse.solver.broadcasting import Allowed, Field, copy_envs, spread
from pluriverse.solver.indexing import Envs, Rows, rows_at
from pluriverse.solver.state import State
from pluriverse.typing import ArrayLike, IndexLike

COEFFICIENTS = Allowed("coefficients from 0.01 to 5, Genesis's range", lowest=1e-2, highest=5.0)
RATIOS = Allowed(
    "factors above 0 and up to 200, so that with the largest coefficient, 5, the friction is at most 1000: more than "
    "that holds no better and spoils the conditioning of the contact solve",
    lowest=0.0,
    highest=200.0,
    above=True,
)


class GeomFriction:
    """Writes `state.friction`. A reset restores ratios; coefficients stay as they were set."""

    def __init__(self, model: Model, state: State, axes: Axes) -> None:
        self._model, self._axes = model, axes
        self._friction = Field(state.friction)
        self._coefficient = Field(state.friction.clone())
        self._ratio = Field(torch.ones_like(state.friction))

    def saved(self) -> dict[str, torch.Tensor]:
        """The live tensors (ngeom, N) that a saved state holds; `state.friction` is their product."""
        return {"friction_coefficient": self._coefficient.tensor, "friction_ratio": self._ratio.tensor}

    def copy_ratio(self) -> torch.Tensor:
        """(ngeom, N) a copy of the ratios, for `restore_ratio`."""
        return self._ratio.tensor.clone()

    def restore_ratio(self, ratio: torch.Tensor, envs: Envs) -> None:
        """Puts back copied ratios in the chosen environments."""
        copy_envs(self._ratio.tensor, ratio, envs)
        copy_envs(self._friction.tensor, self._coefficient.tensor * self._ratio.tensor, envs)

    def set_geoms_friction(self, friction: ArrayLike, geoms_idx: IndexLike = None, envs_idx: IndexLike = None) -> None:
        """Set coefficients. friction: ([n_envs,] n_geoms), 0.01 to 5. Of two geoms in contact the larger counts."""
        rows, envs = self._axes.geoms.select(geoms_idx).unique(), self._axes.envs.select(envs_idx).unique()
        value = self._spread(friction, rows, envs, "friction", COEFFICIENTS)
        self._coefficient.write(rows, envs, value)
        self._update(rows, envs)

    def set_geoms_friction_ratio(
        self, friction_ratio: ArrayLike, geoms_idx: IndexLike = None, envs_idx: IndexLike = None
    ) -> None:
        """Set the factors of the coefficients, 1 at first and after a reset.

        friction_ratio: ([n_envs,] n_geoms), above 0 and up to 200.
        """
        rows, envs = self._axes.geoms.select(geoms_idx).unique(), self._axes.envs.select(envs_idx).unique()
        self._ratio.write(rows, envs, self._spread(friction_ratio, rows, envs, "friction_ratio", RATIOS))
        self._update(rows, envs)

    def set_links_friction_ratio(
        self, friction_ratio: ArrayLike, links_idx: IndexLike = None, envs_idx: IndexLike = None
    ) -> None:
        """Set the factors of all geoms of links. friction_ratio: ([n_envs,] n_links), above 0 and up to 200."""
        links, envs = self._axes.links.select(links_idx).unique(), self._axes.envs.select(envs_idx).unique()
        value = self._spread(friction_ratio, links, envs, "friction_ratio", RATIOS)
        of_link = [np.flatnonzero(self._model.geom_bodyid == body) for body in links.indices]
        geoms = self._axes.geoms.select(np.concatenate([*of_link, np.zeros(0, dtype=np.int64)]))
        repeated = rows_at(np.repeat(np.arange(links.count), [len(own) for own in of_link]), value.device, "links_idx")
        self._ratio.write(geoms, envs, value.expand(-1, links.count)[:, repeated.where])
        self._update(geoms, envs)

    def get_geoms_friction(self, geoms_idx: IndexLike = None, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,] n_geoms) coefficients, without their ratios."""
        return self._coefficient.read(self._axes.geoms.select(geoms_idx), self._axes.envs.select(envs_idx))

    def get_geoms_friction_ratio(self, geoms_idx: IndexLike = None, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,] n_geoms) factors of the coefficients."""
        return self._ratio.read(self._axes.geoms.select(geoms_idx), self._axes.envs.select(envs_idx))

    def _spread(self, value: ArrayLike, rows: Rows, envs: Envs, name: str, allowed: Allowed) -> torch.Tensor:
        return spread(value, envs, rows.count, name=name, like=self._ratio.tensor, allowed=allowed)

    def _update(self, rows: Rows, envs: Envs) -> None:
        self._friction.write(rows, envs, self._coefficient.part(rows, envs) * self._ratio.part(rows, envs))
