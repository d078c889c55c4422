"""A collision shape of an entity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from pluriverse.constants import GEOM_TYPE
from pluriverse.typing import ArrayLike, IndexLike

if TYPE_CHECKING:
    from pluriverse.entities.rigid_entity import RigidEntity
    from pluriverse.entities.rigid_link import RigidLink
    from pluriverse.solver.rigid_solver import RigidSolver

_TYPE_OF_MUJOCO = {
    0: GEOM_TYPE.PLANE,
    1: GEOM_TYPE.TERRAIN,
    2: GEOM_TYPE.SPHERE,
    3: GEOM_TYPE.CAPSULE,
    4: GEOM_TYPE.ELLIPSOID,
    5: GEOM_TYPE.CYLINDER,
    6: GEOM_TYPE.BOX,
    7: GEOM_TYPE.MESH,
}  # by mjtGeom


class RigidGeom:
    """`idx` counts over the scene. `link` is None for a shape that a model file attaches to the world."""

    def __init__(self, entity: RigidEntity, link: RigidLink | None, idx: int, name: str) -> None:
        self.entity = entity
        self.link = link
        self.idx = idx
        self.name = name

    def __repr__(self) -> str:
        return f"<RigidGeom {self.idx} '{self.name}' of '{self.entity.name}'>"

    @property
    def solver(self) -> RigidSolver:
        """The solver of the scene."""
        return self.entity.solver

    @property
    def type(self) -> GEOM_TYPE:
        """The kind of shape."""
        return _TYPE_OF_MUJOCO[int(self.solver.model.geom_type[self.idx])]

    @property
    def size(self) -> np.ndarray:
        """(3,) radius, half lengths ... as MuJoCo's geom_size says for this kind [m]."""
        return self.solver.model.geom_size[self.idx]

    @property
    def contype(self) -> int:
        """Contact type bits, as an unsigned number."""
        return int(self.solver.model.geom_contype[self.idx]) & 0xFFFFFFFF

    @property
    def conaffinity(self) -> int:
        """Contact affinity bits, as an unsigned number."""
        return int(self.solver.model.geom_conaffinity[self.idx]) & 0xFFFFFFFF

    @property
    def init_pos(self) -> np.ndarray:
        """(3,) origin in the link frame [m]."""
        return self.solver.model.geom_pos[self.idx]

    @property
    def init_quat(self) -> np.ndarray:
        """(4,) orientation in the link frame, wxyz."""
        return self.solver.model.geom_quat[self.idx]

    @property
    def is_fixed(self) -> bool:
        """Whether it never moves."""
        return self.link is None or self.link.is_fixed

    def get_pos(self, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,] 3) origin in the world [m]."""
        return self.solver.get_geoms_pos(self.idx, envs_idx)[..., 0, :]

    def get_quat(self, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,] 4) orientation in the world, wxyz."""
        return self.solver.get_geoms_quat(self.idx, envs_idx)[..., 0, :]

    def get_friction(self, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,]) sliding friction coefficient."""
        return self.solver.get_geoms_friction(self.idx, envs_idx)[..., 0]

    def set_friction(self, friction: ArrayLike, envs_idx: IndexLike = None) -> None:
        """Set the sliding friction coefficient, 0.01 to 5. friction: a number or ([n_envs,] 1)."""
        self.solver.set_geoms_friction(friction, self.idx, envs_idx)
