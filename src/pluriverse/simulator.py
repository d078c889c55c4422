"""What scripts reach as `scene.sim`: time, gravity and the solver of a scene."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from pluriverse.errors import GenesisException
from pluriverse.options import RigidOptions, SimOptions
from pluriverse.solver.rigid_solver import RigidSolver
from pluriverse.solver.states import SimState
from pluriverse.typing import ArrayLike, IndexLike

if TYPE_CHECKING:
    from pluriverse.entities import RigidEntity


class Simulator:
    """One rigid solver and its clock. From the build on its options are those in force, files' options included."""

    def __init__(self, sim_options: SimOptions, rigid_options: RigidOptions) -> None:
        self.sim_options = sim_options
        self.rigid_options = rigid_options
        self.entities: list[RigidEntity] = []
        self._solver: RigidSolver | None = None
        self._step_of_reset = 0

    def bind(self, solver: RigidSolver, sim_options: SimOptions, rigid_options: RigidOptions) -> None:
        """Called by the scene when it is built."""
        self._solver, self.sim_options, self.rigid_options = solver, sim_options, rigid_options

    @property
    def rigid_solver(self) -> RigidSolver:
        """The solver. An error before the scene is built, because the model is known only then."""
        if self._solver is None:
            raise GenesisException("The rigid solver exists once the scene is built. Call scene.build() first.")
        return self._solver

    @property
    def dt(self) -> float:
        """Duration of a step [s]."""
        return self.sim_options.dt

    @property
    def substeps(self) -> int:
        """Physics steps per step."""
        return self._solver.substeps if self._solver is not None else self.sim_options.substeps

    @property
    def substep_dt(self) -> float:
        """Duration of a physics step [s]."""
        return self.dt / self.substeps

    @property
    def gravity(self) -> torch.Tensor | tuple[float, float, float]:
        """([n_envs,] 3) present gravity [m/s^2]; before the build, that of the options."""
        return self._solver.get_gravity() if self._solver is not None else self.sim_options.gravity

    def set_gravity(self, gravity: ArrayLike, envs_idx: IndexLike = None) -> None:
        """Set gravity. gravity: ([n_envs,] 3), world frame [m/s^2]."""
        self.rigid_solver.set_gravity(gravity, envs_idx)

    def step(self) -> None:
        """Advance every environment by dt."""
        self.rigid_solver.step()

    def reset(self, state: SimState | None = None, envs_idx: IndexLike = None) -> None:
        """Put environments back to the initial state; `state` becomes that first."""
        if state is not None and not isinstance(state, SimState):
            raise GenesisException(f"state is a {type(state).__name__}; give what scene.get_state() returned, or None.")
        self.rigid_solver.reset(state.rigid if state is not None else None, envs_idx)
        if envs_idx is None:
            self._step_of_reset = self.rigid_solver.steps

    def get_state(self) -> SimState:
        """A copy of the present state."""
        return SimState.of_rigid(self.rigid_solver.get_state())

    def state_dict(self) -> dict[str, Any]:
        """What `RigidSolver.state_dict` returns, with the simulator's own clock."""
        return {**self.rigid_solver.state_dict(), "step_of_reset": self._step_of_reset}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned."""
        self.rigid_solver.load_state_dict(state)
        self._step_of_reset = state["step_of_reset"]

    def get_time(self, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,]) seconds since each environment's last reset."""
        return self.rigid_solver.get_time(envs_idx)

    @property
    def cur_step_global(self) -> int:
        """Steps since the build or the last reset of all environments."""
        return self.rigid_solver.steps - self._step_of_reset

    @property
    def cur_t(self) -> float:
        """Seconds since the build or the last reset of all environments."""
        return self.cur_step_global * self.dt

    @property
    def solvers(self) -> list[Any]:
        """The solvers of this package: the rigid one."""
        return [self.rigid_solver]

    active_solvers = solvers
    n_entities = property(lambda self: len(self.entities), doc="Entities of the scene.")
