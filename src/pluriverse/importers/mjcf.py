"""MJCF morph -> MjSpec: find, parse, and apply what the morph and the material say."""

from __future__ import annotations

from collections.abc import Iterator
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
    if spec.compiler.fusestatic:
        if not hasattr(spec, "fuse_static"):
            raise GenesisException("MJCF: compiler fusestatic='true' needs a newer MuJoCo: pip install -U mujoco.")
        spec.fuse_static()
    total = spec.compiler.settotalmass
    if total > 0:
        spec.compiler.settotalmass = -1
        _scale_masses(spec, total / spec.compile().body_subtreemass[0])


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
