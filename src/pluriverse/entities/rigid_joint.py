"""A joint of an entity."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from pluriverse import rotations
from pluriverse.constants import JOINT_TYPE
from pluriverse.solver.broadcasting import column
from pluriverse.typing import IndexLike

if TYPE_CHECKING:
    from pluriverse.entities.rigid_entity import RigidEntity
    from pluriverse.entities.rigid_link import RigidLink
    from pluriverse.solver.rigid_solver import RigidSolver

_TYPE_OF_MUJOCO = {
    0: JOINT_TYPE.FREE,
    1: JOINT_TYPE.SPHERICAL,
    2: JOINT_TYPE.PRISMATIC,
    3: JOINT_TYPE.REVOLUTE,
}  # by mjtJoint
_N_QS = {JOINT_TYPE.FREE: 7, JOINT_TYPE.SPHERICAL: 4, JOINT_TYPE.PRISMATIC: 1, JOINT_TYPE.REVOLUTE: 1}
_N_DOFS = {JOINT_TYPE.FREE: 6, JOINT_TYPE.SPHERICAL: 3, JOINT_TYPE.PRISMATIC: 1, JOINT_TYPE.REVOLUTE: 1}

_FORMER_NAMES = {
    "dof_idx": "dofs_idx",
    "dof_idx_local": "dofs_idx_local",
    "q_idx": "qs_idx",
    "q_idx_local": "qs_idx_local",
}


class RigidJoint:
    """`idx`, `dofs_idx`, `qs_idx` count over the scene, the same with `_local` within the entity."""

    def __init__(self, link: RigidLink, idx: int, idx_local: int, name: str) -> None:
        self.link = link
        self.idx = idx
        self.idx_local = idx_local
        self.name = name

    def __repr__(self) -> str:
        return f"<RigidJoint {self.idx} '{self.name}' ({self.type.name}) of '{self.entity.name}'>"

    @property
    def entity(self) -> RigidEntity:
        """The entity that it is a part of."""
        return self.link.entity

    @property
    def solver(self) -> RigidSolver:
        """The solver of the scene."""
        return self.entity.solver

    @property
    def type(self) -> JOINT_TYPE:
        """The kind of joint."""
        return _TYPE_OF_MUJOCO[int(self.solver.model.jnt_type[self.idx])]

    @property
    def n_qs(self) -> int:
        """Numbers in qpos."""
        return _N_QS[self.type]

    @property
    def n_dofs(self) -> int:
        """Degrees of freedom."""
        return _N_DOFS[self.type]

    @property
    def q_start(self) -> int:
        """First number in qpos, over the scene."""
        return int(self.solver.model.jnt_qposadr[self.idx])

    @property
    def q_end(self) -> int:
        """Behind the last number in qpos."""
        return self.q_start + self.n_qs

    @property
    def dof_start(self) -> int:
        """First dof, over the scene."""
        return int(self.solver.model.jnt_dofadr[self.idx])

    @property
    def dof_end(self) -> int:
        """Behind the last dof."""
        return self.dof_start + self.n_dofs

    @property
    def qs_idx(self) -> list[int]:
        """Its numbers in qpos, over the scene."""
        return list(range(self.q_start, self.q_end))

    @property
    def qs_idx_local(self) -> list[int]:
        """Its numbers in the entity's qpos."""
        return [q - self.entity.q_start for q in self.qs_idx]

    @property
    def dofs_idx(self) -> list[int]:
        """Its dofs, over the scene."""
        return list(range(self.dof_start, self.dof_end))

    @property
    def dofs_idx_local(self) -> list[int]:
        """Its dofs within the entity."""
        return [dof - self.entity.dof_start for dof in self.dofs_idx]

    @property
    def init_qpos(self) -> np.ndarray:
        """(n_qs,) position in the model's rest pose."""
        return self.solver.model.qpos0[self.q_start : self.q_end].copy()

    def get_anchor_pos(self, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,] 3) anchor in the world [m]."""
        return self.link.get_pos(envs_idx) + self._turned(self.solver.model.jnt_pos[self.idx], envs_idx)

    def get_anchor_axis(self, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,] 3) axis in the world, unit length."""
        return self._turned(self.solver.model.jnt_axis[self.idx], envs_idx)

    def _turned(self, vector: np.ndarray, envs_idx: IndexLike) -> torch.Tensor:
        """([n_envs,] 3) a vector of the link frame in world axes."""
        quat = self.link.get_quat(envs_idx).movedim(-1, 0)
        fixed = column(vector, quat).reshape(-1, *[1] * (quat.ndim - 1))
        return rotations.rotate(quat, fixed.expand(-1, *quat.shape[1:])).movedim(0, -1)

    def __getattr__(self, name: str) -> Any:
        """Former names of the index lists: an int for a joint with one, None without any, else the list."""
        if name not in _FORMER_NAMES:
            raise AttributeError(f"'RigidJoint' object has no attribute '{name}'")
        warnings.warn(f"RigidJoint.{name} is now {_FORMER_NAMES[name]}, a list", DeprecationWarning, stacklevel=2)
        indices = getattr(self, _FORMER_NAMES[name])
        return indices if len(indices) > 1 else next(iter(indices), None)
