"""A site of an entity: a frame that a model file names on a body."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from pluriverse.typing import IndexLike

if TYPE_CHECKING:
    from pluriverse.entities.rigid_entity import RigidEntity
    from pluriverse.entities.rigid_link import RigidLink
    from pluriverse.solver.rigid_solver import RigidSolver


class RigidSite:
    """`idx` counts over the scene. `link` is None for a site that a model file attaches to the world."""

    def __init__(self, entity: RigidEntity, link: RigidLink | None, idx: int, name: str) -> None:
        self.entity = entity
        self.link = link
        self.idx = idx
        self.name = name

    def __repr__(self) -> str:
        return f"<RigidSite {self.idx} '{self.name}' of '{self.entity.name}'>"

    @property
    def solver(self) -> RigidSolver:
        """The solver of the scene."""
        return self.entity.solver

    @property
    def init_pos(self) -> np.ndarray:
        """(3,) origin in the link frame [m]."""
        return self.solver.model.site_pos[self.idx]

    @property
    def init_quat(self) -> np.ndarray:
        """(4,) orientation in the link frame, wxyz."""
        return self.solver.model.site_quat[self.idx]

    def get_pos(self, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,] 3) origin in the world [m]."""
        return self.solver.get_sites_pos(self.idx, envs_idx)[..., 0, :]

    def get_quat(self, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,] 4) orientation in the world, wxyz."""
        return self.solver.get_sites_quat(self.idx, envs_idx)[..., 0, :]
