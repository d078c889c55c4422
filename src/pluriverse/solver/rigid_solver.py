"""The rigid-body solver of a built scene: owns State and kernels, steps, resets, and answers with global indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from pluriverse.errors import GenesisException
from pluriverse.model import Model
from pluriverse.not_yet import refuse_names_not_written
from pluriverse.runtime import runtime
from pluriverse.solver.activations import Activations
from pluriverse.solver.axes import Axes
from pluriverse.solver.broadcasting import FINITE, Field, column, copy_envs, fill_envs, spread
from pluriverse.solver.commands import Commands
from pluriverse.solver.dof_states import DofStates
from pluriverse.solver.element_names import ElementNames
from pluriverse.solver.equality_switches import EqualitySwitches
from pluriverse.solver.forwarding import to_part
from pluriverse.solver.gains import Gains
from pluriverse.solver.geom_friction import RATIOS, GeomFriction
from pluriverse.solver.indexing import Envs, rows_at
from pluriverse.solver.link_states import LinkStates
from pluriverse.solver.random_streams import RandomStream, RandomStreams
from pluriverse.solver.saved_state import FORMAT, check_origin, copies, restore
from pluriverse.solver.state import STATUS_NON_FINITE, STATUS_SOLVER_LIMIT, State
from pluriverse.solver.states import RigidSolverState
from pluriverse.solver.status_monitor import PERIOD, StatusMonitor
from pluriverse.step import StepSettings
from pluriverse.step_kernel import KinematicsKernel, StepKernel
from pluriverse.typing import ArrayLike, IndexLike

if TYPE_CHECKING:
    from pluriverse.importers.scene_spec import EntityLayout


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What a reset restores, laid out as the State is."""

    motion: torch.Tensor  # (rows, N): qpos, qvel, qacc, act, mocap
    friction_ratio: torch.Tensor  # (ngeom, N)
    eq_active: torch.Tensor  # (neq, N)


@refuse_names_not_written
class RigidSolver:
    """Reached as `scene.sim.rigid_solver` or `scene.rigid_solver` once the scene is built.

    Index arguments count over the whole scene, in the order in which the entities were added: `dofs_idx`, `qs_idx`,
    `links_idx`, `geoms_idx`, `sites_idx`, `actuators_idx`, `equalities_idx`. Every kind of index works: int (keeps its
    axis), slice, range, list, numpy, torch, boolean mask; negative ones count from the end. Values spread as
    `broadcasting.spread` says. Getters return fresh tensors ([n_envs,] ...) in `gs.tc_float` on `gs.device`; without
    the environment axis if n_envs=0. Setters of motion end the frozen state of the environments they touch, and the
    next step starts from the new state only.
    """

    @torch.inference_mode(False)  # tensors made in inference mode could not be written outside it
    def __init__(
        self,
        model: Model,
        settings: StepSettings,
        n_envs: int,
        *,
        substeps: int = 1,
        strict: bool = False,
        layouts: Sequence[EntityLayout] = (),
        first_env: int = 0,
    ) -> None:
        """substeps: physics steps of `settings.dt` in one `step()`. strict: raise where else a warning is logged.

        layouts: the entities, for messages. first_env: global number of environment 0, which keys random streams.
        """
        device, dtype = runtime.device, runtime.tc_float
        self.model = model
        self.n_envs = n_envs
        self.substeps = substeps
        self.dt = settings.dt * substeps
        # The scene names what it finds in the model.
        self.entities: list[Any] = []
        self.links: list[Any] = []
        self.joints: list[Any] = []
        self.geoms: list[Any] = []
        self.sites: list[Any] = []
        self.equalities: list[Any] = []

        names = ElementNames(model, layouts)
        self._axes = Axes.of(model, n_envs, device)
        self._state = State(model, n_envs, device, dtype)
        self._kernel = StepKernel(model, settings, device, dtype)
        self._gains = Gains(model, self._state, self._axes, names)
        self._commands = Commands(model, self._state, self._axes, self._gains, names)
        self._activations = Activations(self._state, self._axes, self._motion_changed)
        self._friction = GeomFriction(model, self._state, self._axes)
        self._switches = EqualitySwitches(self._state, self._axes)
        self._dofs = DofStates(model, self._state, self._axes, self._motion_changed)
        self._links = LinkStates(
            model, self._state, self._axes, names, lambda: KinematicsKernel(model, device, dtype), self._motion_changed
        )
        self._monitor = StatusMonitor(self._state, self._axes.envs.faults, strict=strict)
        gravity = spread(model.opt.gravity, self.every_env, 1, (3,), name="gravity", like=self._state.gravity)
        self._state.gravity.copy_(gravity[0, 0, :, None])
        self._initial = self._present()
        self._steps = 0
        self._next_look = PERIOD
        self._first_row = rows_at(np.arange(1), device, "row")
        self._gravity_rows = rows_at(np.arange(3), device, "row")
        self._streams = RandomStreams(self._axes.envs, self._state.qpos, first_env)
        self._origin = {"format": FORMAT, "model": model.digest(), "dt": self.dt}
        self._clock_start = Field(torch.zeros(1, self._state.n_padded, dtype=torch.int64, device=device))
        self._gravity = Field(self._state.gravity)

    # running ----------------------------------------------------------------------------------------------------------

    def step(self, n_steps: int = 1) -> None:
        """Advance every environment by n_steps control steps. Returns before the GPU has done them."""
        self._kernel.launch(self._state, n_steps * self.substeps)
        self._links.motion_changes()
        self._steps += n_steps
        if self._steps >= self._next_look:
            self._next_look = self._steps + PERIOD
            self._monitor.look()

    def reset(self, state: RigidSolverState | None = None, envs_idx: IndexLike = None) -> None:
        """Put environments back to the initial state, limp and healthy; gains, force ranges and gravity stay.

        The poses of mocap bodies and which equality constraints act are part of the state.

        state: becomes the initial state first; NaN or infinity in it is an error, as far as it lies on the host.
        """
        envs = self._axes.envs.select(envs_idx).unique()
        if state is not None:
            self._initial = self._snapshot_of(state)
        self._restore(self._initial, envs)

    def get_state(self, f: int | None = None) -> RigidSolverState:
        """A copy of the present state. `f` has no effect: there is one state."""
        envs = self.every_env
        return RigidSolverState(
            qpos=self.get_qpos(envs_idx=envs),
            dofs_vel=self.get_dofs_velocity(envs_idx=envs),
            dofs_acc=self.get_dofs_acc(envs_idx=envs),
            links_pos=self.get_links_pos(envs_idx=envs),
            links_quat=self.get_links_quat(envs_idx=envs),
            friction_ratio=self.get_geoms_friction_ratio(envs_idx=envs),
            act=self._state.act[:, : envs.total].T.contiguous().clone(),
            mocap=self._state.mocap[:, : envs.total].T.contiguous().clone(),
            eq_active=self._state.eq_active[:, : envs.total].T.contiguous().clone(),
            s_global=self._steps,
        )

    def set_state(self, f: int | None, state: RigidSolverState, envs_idx: IndexLike = None) -> None:
        """Put environments into a copied state, limp and healthy. `f` has no effect.

        NaN or infinity in the state is an error, as far as it lies on the host.
        """
        envs = self._axes.envs.select(envs_idx).unique()
        self._restore(self._snapshot_of(state), envs)

    def close(self) -> None:
        """Free kernels and device memory; every later use is an error that says so."""
        self._closed = True
        for name in [name for name in self.__dict__ if name.startswith("_") and name != "_closed"]:
            del self.__dict__[name]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and self.__dict__.get("_closed"):
            raise GenesisException("The scene was closed, by gs.destroy() or scene.destroy(). Build a new one.")
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def random_stream(self, purpose: str) -> RandomStream:
        """The random numbers of every environment for one purpose, such as "reset"; see `RandomStream`."""
        return self._streams.stream(purpose)

    def state_dict(self) -> dict[str, Any]:
        """All from which the worlds go on bit for bit: motion, commands, parameters, clocks, random counters.

        Its "envs" are tensors (n_envs, ...) on the device, which may be cut and joined along their first dimension, by
        global environment number from "first_env" on.
        """
        envs = copies(self._live(), self._state.n_envs)
        envs["elapsed"] = self._steps - envs.pop("clock_start")
        envs |= {f"draws/{purpose}": draws.clone() for purpose, draws in self._streams.counters().items()}
        return {
            **self._origin,
            "seed": self._streams.seed,
            "first_env": self._streams.first_env,
            "steps": self._steps,
            "holders": self._commands.holders,
            "envs": envs,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned. An error where it is of another model, size or precision."""
        check_origin(state, self._origin)
        envs = dict(state["envs"])
        counters = {name: envs.pop(name) for name in list(envs) if name.startswith("draws/")}
        envs["clock_start"] = state["steps"] - envs.pop("elapsed")
        restore(self._live(), envs, self._state.n_envs)
        self._streams.restore(state["seed"], {name.partition("/")[2]: draws for name, draws in counters.items()})
        self._steps = state["steps"]
        self._next_look = self._steps + PERIOD
        self._commands.restored(state["holders"])
        self._links.motion_changes()
        self._monitor.forget()

    # motion, commands, gains ------------------------------------------------------------------------------------------

    get_qpos = to_part("_dofs", DofStates.get_qpos)
    set_qpos = to_part("_dofs", DofStates.set_qpos)
    get_dofs_position = to_part("_dofs", DofStates.get_dofs_position)
    set_dofs_position = to_part("_dofs", DofStates.set_dofs_position)
    get_dofs_velocity = to_part("_dofs", DofStates.get_dofs_velocity)
    set_dofs_velocity = to_part("_dofs", DofStates.set_dofs_velocity)
    zero_all_dofs_velocity = to_part("_dofs", DofStates.zero_all_dofs_velocity)
    get_dofs_acc = to_part("_dofs", DofStates.get_dofs_acc)
    get_dofs_limit = to_part("_dofs", DofStates.get_dofs_limit)
    get_dofs_armature = to_part("_dofs", DofStates.get_dofs_armature)
    get_dofs_damping = to_part("_dofs", DofStates.get_dofs_damping)
    get_dofs_stiffness = to_part("_dofs", DofStates.get_dofs_stiffness)
    get_dofs_frictionloss = to_part("_dofs", DofStates.get_dofs_frictionloss)
    get_dofs_invweight = to_part("_dofs", DofStates.get_dofs_invweight)

    control_dofs_position = to_part("_commands", Commands.control_dofs_position)
    control_dofs_velocity = to_part("_commands", Commands.control_dofs_velocity)
    control_dofs_position_velocity = to_part("_commands", Commands.control_dofs_position_velocity)
    control_dofs_force = to_part("_commands", Commands.control_dofs_force)
    control_actuators = to_part("_commands", Commands.control_actuators)
    get_act = to_part("_activations", Activations.get_act)
    set_act = to_part("_activations", Activations.set_act)
    get_dofs_control_force = to_part("_commands", Commands.get_dofs_control_force)

    set_dofs_kp = to_part("_gains", Gains.set_dofs_kp)
    get_dofs_kp = to_part("_gains", Gains.get_dofs_kp)
    set_dofs_kv = to_part("_gains", Gains.set_dofs_kv)
    get_dofs_kv = to_part("_gains", Gains.get_dofs_kv)
    set_dofs_act_gain = to_part("_gains", Gains.set_dofs_act_gain)
    get_dofs_act_gain = to_part("_gains", Gains.get_dofs_act_gain)
    set_dofs_act_bias = to_part("_gains", Gains.set_dofs_act_bias)
    get_dofs_act_bias = to_part("_gains", Gains.get_dofs_act_bias)
    set_dofs_force_range = to_part("_gains", Gains.set_dofs_force_range)
    get_dofs_force_range = to_part("_gains", Gains.get_dofs_force_range)

    # links, geoms, sites, equality constraints ------------------------------------------------------------------------

    get_links_pos = to_part("_links", LinkStates.get_links_pos)
    get_links_quat = to_part("_links", LinkStates.get_links_quat)
    get_links_vel = to_part("_links", LinkStates.get_links_vel)
    get_links_ang = to_part("_links", LinkStates.get_links_ang)
    get_geoms_pos = to_part("_links", LinkStates.get_geoms_pos)
    get_geoms_quat = to_part("_links", LinkStates.get_geoms_quat)
    get_sites_pos = to_part("_links", LinkStates.get_sites_pos)
    get_sites_quat = to_part("_links", LinkStates.get_sites_quat)
    set_base_links_pos = to_part("_links", LinkStates.set_base_links_pos)
    set_base_links_quat = to_part("_links", LinkStates.set_base_links_quat)

    get_equalities_active = to_part("_switches", EqualitySwitches.get_equalities_active)
    set_equalities_active = to_part("_switches", EqualitySwitches.set_equalities_active)

    get_geoms_friction = to_part("_friction", GeomFriction.get_geoms_friction)
    set_geoms_friction = to_part("_friction", GeomFriction.set_geoms_friction)
    get_geoms_friction_ratio = to_part("_friction", GeomFriction.get_geoms_friction_ratio)
    set_links_friction_ratio = to_part("_friction", GeomFriction.set_links_friction_ratio)
    set_geoms_friction_ratio = to_part("_friction", GeomFriction.set_geoms_friction_ratio)

    def get_links_mass(self, links_idx: IndexLike = None) -> torch.Tensor:
        """(n_links,) masses [kg], the same in every environment."""
        return column(self.model.body_mass[self._axes.links.select(links_idx).indices], self._state.qpos)[:, 0]

    # environments -----------------------------------------------------------------------------------------------------

    def get_error_envs_mask(self) -> torch.Tensor:
        """(max(n_envs, 1),) bool: environments that met a NaN or an infinity. They stand still until reset or set."""
        return (self._state.status[0, : self._state.n_envs] & STATUS_NON_FINITE) != 0

    def get_unconverged_envs_mask(self) -> torch.Tensor:
        """(max(n_envs, 1),) bool: environments whose constraint solver has stopped at its iteration limit in some step.

        They moved on with approximate constraint forces. A reset or a setter of motion clears the mark.
        """
        return (self._state.status[0, : self._state.n_envs] & STATUS_SOLVER_LIMIT) != 0

    def get_time(self, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,]) seconds since each environment's last reset."""
        start = self._clock_start.read(self._first_row, self._axes.envs.select(envs_idx))[..., 0]
        return ((self._steps - start).double() * self.dt).to(self._state.qpos.dtype)

    n_dofs = property(lambda self: self.model.nv, doc="Degrees of freedom of the scene.")
    n_qs = property(lambda self: self.model.nq, doc="Numbers in qpos.")
    n_links = property(lambda self: len(self.links), doc="Links of all entities.")
    n_joints = property(lambda self: len(self.joints), doc="Joints of all entities.")
    n_geoms = property(lambda self: self.model.ngeom, doc="Geoms of the scene.")
    n_entities = property(lambda self: len(self.entities), doc="Entities of the scene.")
    n_sites = property(lambda self: self.model.nsite, doc="Sites of the scene.")
    n_equalities = property(lambda self: self.model.neq, doc="Equality constraints of the scene.")

    @property
    def device(self) -> torch.device:
        """Where the State lies."""
        return self._state.qpos.device

    @property
    def every_env(self) -> Envs:
        """For `envs_idx`: every environment, with an environment axis even if n_envs=0."""
        return self._axes.envs.all_batched

    @property
    def steps(self) -> int:
        """Control steps since the build."""
        return self._steps

    def get_gravity(self, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,] 3) gravity, world frame [m/s^2]."""
        return self._gravity.read(self._gravity_rows, self._axes.envs.select(envs_idx))

    def set_gravity(self, gravity: ArrayLike, envs_idx: IndexLike = None) -> None:
        """Set gravity. gravity: ([n_envs,] 3), world frame [m/s^2]."""
        envs = self._axes.envs.select(envs_idx).unique()
        value = spread(gravity, envs, 1, (3,), name="gravity", like=self._state.gravity)
        self._gravity.write(self._gravity_rows, envs, value[:, 0])

    # ------------------------------------------------------------------------------------------------------------------

    def _live(self) -> dict[str, torch.Tensor]:
        initial = {f"initial_{name}": tensor for name, tensor in vars(self._initial).items()}
        parts = self._state.saved() | self._gains.saved() | self._commands.saved() | self._friction.saved()
        return {**parts, **initial, "clock_start": self._clock_start.tensor}

    def _present(self) -> Snapshot:
        """A copy of the present state."""
        return Snapshot(self._state.copy_motion(), self._friction.copy_ratio(), self._state.eq_active.clone())

    def _motion_changed(self, envs: Envs) -> None:
        self._state.forget_past(envs)
        self._links.motion_changes()

    def _restore(self, snapshot: Snapshot, envs: Envs) -> None:
        self._state.restore_motion(snapshot.motion, envs)
        self._friction.restore_ratio(snapshot.friction_ratio, envs)
        copy_envs(self._state.eq_active, snapshot.eq_active, envs)
        self._commands.reset(envs)
        fill_envs(self._clock_start.tensor, envs, self._steps)
        self._links.motion_changes()
        if envs.is_all:
            self._monitor.forget()

    def _snapshot_of(self, state: RigidSolverState) -> Snapshot:
        """The user's copy in the State's layout, its shapes and numbers checked as those of a setter."""
        if not isinstance(state, RigidSolverState):
            raise GenesisException(f"state is a {type(state).__name__}; give what get_state() of the solver returned.")
        snapshot = self._present()
        n = self._axes.envs.total
        qpos, qvel, qacc, act, mocap = snapshot.motion.split(self._state.parts)
        targets = (
            ("qpos", qpos, FINITE),
            ("dofs_vel", qvel, FINITE),
            ("dofs_acc", qacc, FINITE),
            ("friction_ratio", snapshot.friction_ratio, RATIOS),
            ("act", act, FINITE),
            ("mocap", mocap, FINITE),
            ("eq_active", snapshot.eq_active, FINITE),
        )
        for name, target, allowed in targets:
            source, shape = getattr(state, name), (n, target.shape[0])
            if np.shape(source) != shape:
                raise GenesisException(
                    f"state.{name} has shape {tuple(np.shape(source))}, this scene needs {shape}: the state was taken "
                    "from another scene."
                )
            value = spread(source, self.every_env, shape[1], name=f"state.{name}", like=target, allowed=allowed)
            target[:, :n] = value.T
        return snapshot
