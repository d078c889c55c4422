"""Springs and dampers against MuJoCo in float64."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from physics_models import load, names
from physics_reference import DOUBLE, FloatStep, by_index, error, mujoco_data, samples, sorted_forces, stages
from pluriverse.dynamics.passive import rotation_between


@pytest.mark.parametrize("name", names("small") + names("robots"))
def test_passive_forces(name: str) -> None:
    for stage in stages(name):
        expected = sorted_forces(stage.mj_model, stage.data)["passive"]
        assert error(by_index(stage.smooth.passive), expected) <= DOUBLE


@pytest.mark.parametrize("disabled", ["SPRING", "DAMPER"])
def test_disabled_kinds(disabled: str) -> None:
    flag = int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{disabled}"))
    mj_model = load("springs", disableflags=flag)
    for sample in samples(mj_model, 2):
        data, smooth = mujoco_data(mj_model, sample), FloatStep(mj_model, sample).smooth()
        assert error(by_index(smooth.passive), data.qfrc_passive) <= DOUBLE
        assert np.abs(data.qfrc_passive).max() > 0.01


numbers = st.floats(-1, 1)
quaternions = st.tuples(numbers, numbers, numbers, numbers).filter(lambda q: math.hypot(*q) > 0.1)


@given(quaternions, quaternions)
def test_rotation_between_orientations(start: tuple[float, ...], end: tuple[float, ...]) -> None:
    one, two = (np.array(q) / np.linalg.norm(q) for q in (start, end))
    expected = np.zeros(3)
    mujoco.mju_subQuat(expected, two, one)
    if np.linalg.norm(expected) < 3.14:  # at a half turn either sign is right
        assert error(rotation_between(one.tolist(), two.tolist()), expected) <= 1e-7  # MuJoCo's own: acos near 0


def test_no_rotation() -> None:
    assert rotation_between([1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]) == [0.0, 0.0, 0.0]
