"""The solve in joint coordinates: elimination written out and in loops."""

from __future__ import annotations

import pytest

from physics_models import load
from physics_reference import DOUBLE, FloatStep, mujoco_step, samples, settings_of
from pluriverse.constraints import joint_space


@pytest.mark.parametrize("name", ["equality", "round", "contact_parameters"])
def test_loops_do_what_unrolled_code_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mj_model = load(name)
    settings = settings_of(mj_model, tolerance=0.0)
    batch = samples(mj_model, 4)
    unrolled = [FloatStep(mj_model, sample, settings).result() for sample in batch]
    monkeypatch.setattr(joint_space, "UNROLLED_DOFS", 0)
    looped = [FloatStep(mj_model, sample, settings).result() for sample in batch]
    assert max(max(one.errors(two)) for one, two in zip(looped, unrolled)) <= DOUBLE


def test_large_model_is_solved_in_loops() -> None:
    mj_model = load("chain")
    assert mj_model.nv > joint_space.UNROLLED_DOFS
    for sample in samples(mj_model, 4):
        result = FloatStep(mj_model, sample, settings_of(mj_model, tolerance=0.0)).result()
        assert max(result.errors(mujoco_step(mj_model, sample))) <= DOUBLE
