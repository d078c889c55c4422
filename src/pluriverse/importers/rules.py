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


def is_one_of(field: str, enum: str, names: str) -> Finder:
    """Elements whose enumeration field is one of the named members."""
    return lambda m: _is_one_of(m, field, enum, names)


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


def defined_by_callbacks(m: mujoco.MjModel) -> np.ndarray:
    """Actuators of which only a program knows what they do."""
    kinds = (("dyntype", "mjtDyn", "mjDYN_USER"), ("gaintype", "mjtGain", "mjGAIN_USER"),
             ("biastype", "mjtBias", "mjBIAS_USER"))  # fmt: skip
    return np.any([_is_one_of(m, f"actuator_{field}", enum, name) for field, enum, name in kinds], axis=0)


def _is_one_of(m: mujoco.MjModel, field: str, enum: str, names: str) -> np.ndarray:
    import mujoco

    members = getattr(mujoco, enum).__members__
    return np.isin(getattr(m, field), [int(members[name]) for name in names.split() if name in members])
