"""Refuses a compiled model that uses what is not supported, all of it at once and by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from pluriverse.errors import GenesisException
from pluriverse.importers.coverage import RULES
from pluriverse.importers.rules import Rule

if TYPE_CHECKING:
    import mujoco


Owners = Mapping[str, np.ndarray]
"""By kind of element (body, geom ...): for each one the number of its entity; -1: of no entity."""


def refuse_unsupported(
    mj_model: mujoco.MjModel, labels: Sequence[str] = (), owners: Owners = MappingProxyType({})
) -> None:
    """Raises one GenesisException that names every element which cannot be simulated; returns if there is none.

    `labels` are the entities' names: an element named `i/name` is said to be `name` of entity `labels[i]`. `owners`
    tells whose the unnamed ones are.
    """
    findings = [text for rule in RULES for text in _findings(mj_model, rule, labels, owners)]
    if findings:
        raise GenesisException(
            "The model uses what is not supported yet:\n"
            + "\n".join(f"  - {text}" for text in findings)
            + "\nRemove or change these elements; nothing is left out in silence."
        )


def without_prefixes(text: str, labels: Sequence[str]) -> str:
    """A message of MuJoCo in which `'i/name'` is said to be `'name' of entity 'labels[i]'`."""

    def said(match: re.Match[str]) -> str:
        index, name = int(match[1]), match[2]
        return f"'{name}' of entity '{labels[index]}'" if index < len(labels) else match[0]

    return re.sub(r"'(\d+)/([^']*)'", said, text)


def _findings(mj_model: mujoco.MjModel, rule: Rule, labels: Sequence[str], owners: Owners) -> list[str]:
    """One text for each entity that has elements which the rule finds."""
    if not _has(mj_model, rule.fields.split()[0]):
        return []
    found = rule.found(mj_model)
    if not rule.element:
        return [f"option {found}: {rule.reason}"] if found else []
    names: dict[str, list[str]] = {}
    for index in np.flatnonzero(found):
        label, name = element_name(mj_model, rule.element, int(index), labels, owners)
        names.setdefault(label, []).append(name)
    return [f"{label}{rule.element} {', '.join(names[label])}: {rule.reason}" for label in names]


def _has(mj_model: mujoco.MjModel, field: str) -> bool:
    owner, _, name = field.rpartition(".")
    return hasattr(getattr(mj_model, owner) if owner else mj_model, name)


def element_name(
    mj_model: mujoco.MjModel, element: str, index: int, labels: Sequence[str], owners: Owners
) -> tuple[str, str]:
    """`panda: `, if the element is known to belong to an entity, and its name or a description.

    The number of an unnamed element counts within its entity.
    """
    import mujoco

    name = mujoco.mj_id2name(mj_model, getattr(mujoco.mjtObj, f"mjOBJ_{element.upper()}"), index)
    if not name:
        owner = owners.get(element, np.full(index + 1, -1))
        number = np.count_nonzero(owner[:index] == owner[index])
        label = f"{labels[owner[index]]}: " if owner[index] >= 0 else ""
        body_of = {"geom": mj_model.geom_bodyid, "joint": mj_model.jnt_bodyid}.get(element)
        if body_of is None:
            return label, f"number {number} (unnamed)"
        label_of_body, body = element_name(mj_model, "body", int(body_of[index]), labels, owners)
        return label or label_of_body, f"number {number} (unnamed, of body {body.removesuffix(' (unnamed)')})"
    prefix, slash, local = name.partition("/")
    if slash and prefix.isdigit() and int(prefix) < len(labels):
        return f"{labels[int(prefix)]}: ", f"'{local}'"
    return "", f"'{name}'"
