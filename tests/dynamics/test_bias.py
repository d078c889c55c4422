"""Bias forces, gravity compensation among them, against MuJoCo in float64."""

from __future__ import annotations

import pytest

from physics_models import load, names
from physics_reference import (
    DOUBLE,
    FloatStep,
    Stage,
    by_index,
    error,
    full_bias,
    mujoco_data,
    samples,
    sorted_forces,
    stages,
)
from pluriverse.dynamics.bias import bias_forces


def expected(stage: Stage) -> object:
    """MuJoCo's bias less gravity compensation and the medium, which it counts as passive forces."""
    return sorted_forces(stage.mj_model, stage.data)["bias"]


@pytest.mark.parametrize("name", names("small") + names("robots"))
def test_bias_forces(name: str) -> None:
    for stage in stages(name):
        assert error(full_bias(stage), expected(stage)) <= DOUBLE


def test_gravity_compensation_is_tested() -> None:
    assert any(abs(stage.data.qfrc_gravcomp).max() > 0.1 for stage in stages("gravcomp"))


@pytest.mark.parametrize("gravity", [(0.0, 0.0, 0.0), (1.0, -2.0, 3.0)])
def test_any_gravity(gravity: tuple[float, ...]) -> None:
    mj_model = load("gravcomp", gravity=gravity)
    for sample in samples(mj_model, 2):
        data, floats = mujoco_data(mj_model, sample), FloatStep(mj_model, sample)
        smooth = floats.smooth()
        bias = bias_forces(floats.tree, smooth.poses, smooth.forces)
        assert error(by_index(bias), data.qfrc_bias - data.qfrc_gravcomp) <= DOUBLE
