"""The scene: add entities, build, step, reset."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeVar
from xml.etree import ElementTree

import numpy as np
import torch

from pluriverse.checkpoint_file import load_file, save_file
from pluriverse.entities import RigidEntity
from pluriverse.errors import GenesisException, did_you_mean
from pluriverse.importers.model_files import find_model_file
from pluriverse.importers.primitives import primitive_name
from pluriverse.importers.scene_spec import CompiledScene, EntitySource, compile_scene
from pluriverse.logging import logger
from pluriverse.materials import Rigid
from pluriverse.morphs import MJCF, Morph, Primitive
from pluriverse.not_yet import refuse_names_not_written
from pluriverse.options import Options, ProfilingOptions, RigidOptions, SimOptions, ViewerOptions, VisOptions
from pluriverse.runtime import runtime
from pluriverse.simulator import Simulator
from pluriverse.solver.random_streams import RandomStream
from pluriverse.solver.rigid_solver import RigidSolver
from pluriverse.solver.settings import step_settings, substeps_of
from pluriverse.solver.states import SimState
from pluriverse.speed_log import SpeedLog
from pluriverse.surfaces import Default, Surface
from pluriverse.typing import IndexLike

Opt = TypeVar("Opt", bound=Options)


@refuse_names_not_written
class Scene:
    """A world of entities, copied n_envs times when it is built. All arguments are optional.

    Args:
        sim_options: time step and gravity.
        rigid_options: the rigid-body solver.
        vis_options: how the scene looks.
        viewer_options: the interactive viewer.
        profiling_options: whether the speed is logged.
        show_viewer: open the viewer; there is none yet, which a warning says.
        show_FPS: the former place of `ProfilingOptions(show_FPS=...)`.

    Raises:
        GenesisException: outside a session; an option of a wrong kind.
    """

    def __init__(
        self,
        sim_options: SimOptions | None = None,
        rigid_options: RigidOptions | None = None,
        vis_options: VisOptions | None = None,
        viewer_options: ViewerOptions | None = None,
        profiling_options: ProfilingOptions | None = None,
        renderer: Any = None,
        show_viewer: bool | None = None,
        show_FPS: bool | None = None,
    ) -> None:
        runtime.require_initialized("gs.Scene")
        self._generation = runtime.generation
        self.sim_options = _option("sim_options", sim_options, SimOptions)
        self.rigid_options = _option("rigid_options", rigid_options, RigidOptions)
        self.vis_options = _option("vis_options", vis_options, VisOptions)
        self.viewer_options = _option("viewer_options", viewer_options, ViewerOptions)
        self.profiling_options = _option("profiling_options", profiling_options, ProfilingOptions)
        if renderer is not None:
            raise GenesisException(f"renderer={renderer!r}: rendering is not supported yet. Leave it out.")
        if show_FPS is not None:
            self.profiling_options = self.profiling_options.replaced(show_FPS=show_FPS)
        if show_viewer:
            logger.warning("show_viewer=True: there is no viewer yet; the scene runs without one.")
        self.sim = Simulator(self.sim_options, self.rigid_options)
        self.uid = _new_uid()
        self.n_envs = 0
        self.env_spacing = (0.0, 0.0)
        self.envs_offset = np.zeros((1, 3))
        self._solver: RigidSolver | None = None
        self._speed_log: SpeedLog | None = None
        self._closed = False
        # What `step` calls: swapped at the build, so that stepping checks nothing.
        self._advance: Any = self._refuse_to_step
        runtime.register_scene(self)

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"{self.n_envs} environments" if self.is_built else "not built"
        return f"<Scene {self.uid}: {', '.join(self.entity_names) or 'empty'}; {state}>"

    # making -----------------------------------------------------------------------------------------------------------

    def add_entity(
        self,
        morph: Morph,
        material: Rigid | None = None,
        surface: Surface | None = None,
        visualize_contact: bool = False,
        vis_mode: str | None = None,
        name: str | None = None,
    ) -> RigidEntity:
        """Add a robot or an object, before the build.

        Args:
            morph: what it is and where, `gs.morphs.*`.
            material: `gs.materials.Rigid` by default.
            surface: how it looks.
            visualize_contact: draw contact forces in the viewer.
            vis_mode: `Surface(vis_mode=...)`.
            name: unique in the scene; by default made of the morph and a random suffix (`box_367f442`).
        """
        self._require_open("add_entity")
        if self.is_built:
            raise GenesisException("add_entity: the scene is built already. Add all entities before scene.build().")
        if isinstance(morph, (list, tuple)):
            raise GenesisException("add_entity: a list of morphs (one for each environment) is not supported yet.")
        if not isinstance(morph, Morph):
            raise GenesisException(
                f"add_entity: got {morph!r} as morph; give one of gs.morphs, such as gs.morphs.Box()."
            )
        material = _option("material", material, Rigid)
        surface = Default() if surface is None else surface
        if not isinstance(surface, Surface):
            raise GenesisException(f"add_entity: got {surface!r} as surface; give one of gs.surfaces.")
        if vis_mode is not None:
            surface = surface.replaced(vis_mode=vis_mode)
        if name is not None and not (isinstance(name, str) and name):
            raise GenesisException(
                f"add_entity: name={name!r} is no name. Give a string that is not empty, or leave it out."
            )
        uid = _new_uid()
        name = f"{_morph_name(morph)}_{uid}" if name is None else name
        if name in self.entity_names:
            raise GenesisException(
                f"add_entity: there is an entity named '{name}' already. Names are unique in a scene."
            )
        source = EntitySource(name, morph, material, surface)
        entity = RigidEntity(source, len(self.entities), uid, visualize_contact=visualize_contact)
        self.sim.entities.append(entity)
        return entity

    def build(
        self,
        n_envs: int = 0,
        env_spacing: tuple[float, float] = (0.0, 0.0),
        n_envs_per_row: int | None = None,
        center_envs_at_origin: bool = True,
        compile_kernels: bool | None = None,
        *,
        first_env: int = 0,
    ) -> None:
        """Compile the model and the kernels, and allocate n_envs environments. Once only.

        Args:
            n_envs: number of environments; 0 is one environment without an environment axis in any tensor.
            env_spacing: distance between environments when they are shown side by side [m]; no effect on the physics.
            n_envs_per_row: how many of them stand in a row; None: about a square.
            center_envs_at_origin: whether they are shown around the origin.
            compile_kernels: no effect; kernels are always compiled here.
            first_env: global number of environment 0, where a job's environments are shared among ranks: random
                streams are keyed by it (`gs.distributed.Rank.envs`).
        """
        self._require_open("build")
        if self.is_built:
            raise GenesisException(
                "build: the scene is built already. Make a new gs.Scene for another number of environments."
            )
        if isinstance(n_envs, bool) or not isinstance(n_envs, (int, np.integer)) or n_envs < 0:
            raise GenesisException(f"build: n_envs={n_envs!r}; give an integer >= 0.")
        if isinstance(first_env, bool) or not isinstance(first_env, (int, np.integer)) or first_env < 0:
            raise GenesisException(f"build: first_env={first_env!r}; give an integer >= 0.")
        offsets = _grid(int(n_envs), env_spacing, n_envs_per_row, center_envs_at_origin)
        size = f"{len(self.entities)} entities, {max(n_envs, 1)} environments"
        logger.info(f"Building the scene ({size}); a model that is new here is compiled first, which takes seconds.")
        with logger.timer(f"Built the scene: {size}"):
            compiled = self._compile()
            solver = RigidSolver(
                compiled.model,
                step_settings(compiled.model, compiled.rigid_options),
                int(n_envs),
                substeps=substeps_of(compiled.model, compiled.sim_options),
                strict=compiled.rigid_options.strict,
                layouts=compiled.entities,
                first_env=int(first_env),
            )
        # Nothing above has changed the scene: a build that failed may be tried again.
        for entity, layout in zip(self.entities, compiled.entities, strict=True):
            entity.bind(solver, layout)
            solver.entities.append(entity)
            solver.links += entity.links
            solver.joints += entity.joints
            solver.geoms += entity.geoms
            solver.sites += entity.sites
            solver.equalities += entity.equalities
        for parts in (solver.geoms, solver.sites):
            parts.sort(key=lambda part: part.idx)
        self.sim_options, self.rigid_options = compiled.sim_options, compiled.rigid_options
        self.sim.bind(solver, self.sim_options, self.rigid_options)
        self.n_envs, self.env_spacing, self.envs_offset = int(n_envs), env_spacing, offsets
        self._solver, self._advance = solver, solver.step
        _note_keyframes(self.entities)
        if self.profiling_options.show_FPS:
            self._speed_log = SpeedLog(max(self.n_envs, 1), self.profiling_options.FPS_tracker_alpha)

    def destroy(self) -> None:
        """Free the scene's kernels and memory. Tensors that getters returned stay valid."""
        if self._solver is not None:
            self._solver.close()
        self._closed, self._advance, self._speed_log = True, self._refuse_to_step, None

    # running ----------------------------------------------------------------------------------------------------------

    def step(self, update_visualizer: bool = True, refresh_visualizer: bool = True) -> None:
        """Advance every environment by `dt`. On a GPU it returns before the GPU is done."""
        self._advance()
        if self._speed_log is not None:
            self._speed_log.count()

    def reset(self, state: SimState | None = None, envs_idx: IndexLike = None) -> None:
        """Put environments back to the initial state: motion, time and friction ratios; commands end, gains stay.

        state: what `get_state` returned; becomes the initial state first.
        """
        self._require_built("reset")
        self.sim.reset(state, envs_idx)

    def get_state(self) -> SimState:
        """A copy of the present state."""
        self._require_built("get_state")
        return self.sim.get_state()

    def get_time(self, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,]) seconds since each environment's last reset."""
        self._require_built("get_time")
        return self.sim.get_time(envs_idx)

    def random_stream(self, purpose: str) -> RandomStream:
        """Random numbers for one purpose, such as "reset": the same for an environment however many there are."""
        self._require_built("random_stream")
        return self.rigid_solver.random_stream(purpose)

    def state_dict(self) -> dict[str, Any]:
        """All from which the worlds go on bit for bit, on the device; see `RigidSolver.state_dict`."""
        self._require_built("state_dict")
        return self.sim.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` of a scene with the same entities and as many environments returned."""
        self._require_built("load_state_dict")
        self.sim.load_state_dict(state)

    def save_checkpoint(self, path: str | os.PathLike) -> None:
        """Write `state_dict` to a file, whole or not at all. Several ranks use `gs.distributed.Checkpoints`."""
        save_file(Path(path), self.state_dict())

    def load_checkpoint(self, path: str | os.PathLike) -> None:
        """Go on from a file that `save_checkpoint` of such a scene wrote."""
        self._require_built("load_checkpoint")
        self.load_state_dict(load_file(Path(path)))

    def model_digest(self) -> str:
        """sha256 (hex) of what the entities and options mean; before or after the build."""
        self._require_open("model_digest")
        compiled = self._compile()
        settings = step_settings(compiled.model, compiled.rigid_options)
        return hashlib.sha256(f"{compiled.model.digest()} {settings} {compiled.sim_options}".encode()).hexdigest()

    # looking ----------------------------------------------------------------------------------------------------------

    def get_entity(self, name: str | None = None, *, uid: str | None = None) -> RigidEntity:
        """The entity of this name or uid. An error if there is none."""
        if (name is None) == (uid is None):
            raise GenesisException("get_entity takes either a name or uid=.")
        for entity in self.entities:
            if entity.name == name or entity.uid == uid:
                return entity
        hint = did_you_mean(name, self.entity_names)
        raise GenesisException(
            f"There is no entity '{name or uid}'. {hint}The scene has: {', '.join(self.entity_names) or 'none'}."
        )

    @property
    def entities(self) -> list[RigidEntity]:
        """In the order in which they were added."""
        return self.sim.entities

    @property
    def entity_names(self) -> tuple[str, ...]:
        """In the order in which they were added."""
        return tuple(entity.name for entity in self.entities)

    @property
    def is_built(self) -> bool:
        """Whether `build` was called."""
        return self._solver is not None

    @property
    def rigid_solver(self) -> RigidSolver:
        """The solver. An error before the build."""
        return self.sim.rigid_solver

    dt = property(lambda self: self.sim.dt, doc="Duration of a step [s].")
    substeps = property(lambda self: self.sim.substeps, doc="Physics steps per step.")
    gravity = property(lambda self: self.sim.gravity, doc="([n_envs,] 3) gravity [m/s^2].")
    t = property(lambda self: self.sim.cur_step_global, doc="Steps since the build or the last reset of everything.")
    cur_t = property(lambda self: self.sim.cur_t, doc="Seconds since the build or the last reset of everything.")
    solvers = property(lambda self: self.sim.solvers, doc="The solvers of this package: the rigid one.")
    active_solvers = property(lambda self: self.sim.solvers, doc="The solvers of this package: the rigid one.")
    requires_grad = property(lambda self: False, doc="False: the step is not differentiable yet.")
    viewer = property(lambda self: None, doc="None: there is no viewer yet.")
    visualizer = property(lambda self: None, doc="None: there is no viewer yet.")

    # ------------------------------------------------------------------------------------------------------------------

    def _compile(self) -> CompiledScene:
        return compile_scene([entity.source for entity in self.entities], self.sim_options, self.rigid_options)

    def _require_open(self, what: str) -> None:
        if self._closed:
            raise GenesisException(f"{what}: the scene was closed, by gs.destroy() or scene.destroy(). Make a new one.")
        runtime.require_current(self._generation, what)

    def _require_built(self, what: str) -> None:
        self._require_open(what)
        if not self.is_built:
            raise GenesisException(f"{what} needs a built scene. Call scene.build() first.")

    def _refuse_to_step(self) -> NoReturn:
        self._require_built("step")
        raise AssertionError("a built, open scene steps")


def _new_uid() -> str:
    return uuid.uuid4().hex[:7]


def _option(name: str, given: Opt | None, kind: type[Opt]) -> Opt:
    """The given options, or the defaults."""
    if given is None:
        return kind()
    if not isinstance(given, kind):
        raise GenesisException(f"{name}: got a {type(given).__name__}, expected a {kind.__name__}.")
    return given


def _note_keyframes(entities: list[RigidEntity]) -> None:
    offered = [f"{entity.name}: {', '.join(entity.keyframes)}" for entity in entities if entity.keyframes]
    if offered:
        logger.info(
            f"Keyframes of model files, which act when asked: {'; '.join(offered)}. Apply one by "
            "entity.set_qpos(entity.get_keyframe(name))."
        )


def _morph_name(morph: Morph) -> str:
    """`box` ... for a shape, the model's name or the file's for a file. An error where the file is missing."""
    if isinstance(morph, Primitive):
        return primitive_name(morph)
    if not isinstance(morph, MJCF):
        return type(morph).__name__.lower()
    file = morph.file
    if isinstance(file, (ElementTree.Element, ElementTree.ElementTree)):
        given = file.getroot() if isinstance(file, ElementTree.ElementTree) else file
        return (given.get("model") if given is not None else None) or "mjcf"
    inline = isinstance(file, str) and file.lstrip().startswith("<")
    path = None if inline else find_model_file(file)
    try:
        root = ElementTree.fromstring(str(file).strip() if path is None else path.read_bytes())
    except ElementTree.ParseError as error:
        raise GenesisException(f"MJCF: {path or 'the given text'} is no well-formed XML: {error}.") from error
    return root.get("model") or ("mjcf" if path is None else path.stem)


def _grid(n_envs: int, spacing: tuple[float, float], per_row: int | None, centred: bool) -> np.ndarray:
    """(max(n_envs, 1), 3) where each environment is shown [m]."""
    if not isinstance(spacing, (list, tuple)) or len(spacing) != 2:
        raise GenesisException(f"build: env_spacing={spacing!r}; give two distances in metres.")
    count = max(n_envs, 1)
    per_row = int(np.ceil(np.sqrt(count))) if per_row is None else per_row
    if per_row < 1:
        raise GenesisException(f"build: n_envs_per_row={per_row}; give an integer >= 1.")
    index = np.arange(count)
    offsets = np.stack((index // per_row * spacing[0], index % per_row * spacing[1], np.zeros(count)), axis=1)
    return offsets - (offsets.max(0) + offsets.min(0)) / 2 if centred else offsets
