"""All entities of a scene -> one MjSpec -> one compiled Model, and where each entity lies in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from pluriverse import constants
from pluriverse.collision_pairs import without_self_collision
from pluriverse.errors import GenesisException
from pluriverse.importers.key_controls import put_key_controls, take_key_controls
from pluriverse.importers.mjcf import (
    adopt_compiler_settings,
    adopt_scene_settings,
    aim_at_world,
    copy_options,
    load_mjcf,
    note_ignored_options,
    option_fields,
)
from pluriverse.importers.primitives import add_primitive
from pluriverse.importers.refusals import Owners, refuse_unsupported, without_prefixes
from pluriverse.materials import Rigid
from pluriverse.model import Model
from pluriverse.morphs import MJCF, Morph, Primitive
from pluriverse.options import RigidOptions, SimOptions
from pluriverse.surfaces import Surface

if TYPE_CHECKING:
    import mujoco


@dataclass(frozen=True)
class EntitySource:
    """One entity as the user gave it. `label` names it in messages."""

    label: str
    morph: Morph
    material: Rigid
    surface: Surface


@dataclass(frozen=True)
class EntityLayout:
    """Where one entity lies in the Model. Names are those of its file or morph; unnamed elements have ''.

    Everything is one run of indices but the geoms and sites: those that a file attaches to the world belong to body 0,
    which all entities share, and stand first.
    """

    label: str
    model_name: str  # of the file; '' for primitives
    bodies: range  # without the world
    joints: range
    qpos: range
    dofs: range
    geoms: tuple[int, ...]
    sites: tuple[int, ...]
    actuators: range
    controls: range  # of its actuators
    activations: range  # of its actuators
    equalities: range
    keyframes: range
    body_names: tuple[str, ...]
    joint_names: tuple[str, ...]
    geom_names: tuple[str, ...]
    site_names: tuple[str, ...]
    actuator_names: tuple[str, ...]
    equality_names: tuple[str, ...]
    keyframe_names: tuple[str, ...]


@dataclass(frozen=True)
class CompiledScene:
    """The result: the model, the entities in it, and the options that hold after `use_file_options`.

    `mj_model` is the same world in MuJoCo, but for `enable_self_collision=False`, which only `model` knows.
    """

    model: Model
    mj_model: mujoco.MjModel
    entities: tuple[EntityLayout, ...]
    sim_options: SimOptions
    rigid_options: RigidOptions


def compile_scene(sources: Sequence[EntitySource], sim: SimOptions, rigid: RigidOptions) -> CompiledScene:
    """Merges the entities, compiles them, and refuses what cannot be simulated, all of it in one exception.

    Element names of entity i get the prefix `i/` in the Model. `Model.opt` holds the merged options, its timestep
    being that of one physics step.
    """
    import mujoco

    spec, labels = mujoco.MjSpec(), [source.label for source in sources]
    loaded = [load_mjcf(s.morph, s.material) if isinstance(s.morph, MJCF) else None for s in sources]
    _set_options(spec.option, sim, rigid)
    adopted = _adopt_file_options(spec.option, sources, loaded)
    spec.option.disableflags |= _disable_bits(rigid)
    adopt_compiler_settings(spec, loaded)

    counts = [
        _add_entity(spec, i, source, child) for i, (source, child) in enumerate(zip(sources, loaded, strict=True))
    ]
    _add_friction_axes(spec, rigid)
    try:
        mj_model = spec.compile()
    except ValueError as error:
        raise GenesisException(f"MuJoCo cannot compile the scene: {without_prefixes(str(error), labels)}") from error
    for k, count in enumerate(counts):
        before = counts[:k]
        firsts = sum(c.keyframes for c in before), sum(c.actuators for c in before)
        put_key_controls(mj_model, count.key_controls, *firsts)
    owners = _owners(mj_model, counts)
    refuse_unsupported(mj_model, labels, owners)

    model = Model.from_mujoco(mj_model)
    if adopted:
        sim, rigid = _options_of(model, sim, rigid)
    if not rigid.enable_self_collision:
        model = without_self_collision(model)
    return CompiledScene(model, mj_model, _layouts(model, sources, counts), sim, rigid)


@dataclass(frozen=True)
class _Counts:
    model_name: str
    bodies: int
    world_geoms: int
    world_sites: int
    actuators: int
    equalities: int
    keyframes: int
    key_controls: dict[int, np.ndarray] = field(default_factory=dict)


def _add_entity(spec: mujoco.MjSpec, index: int, source: EntitySource, child: mujoco.MjSpec | None) -> _Counts:
    prefix = f"{index}/"
    if child is None:
        if not isinstance(source.morph, Primitive):
            raise GenesisException(f"{source.label}: a {type(source.morph).__name__} cannot be added to a scene.")
        add_primitive(spec, prefix, source.morph, source.material, source.surface)
        return _Counts("", bodies=1, world_geoms=0, world_sites=0, actuators=0, equalities=0, keyframes=0)
    counts = _Counts(
        child.modelname,
        bodies=len(child.bodies) - 1,
        world_geoms=len(child.worldbody.geoms),
        world_sites=len(child.worldbody.sites),
        actuators=len(child.actuators),
        equalities=len(child.equalities),
        keyframes=len(child.keys),
        key_controls=take_key_controls(child),
    )
    adopt_scene_settings(child, spec)
    frame = spec.worldbody.add_frame(pos=source.morph.pos or (0, 0, 0), quat=source.morph.rotation)
    spec.attach(child, prefix=prefix, frame=frame)
    aim_at_world(spec, prefix)
    return counts


def _set_options(option: mujoco.MjOption, sim: SimOptions, rigid: RigidOptions) -> None:
    import mujoco

    option.timestep = rigid.dt if rigid.dt is not None else sim.dt / sim.substeps
    option.gravity = rigid.gravity if rigid.gravity is not None else sim.gravity
    approximate = rigid.integrator is constants.integrator.approximate_implicitfast
    option.integrator = _mujoco_integrators()["implicitfast" if approximate else rigid.integrator.name]
    option.solver = mujoco.mjtSolver.mjSOL_NEWTON
    elliptic = rigid.friction_cone is constants.friction_cone.elliptic
    option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC if elliptic else mujoco.mjtCone.mjCONE_PYRAMIDAL
    option.iterations, option.ls_iterations = rigid.iterations, rigid.ls_iterations
    option.ls_tolerance = rigid.ls_tolerance
    if rigid.tolerance is not None:
        option.tolerance = rigid.tolerance
    option.impratio = rigid.impratio if rigid.impratio is not None else 100.0 if elliptic else 1.0


def _mujoco_integrators() -> dict[str, int]:
    """MuJoCo's integrators by the names that they have here."""
    import mujoco

    return {
        name: int(getattr(mujoco.mjtIntegrator, f"mjINT_{name.upper()}"))
        for name in ("Euler", "RK4", "implicit", "implicitfast")
    }


def _add_friction_axes(spec: mujoco.MjSpec, rigid: RigidOptions) -> None:
    """Lets geoms that have sliding friction resist spin, or spin and roll, where the options ask for it."""
    least = 6 if rigid.enable_rolling_friction else 4 if rigid.enable_torsional_friction else 3
    for geom in spec.geoms:
        if geom.condim > 1:
            geom.condim = max(geom.condim, least)


def _adopt_file_options(
    option: mujoco.MjOption, sources: Sequence[EntitySource], loaded: Sequence[mujoco.MjSpec | None]
) -> bool:
    """Takes the `<option>` of a file that asks for it, and says where those of the others differ."""
    decides = None
    for source, child in zip(sources, loaded, strict=True):
        if child is None or not _adopts(source):
            continue
        if decides is not None and not _same_options(option, child.option):
            raise GenesisException(
                f"Both {decides} and {source.label} set use_file_options=True, and their <option> elements differ. "
                "A scene has one set of options: let one file decide."
            )
        copy_options(child.option, option)
        decides = source.label
    for source, child in zip(sources, loaded, strict=True):
        if child is not None and not _adopts(source):
            note_ignored_options(source.label, option, child.option)
    return decides is not None


def _adopts(source: EntitySource) -> bool:
    return isinstance(source.morph, MJCF) and source.morph.use_file_options


def _same_options(one: mujoco.MjOption, other: mujoco.MjOption) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in option_fields(one))


def _disable_bits(rigid: RigidOptions) -> int:
    """mjtDisableBit of what the scene switches off."""
    import mujoco

    bits = mujoco.mjtDisableBit
    switched = (
        (not rigid.enable_collision, bits.mjDSBL_CONTACT),
        (not rigid.enable_joint_limit, bits.mjDSBL_LIMIT),
        (rigid.disable_constraint, bits.mjDSBL_CONSTRAINT),
        (rigid.enable_adjacent_collision, bits.mjDSBL_FILTERPARENT),
    )
    return sum(int(bit) for off, bit in switched if off)


def _options_of(model: Model, sim: SimOptions, rigid: RigidOptions) -> tuple[SimOptions, RigidOptions]:
    """The scene's options with the values that a file brought."""
    import mujoco

    opt, bits = model.opt, mujoco.mjtDisableBit
    gravity = tuple(opt.gravity.tolist())
    integrator = next(name for name, value in _mujoco_integrators().items() if value == opt.integrator)
    return (
        sim.replaced(dt=opt.timestep * sim.substeps, gravity=gravity),
        rigid.replaced(
            dt=None,
            gravity=None,
            integrator=integrator,
            iterations=opt.iterations,
            ls_iterations=opt.ls_iterations,
            tolerance=opt.tolerance,
            ls_tolerance=opt.ls_tolerance,
            impratio=opt.impratio,
            friction_cone="elliptic" if opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC else "pyramidal",
            enable_collision=not opt.disableflags & int(bits.mjDSBL_CONTACT),
            enable_joint_limit=not opt.disableflags & int(bits.mjDSBL_LIMIT),
            disable_constraint=bool(opt.disableflags & int(bits.mjDSBL_CONSTRAINT)),
            enable_adjacent_collision=bool(opt.disableflags & int(bits.mjDSBL_FILTERPARENT)),
        ),
    )


def _owners(mj_model: mujoco.MjModel, counts: Sequence[_Counts]) -> Owners:
    """The entity of each element: entities follow each other in every array of the model."""

    def of(sizes: list[int]) -> np.ndarray:
        return np.repeat(np.arange(len(counts)), sizes)

    body = np.concatenate(([-1], of([count.bodies for count in counts])))
    geom, in_world = body[mj_model.geom_bodyid], of([count.world_geoms for count in counts])
    geom[: len(in_world)] = in_world
    return {
        "body": body,
        "joint": body[mj_model.jnt_bodyid],
        "geom": geom,
        "actuator": of([count.actuators for count in counts]),
        "equality": of([count.equalities for count in counts]),
    }


def _layouts(model: Model, sources: Sequence[EntitySource], counts: Sequence[_Counts]) -> tuple[EntityLayout, ...]:
    """Entities follow each other in every array of the model."""
    layouts = []
    body, world_geom, world_site, actuator, equality, keyframe = 1, 0, 0, 0, 0, 0
    for source, count in zip(sources, counts, strict=True):
        bodies = range(body, body + count.bodies)
        joints = _run(model.jnt_bodyid, bodies)
        dofs = _run(model.dof_bodyid, bodies)
        geoms = (*range(world_geom, world_geom + count.world_geoms), *_run(model.geom_bodyid, bodies))
        sites = (*range(world_site, world_site + count.world_sites), *_run(model.site_bodyid, bodies))
        actuators = range(actuator, actuator + count.actuators)
        equalities = range(equality, equality + count.equalities)
        keyframes = range(keyframe, keyframe + count.keyframes)
        layouts.append(
            EntityLayout(
                label=source.label,
                model_name=count.model_name,
                bodies=bodies,
                joints=joints,
                qpos=_qpos_run(model, joints),
                dofs=dofs,
                geoms=geoms,
                sites=sites,
                actuators=actuators,
                controls=_parts_run(model.actuator_ctrlnum, actuators),
                activations=_parts_run(model.actuator_actnum, actuators),
                equalities=equalities,
                keyframes=keyframes,
                body_names=_local(model.body_names, bodies),
                joint_names=_local(model.joint_names, joints),
                geom_names=_local(model.geom_names, geoms),
                site_names=_local(model.site_names, sites),
                actuator_names=_local(model.actuator_names, actuators),
                equality_names=_local(model.equality_names, equalities),
                keyframe_names=_local(model.key_names, keyframes),
            )
        )
        body, world_geom, world_site = bodies.stop, world_geom + count.world_geoms, world_site + count.world_sites
        actuator, equality, keyframe = actuators.stop, equalities.stop, keyframes.stop
    return tuple(layouts)


def _run(body_of: np.ndarray, bodies: range) -> range:
    """The run of elements whose bodies are among `bodies`; MuJoCo orders elements by body."""
    start, stop = np.searchsorted(body_of, (bodies.start, bodies.stop))
    return range(int(start), int(stop))


def _parts_run(numbers: np.ndarray, actuators: range) -> range:
    """The run of parts, such as controls, of which each actuator has a number."""
    start, stop = (int(numbers[:end].sum()) for end in (actuators.start, actuators.stop))
    return range(start, stop)


def _qpos_run(model: Model, joints: range) -> range:
    addresses = [*model.jnt_qposadr.tolist(), model.nq]
    return range(addresses[joints.start], addresses[joints.stop])


def _local(names: tuple[str, ...], indices: Sequence[int]) -> tuple[str, ...]:
    """Names without the entity's prefix."""
    return tuple(names[i].partition("/")[2] for i in indices)
