"""Refuses a compiled model that uses what is not supported, all of it at once and by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pluriverse.errors import GenesisException
from pluriverse.importers.coverage import RULES
from pluriverse.importers.rules import Rule

if TYPE_CHECKING:
    import mujoco


def refuse_unsupported(mj_model: mujoco.MjModel, labels: Sequence[str] = ()) -> None:
    """Raises one GenesisException that names every element which cannot be simulated; returns if there is none.

    `labels` are the entities' names: an element named `i/name` is said to be `name` of entity `labels[i]`.
    """
    findings = [text for rule in RULES for text in _findings(mj_model, rule, labels)]
    if findings:
        raise GenesisException(
            "The model uses what is not supported yet:\n"
            + "\n".join(f"  - {text}" for text in findings)
            + "\nRemove or change these elements; nothing is left out in silence."
        )


def _findings(mj_model: mujoco.MjModel, rule: Rule, labels: Sequence[str]) -> list[str]:
    """One text for each entity that has elements which the rule finds."""
    if not _has(mj_model, rule.fields.split()[0]):
        return []
    found = rule.found(mj_model)
    if not rule.element:
        return [f"option {found}: {rule.reason}"] if found else []
    names: dict[str, list[str]] = {}
    for index in np.flatnonzero(found):
        label, name = _element_name(mj_model, rule.element, int(index), labels)
        names.setdefault(label, []).append(name)
    return [f"{label}{rule.element} {', '.join(names[label])}: {rule.reason}" for label in names]


def _has(mj_model: mujoco.MjModel, field: str) -> bool:
    owner, _, name = field.rpartition(".")
    return hasattr(getattr(mj_model, owner) if owner else mj_model, name)


def _element_name(mj_model: mujoco.MjModel, element: str, index: int, labels: Sequence[str]) -> tuple[str, str]:
    """`panda: `, if the element belongs to an entity and has a name, and the name or a description."""
    import mujoco

    name = mujoco.mj_id2name(mj_model, getattr(mujoco.mjtObj, f"mjOBJ_{element.upper()}"), index)
    if not name:
        body_of = {"geom": mj_model.geom_bodyid, "joint": mj_model.jnt_bodyid}.get(element)
        if body_of is None:
            return "", f"number {index} (unnamed)"
        label, body = _element_name(mj_model, "body", int(body_of[index]), labels)
        return label, f"number {index} (unnamed, of body {body})"
    prefix, slash, local = name.partition("/")
    if slash and prefix.isdigit() and int(prefix) < len(labels):
        return f"{labels[int(prefix)]}: ", f"'{local}'"
    return "", f"'{name}'"
