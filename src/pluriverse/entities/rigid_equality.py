"""An equality constraint of an entity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from pluriverse.constants import EQUALITY_TYPE
from pluriverse.typing import ArrayLike, IndexLike

if TYPE_CHECKING:
    from pluriverse.entities.rigid_entity import RigidEntity
    from pluriverse.solver.rigid_solver import RigidSolver

_TYPE_OF_MUJOCO = {
    0: EQUALITY_TYPE.CONNECT,
    1: EQUALITY_TYPE.WELD,
    2: EQUALITY_TYPE.JOINT,
    3: EQUALITY_TYPE.TENDON,
}  # by mjtEq


class RigidEquality:
    """`idx` counts over the scene, `idx_local` within the entity."""

    def __init__(self, entity: RigidEntity, idx: int, idx_local: int, name: str) -> None:
        self.entity = entity
        self.idx = idx
        self.idx_local = idx_local
        self.name = name

    def __repr__(self) -> str:
        return f"<RigidEquality {self.idx} '{self.name}' ({self.type.name}) of '{self.entity.name}'>"

    @property
    def solver(self) -> RigidSolver:
        """The solver of the scene."""
        return self.entity.solver

    @property
    def type(self) -> EQUALITY_TYPE:
        """What it makes equal."""
        return _TYPE_OF_MUJOCO[int(self.solver.model.eq_type[self.idx])]

    def get_active(self, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,]) bool: whether it acts."""
        return self.solver.get_equalities_active(self.idx, envs_idx)[..., 0]

    def set_active(self, active: bool | ArrayLike, envs_idx: IndexLike = None) -> None:
        """Let it act or not, from the next step on. active: a boolean, or ([n_envs,] 1) booleans."""
        self.solver.set_equalities_active(active, self.idx, envs_idx)
