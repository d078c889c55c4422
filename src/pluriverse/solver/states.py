"""Copies of the simulation's state that users hold: what `scene.get_state()` returns and `scene.reset(state)` takes."""

from __future__ import annotations

from dataclasses import dataclass

import torch

N_SOLVERS = 8  # of Genesis: tool, rigid, kinematic, mpm, sph, pbd, fem, sf
RIGID = 1


@dataclass(frozen=True, eq=False)
class RigidSolverState:
    """Every rigid body. The environment axis is always there."""

    qpos: torch.Tensor  # (B, nq), see RigidSolver.get_qpos
    dofs_vel: torch.Tensor  # (B, nv), see RigidSolver.get_dofs_velocity
    dofs_acc: torch.Tensor  # (B, nv), of the last step; the constraint solver starts from it
    links_pos: torch.Tensor  # (B, n_links, 3), [m]; follows from qpos
    links_quat: torch.Tensor  # (B, n_links, 4), wxyz; follows from qpos
    friction_ratio: torch.Tensor  # (B, n_geoms)
    act: torch.Tensor  # (B, n) activations of actuators, and past controls of delayed ones
    mocap: torch.Tensor  # (B, 7 n) position and quaternion of each mocap body
    eq_active: torch.Tensor  # (B, n_equalities) 1 where the constraint acts, else 0
    s_global: int  # step at which it was taken


@dataclass(frozen=True, eq=False)
class RigidEntityState:
    """The base and the joints of one entity. The environment axis is always there."""

    pos: torch.Tensor  # (B, 3), [m]
    quat: torch.Tensor  # (B, 4), wxyz
    qpos: torch.Tensor  # (B, n_qs)
    dofs_vel: torch.Tensor  # (B, n_dofs)


@dataclass(frozen=True, eq=False)
class SimState:
    """One state for each of Genesis's solvers, None for those that this package does not have."""

    solvers_state: tuple[RigidSolverState | None, ...]
    s_global: int

    @classmethod
    def of_rigid(cls, state: RigidSolverState) -> SimState:
        states: list[RigidSolverState | None] = [None] * N_SOLVERS
        states[RIGID] = state
        return cls(tuple(states), state.s_global)

    @property
    def rigid(self) -> RigidSolverState:
        """The state of the rigid solver."""
        state = self.solvers_state[RIGID]
        assert state is not None  # `of_rigid` is the only way here
        return state
