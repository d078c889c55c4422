"""The axes of one built solver: what its indices of dofs, coordinates, links, geoms and so on mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from pluriverse.model import Model
from pluriverse.solver.indexing import EnvAxis, Envs, RowAxis, Rows
from pluriverse.typing import IndexLike

JOINT_FREE, JOINT_BALL = 0, 1  # mjtJoint


@dataclass(frozen=True)
class Axes:
    """Every index argument of the solver's methods, and what follows from a dof."""

    dofs: RowAxis
    qs: RowAxis
    links: RowAxis
    geoms: RowAxis
    actuators: RowAxis  # their controls
    activations: RowAxis
    sites: RowAxis
    equalities: RowAxis
    envs: EnvAxis
    q_of_dof: np.ndarray  # (nv,) row of qpos; without meaning for the rotations of free and ball joints
    is_scalar: np.ndarray  # (nv,) bool: the dof of a hinge or slide
    is_coordinate: np.ndarray  # (nv,) bool: its position is a row of qpos; not so a rotation of a free or ball joint

    @classmethod
    def of(cls, model: Model, n_envs: int, device: torch.device) -> Axes:
        def rows(first: int, stop: int, argument: str, kind: str) -> RowAxis:
            owner = f"the solver ({stop - first} {kind})"
            return RowAxis(np.arange(first, stop), device, argument=argument, owner=owner)

        kind = model.jnt_type[model.dof_jntid]
        within = np.arange(model.nv) - model.jnt_dofadr[model.dof_jntid]
        return cls(
            dofs=rows(0, model.nv, "dofs_idx", "dofs"),
            qs=rows(0, model.nq, "qs_idx", "coordinates"),
            links=rows(1, model.nbody, "links_idx", "links"),  # link i is body i + 1: the world is no link
            geoms=rows(0, model.ngeom, "geoms_idx", "geoms"),
            actuators=rows(0, model.nu, "actuators_idx", "controls of actuators"),
            activations=rows(0, model.na, "activations_idx", "activations"),
            sites=rows(0, model.nsite, "sites_idx", "sites"),
            equalities=rows(0, model.neq, "equalities_idx", "equality constraints"),
            envs=EnvAxis(n_envs, device),
            q_of_dof=model.jnt_qposadr[model.dof_jntid] + within,
            is_scalar=kind > JOINT_BALL,
            is_coordinate=(kind > JOINT_BALL) | ((kind == JOINT_FREE) & (within < 3)),
        )

    def to_get(self, dofs_idx: IndexLike, envs_idx: IndexLike) -> tuple[Rows, Envs]:
        """Dofs and environments that a getter reads."""
        return self.dofs.select(dofs_idx), self.envs.select(envs_idx)

    def to_set(self, dofs_idx: IndexLike, envs_idx: IndexLike) -> tuple[Rows, Envs]:
        """Dofs and environments that a setter writes; an index named twice is an error."""
        return self.dofs.select(dofs_idx).unique(), self.envs.select(envs_idx).unique()
