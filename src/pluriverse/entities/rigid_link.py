"""A link (a body) of an entity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from pluriverse.constants import JOINT_TYPE
from pluriverse.not_yet import refuse_names_not_written
from pluriverse.typing import ArrayLike, IndexLike

if TYPE_CHECKING:
    from pluriverse.entities.rigid_entity import RigidEntity
    from pluriverse.entities.rigid_geom import RigidGeom
    from pluriverse.entities.rigid_joint import RigidJoint
    from pluriverse.solver.rigid_solver import RigidSolver


@refuse_names_not_written
class RigidLink:
    """`idx` counts over the scene, `idx_local` within the entity. Link i is the model's body i + 1."""

    def __init__(self, entity: RigidEntity, idx: int, idx_local: int, name: str) -> None:
        self.entity = entity
        self.idx = idx
        self.idx_local = idx_local
        self.name = name
        self.joints: list[RigidJoint] = []
        self.geoms: list[RigidGeom] = []

    def __repr__(self) -> str:
        return f"<RigidLink {self.idx} '{self.name}' of '{self.entity.name}'>"

    @property
    def solver(self) -> RigidSolver:
        """The solver of the scene."""
        return self.entity.solver

    @property
    def _body(self) -> int:
        return self.idx + 1

    @property
    def parent_idx(self) -> int:
        """Index of the parent link over the scene; -1: the world."""
        return int(self.solver.model.body_parentid[self._body]) - 1

    @property
    def root_idx(self) -> int:
        """Index of the link at the root of its tree."""
        return int(self.solver.model.body_rootid[self._body]) - 1

    @property
    def is_fixed(self) -> bool:
        """Whether it never moves."""
        return int(self.solver.model.body_weldid[self._body]) == 0

    @property
    def is_mocap(self) -> bool:
        """Whether it is a mocap body, which stands where `set_pos` and `set_quat` put it."""
        return int(self.solver.model.body_mocapid[self._body]) >= 0

    @property
    def is_free(self) -> bool:
        """Whether it has a free joint."""
        return any(joint.type is JOINT_TYPE.FREE for joint in self.joints)

    @property
    def n_joints(self) -> int:
        """Joints between it and its parent."""
        return len(self.joints)

    @property
    def n_geoms(self) -> int:
        """Collision shapes."""
        return len(self.geoms)

    @property
    def n_dofs(self) -> int:
        """Degrees of freedom of its joints."""
        return sum(joint.n_dofs for joint in self.joints)

    @property
    def n_qs(self) -> int:
        """Numbers in qpos of its joints."""
        return sum(joint.n_qs for joint in self.joints)

    @property
    def dof_start(self) -> int:
        """First dof of its joints over the scene; -1: none."""
        return self.joints[0].dof_start if self.joints else -1

    @property
    def dof_end(self) -> int:
        """Behind the last dof; -1: none."""
        return self.joints[-1].dof_end if self.joints else -1

    @property
    def q_start(self) -> int:
        """First number in qpos of its joints over the scene; -1: none."""
        return self.joints[0].q_start if self.joints else -1

    @property
    def q_end(self) -> int:
        """Behind the last number in qpos; -1: none."""
        return self.joints[-1].q_end if self.joints else -1

    @property
    def invweight(self) -> np.ndarray:
        """(2,) mean inverse inertia at the rest pose: translation [1/kg], rotation [1/(kg m^2)]."""
        return self.solver.model.body_invweight0[self._body]

    @property
    def inertial_pos(self) -> np.ndarray:
        """(3,) centre of mass in the link frame [m]."""
        return self.solver.model.body_ipos[self._body]

    @property
    def inertial_quat(self) -> np.ndarray:
        """(4,) principal axes in the link frame, wxyz."""
        return self.solver.model.body_iquat[self._body]

    @property
    def inertial_i(self) -> np.ndarray:
        """(3, 3) inertia about the centre of mass, in the principal axes [kg m^2]."""
        return np.diag(self.solver.model.body_inertia[self._body])

    @property
    def inertial_mass(self) -> float:
        """Mass [kg]."""
        return float(self.solver.model.body_mass[self._body])

    def get_mass(self) -> float:
        """Mass [kg]."""
        return self.inertial_mass

    def get_pos(self, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,] 3) origin of the link frame in the world [m]."""
        return self.solver.get_links_pos(self.idx, envs_idx)[..., 0, :]

    def get_quat(self, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,] 4) orientation in the world, wxyz."""
        return self.solver.get_links_quat(self.idx, envs_idx)[..., 0, :]

    def get_vel(self, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,] 3) velocity of the origin of the link frame, world axes [m/s]."""
        return self.solver.get_links_vel(self.idx, envs_idx)[..., 0, :]

    def get_ang(self, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,] 3) angular velocity, world axes [rad/s]."""
        return self.solver.get_links_ang(self.idx, envs_idx)[..., 0, :]

    def set_pos(self, pos: ArrayLike, envs_idx: IndexLike = None) -> None:
        """Move a free link or a mocap link; velocities stay. pos: ([n_envs,] 3), world frame [m]."""
        self.solver.set_base_links_pos(pos, self.idx, envs_idx)

    def set_quat(self, quat: ArrayLike, envs_idx: IndexLike = None) -> None:
        """Turn a free link or a mocap link; velocities stay. quat: ([n_envs,] 4), world frame, wxyz."""
        self.solver.set_base_links_quat(quat, self.idx, envs_idx)

    def set_friction(self, friction: ArrayLike, envs_idx: IndexLike = None) -> None:
        """Set the sliding friction coefficient of its shapes, 0.01 to 5. friction: a number or ([n_envs,] n_geoms)."""
        self.solver.set_geoms_friction(friction, [geom.idx for geom in self.geoms], envs_idx)
