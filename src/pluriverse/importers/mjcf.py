"""MJCF morph -> MjSpec: find, parse, and apply what the morph and the material say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np

from pluriverse.errors import GenesisException
from pluriverse.importers.coverage import fields_without_meaning
from pluriverse.importers.model_files import find_model_file
from pluriverse.logging import logger
from pluriverse.materials import Rigid
from pluriverse.morphs import MJCF

if TYPE_CHECKING:
    import mujoco


def load_mjcf(morph: MJCF, material: Rigid) -> mujoco.MjSpec:
    """The file's spec with ground planes, armature, collision and material as the morph and the material want them."""
    spec = _parse(morph)
    if morph.exclude_ground_plane:
        _delete_world_planes(spec)
    if morph.default_armature is not None:
        _set_default_armature(spec, morph.default_armature)
    if not morph.collision:
        _disable_collision(spec)
    _apply_material(spec, material)
    with _reported(f"the model '{spec.modelname}'"):
        _apply_compiler_flags(spec)
    _name_keyframes(spec)
    return spec


def option_fields(option: mujoco.MjOption) -> tuple[str, ...]:
    """The names of all settings of an `<option>`."""
    return tuple(name for name in dir(option) if not name.startswith("_"))


def note_ignored_options(label: str, scene: mujoco.MjOption, of_file: mujoco.MjOption) -> None:
    """Says by field which options the file sets and the scene does not follow."""
    import mujoco

    default = mujoco.MjSpec().option
    differing = []
    for name in option_fields(of_file):
        if f"opt.{name}" in fields_without_meaning():
            continue
        theirs, ours = getattr(of_file, name), getattr(scene, name)
        if np.any(theirs != getattr(default, name)) and np.any(theirs != ours):
            differing.append(f"{name} {_spell_option(name, theirs)} (scene: {_spell_option(name, ours)})")
    if differing:
        logger.warning(
            f"{label}: the scene decides these options, not the file's <option>: {', '.join(differing)}. "
            "use_file_options=True adopts the file's."
        )


def copy_options(source: mujoco.MjOption, target: mujoco.MjOption) -> None:
    """Sets every setting of `target` to that of `source`."""
    for name in option_fields(source):
        setattr(target, name, getattr(source, name))


def adopt_scene_settings(spec: mujoco.MjSpec, scene: mujoco.MjSpec) -> None:
    """Makes options, sizes and looks those of the scene, so that nothing is left to conflict when they are attached."""
    copy_options(scene.option, spec.option)
    for name in (n for n in dir(spec) if n.startswith("nuser_") or n in ("nkey", "njmax", "nconmax", "nuserdata")):
        setattr(spec, name, getattr(scene, name))
    for group in (n for n in dir(spec.visual) if not n.startswith("_")):
        ours, theirs = getattr(scene.visual, group), getattr(spec.visual, group)
        for name in (n for n in dir(theirs) if not n.startswith("_")):
            setattr(theirs, name, getattr(ours, name))


def adopt_compiler_settings(scene: mujoco.MjSpec, loaded: Sequence[mujoco.MjSpec | None]) -> None:
    """Lets the scene be compiled with those settings of the files' `<compiler>` of which a scene has one: how meshes
    are fitted, and how actuators' length ranges are found.

    Raises GenesisException where two files need different ones.
    """
    children = [child for child in loaded if child is not None]
    fitting = [child for child in children if any(geom.meshname for geom in child.geoms)]
    driving = [child for child in children if child.actuators]
    for name, needing in (("fitaabb", fitting), ("LRopt", driving)):
        different = {_spell_setting(getattr(child.compiler, name)): child for child in needing}
        if len(different) > 1:
            models = ", ".join(f"'{child.modelname}'" for child in different.values())
            raise GenesisException(
                f"MJCF: the models {models} set {'lengthrange' if name == 'LRopt' else name} of <compiler> "
                "differently, and a scene has one setting. Write what it computes into the files."
            )
        for child in different.values():
            setattr(scene.compiler, name, getattr(child.compiler, name))


def _spell_setting(value: Any) -> str:
    """A setting of `<compiler>`, or all those in an element of it."""
    if isinstance(value, int):
        return str(value)
    return repr([getattr(value, name) for name in dir(value) if not name.startswith("_")])


def aim_at_world(spec: mujoco.MjSpec, prefix: str) -> None:
    """Lets the lights and cameras of an attached model that look at the world do so still: MuJoCo prefixes its name."""
    for element in (*spec.lights, *spec.cameras):
        if element.targetbody == f"{prefix}world":
            element.targetbody = "world"


def _parse(morph: MJCF) -> mujoco.MjSpec:
    import mujoco

    if isinstance(morph.file, (ElementTree.Element, ElementTree.ElementTree)):
        element = morph.file.getroot() if isinstance(morph.file, ElementTree.ElementTree) else morph.file
        if element is None:
            raise GenesisException("MJCF: the given tree is empty.")
        text = ElementTree.tostring(element, encoding="unicode")
        with _reported("the given tree"):
            return mujoco.MjSpec.from_string(text)
    if isinstance(morph.file, str) and morph.file.lstrip().startswith("<"):
        text = morph.file.strip()
        with _reported(f"the given text '{text[:60]}...'"):
            return mujoco.MjSpec.from_string(text)
    path = find_model_file(morph.file)
    with _reported(f"the file '{path}'"):
        return mujoco.MjSpec.from_file(str(path))


@contextmanager
def _reported(what: str) -> Iterator[None]:
    """Turns MuJoCo's complaint about `what` into ours."""
    try:
        yield
    except ValueError as error:
        raise GenesisException(f"MJCF: MuJoCo cannot read {what}: {error}") from error


def _delete_world_planes(spec: mujoco.MjSpec) -> None:
    import mujoco

    for geom in list(spec.worldbody.geoms):
        if geom.type == mujoco.mjtGeom.mjGEOM_PLANE:
            spec.delete(geom)


def _name_keyframes(spec: mujoco.MjSpec) -> None:
    """Gives keyframes without a name one, since MuJoCo attaches one of them at most."""
    for number, key in enumerate(spec.keys):
        key.name = key.name or f"keyframe_{number}"


def _set_default_armature(spec: mujoco.MjSpec, armature: float) -> None:
    import mujoco

    for joint in spec.joints:
        one_dof = joint.type in (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)
        if one_dof and joint.armature == 0:
            joint.armature = armature


def _disable_collision(spec: mujoco.MjSpec) -> None:
    for geom in spec.geoms:
        geom.contype = geom.conaffinity = 0
    for pair in list(spec.pairs):
        spec.delete(pair)


def _apply_material(spec: mujoco.MjSpec, material: Rigid) -> None:
    if material.rho is not None:
        raise GenesisException(
            f"Rigid.rho={material.rho} with a model file: masses come from the file. Set density or mass there."
        )
    frictions = (material.friction, material.friction_torsional, material.friction_rolling)
    for geom in spec.geoms:
        geom.friction = [own if given is None else given for own, given in zip(geom.friction, frictions, strict=True)]
    if material.gravity_compensation:
        for body in spec.bodies[1:]:
            body.gravcomp = material.gravity_compensation


def _apply_compiler_flags(spec: mujoco.MjSpec) -> None:
    """Carries out the flags of `<compiler>` that act on a whole model and are lost when it is attached to another."""
    if spec.compiler.discardvisual:
        _newer(spec, "discard_visual", "discardvisual")()
    if spec.compiler.fusestatic:
        _newer(spec, "fuse_static", "fusestatic")()
    total = spec.compiler.settotalmass
    if total > 0:
        if spec.compiler.boundmass or spec.compiler.boundinertia:
            raise GenesisException(
                "MJCF: compiler settotalmass together with boundmass or boundinertia is not supported, since masses "
                "would be bounded again after they are scaled. Write the masses and inertias into the file."
            )
        spec.compiler.settotalmass = -1
        _scale_masses(spec, total / spec.compile().body_subtreemass[0])


def _newer(spec: mujoco.MjSpec, method: str, flag: str) -> Callable[[], int]:
    """What carries out a compiler flag. An error where the installed MuJoCo is too old to have it."""
    if not hasattr(spec, method):
        raise GenesisException(f"MJCF: compiler {flag}='true' needs a newer MuJoCo: pip install -U mujoco.")
    return getattr(spec, method)


def _scale_masses(spec: mujoco.MjSpec, factor: float) -> None:
    for geom in spec.geoms:
        geom.density *= factor
        geom.mass *= factor  # NaN where the density counts
    for body in spec.bodies[1:]:
        body.mass *= factor
        body.inertia = body.inertia * factor
        body.fullinertia = body.fullinertia * factor


def _spell_option(name: str, value: Any) -> str:
    import mujoco

    kinds = {"integrator": mujoco.mjtIntegrator, "cone": mujoco.mjtCone, "solver": mujoco.mjtSolver}
    if name in kinds:
        return kinds[name](int(value)).name.split("_", 1)[1].lower()
    if name in ("disableflags", "enableflags"):
        bits = mujoco.mjtDisableBit if name == "disableflags" else mujoco.mjtEnableBit
        names = [bit.split("_", 1)[1].lower() for bit, v in bits.__members__.items() if "_" in bit and value & int(v)]
        return "+".join(names) or "none"
    return str(value.tolist() if isinstance(value, np.ndarray) else value)
