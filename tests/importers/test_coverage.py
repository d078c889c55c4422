"""Every field of MuJoCo's model has a place in the coverage tables."""

from __future__ import annotations

import dataclasses
from collections import Counter

import mujoco
import pytest

from pluriverse.importers.coverage import RULES, USED, WITHOUT_MEANING, covered_fields, fields_without_meaning
from pluriverse.importers.rules import Rule
from pluriverse.model import Model, ModelOptions


def mujoco_fields() -> set[str]:
    model = mujoco.MjModel.from_xml_string("<mujoco/>")

    def data(owner: object) -> list[str]:
        return [name for name in dir(owner) if not name.startswith("_") and not callable(getattr(owner, name))]

    return {*data(model), *(f"opt.{n}" for n in data(model.opt)), *(f"stat.{n}" for n in data(model.stat))}


def test_no_field_of_the_installed_mujoco_is_missing() -> None:
    missing = mujoco_fields() - covered_fields()
    assert not missing, "decide for each in importers/coverage.py: used, refused, or without meaning for the dynamics"


def test_a_field_has_one_place() -> None:
    used, refused = USED.split(), [field for rule in RULES for field in rule.fields.split()]
    without = [field for names in WITHOUT_MEANING.values() for field in names.split()]
    assert not [field for field, n in Counter(used + without).items() if n > 1]
    assert not [field for field, n in Counter(refused + without).items() if n > 1]
    assert len(without) == len(fields_without_meaning())


def test_the_used_fields_are_those_of_the_model() -> None:
    names = {field.name for field in dataclasses.fields(Model)} | {
        f"opt.{f.name}" for f in dataclasses.fields(ModelOptions)
    }
    host_only = {"geom_group", "geom_matid", "geom_rgba", "stat_meaninertia"}
    names -= host_only | {name for name in names if name.endswith("_names")}
    assert names <= set(USED.split())


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.fields.split()[0])
def test_an_element_is_a_kind_of_mujoco(rule: Rule) -> None:
    assert rule.element == "" or hasattr(mujoco.mjtObj, f"mjOBJ_{rule.element.upper()}")
