"""What a rule of `coverage` is made of: the fields it answers for, and how it finds what is not supported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import mujoco

    Finder = Callable[[mujoco.MjModel], Any]


@dataclass(frozen=True)
class Rule:
    """A use of some fields that is not supported.

    `fields` are the fields that the rule answers for; where the installed MuJoCo lacks the first, the rule is void.
    `element` is the kind of element that `found` returns a mask over; it is empty where the rule is about the whole
    model, and `found` then returns the offending setting as text, or ''.
    """

    fields: str
    element: str  # an mjtObj without its prefix, lower case
    reason: str
    found: Finder


def nonzero(*fields: str) -> Finder:
    """Elements with a number other than 0 in any of the fields."""

    def found(m: mujoco.MjModel) -> np.ndarray:
        arrays = [np.asarray(getattr(m, field)) for field in fields if hasattr(m, field)]
        return np.any([array.any(axis=tuple(range(1, array.ndim))) for array in arrays], axis=0)

    return found


def assigned(field: str) -> Finder:
    """Elements with an index >= 0 in the field."""
    return lambda m: getattr(m, field) >= 0


def other_than(field: str, enum: str, names: str) -> Finder:
    """Elements whose enumeration field is none of the named members."""
    return lambda m: ~_is_one_of(m, field, enum, names)


def option_other_than(field: str, enum: str, names: str) -> Finder:
    """The value of an option that is none of the named members of its enumeration."""

    def found(m: mujoco.MjModel) -> str:
        import mujoco

        value = getattr(mujoco, enum)(getattr(m.opt, field)).name
        return "" if value in names.split() else value

    return found


def option_flags(field: str, enum: str, names: str) -> Finder:
    """Those of the named flags that are set."""

    def found(m: mujoco.MjModel) -> str:
        import mujoco

        members = getattr(mujoco, enum).__members__
        set_flags = [n for n in names.split() if n in members and getattr(m.opt, field) & int(members[n])]
        return " ".join(set_flags)

    return found


def option_set(*fields: str) -> Finder:
    """Options other than 0."""
    return lambda m: " ".join(f"{field}={getattr(m.opt, field)}" for field in fields if getattr(m.opt, field))


def collides(m: mujoco.MjModel) -> np.ndarray:
    """Geoms that may touch something."""
    paired = np.isin(np.arange(m.ngeom), [*m.pair_geom1, *m.pair_geom2])
    return (m.geom_contype != 0) | (m.geom_conaffinity != 0) | paired


def collides_as_unsupported_shape(m: mujoco.MjModel) -> np.ndarray:
    return collides(m) & _is_one_of(m, "geom_type", "mjtGeom", "mjGEOM_HFIELD mjGEOM_SDF")


def polynomial_damping(m: mujoco.MjModel) -> np.ndarray:
    """Joints with a dof that has polynomial damping."""
    return np.isin(np.arange(m.njnt), m.dof_jntid[m.dof_dampingpoly.any(axis=1)])


def drives_joint(m: mujoco.MjModel) -> np.ndarray:
    """Actuators on a joint."""
    return _is_one_of(m, "actuator_trntype", "mjtTrn", "mjTRN_JOINT mjTRN_JOINTINPARENT")


def drives_many_dofs(m: mujoco.MjModel) -> np.ndarray:
    """Actuators on a ball or a free joint."""
    many = np.flatnonzero(_is_one_of(m, "jnt_type", "mjtJoint", "mjJNT_BALL mjJNT_FREE"))
    return drives_joint(m) & np.isin(m.actuator_trnid[:, 0], many)


def gain_varies(m: mujoco.MjModel) -> np.ndarray:
    """Actuators whose gain is no constant."""
    affine = _is_one_of(m, "actuator_gaintype", "mjtGain", "mjGAIN_AFFINE")
    fixed = _is_one_of(m, "actuator_gaintype", "mjtGain", "mjGAIN_FIXED")
    return ~fixed & ~(affine & (m.actuator_gainprm[:, 1:3] == 0).all(axis=1))


def limits_gravcomp(m: mujoco.MjModel) -> np.ndarray:
    """Joints whose force limit would clamp gravity compensation too."""
    return (m.jnt_actgravcomp & m.jnt_actfrclimited).astype(bool) & bool(np.any(m.body_gravcomp))


def _is_one_of(m: mujoco.MjModel, field: str, enum: str, names: str) -> np.ndarray:
    import mujoco

    members = getattr(mujoco, enum).__members__
    return np.isin(getattr(m, field), [int(members[name]) for name in names.split() if name in members])
