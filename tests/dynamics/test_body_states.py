"""Poses and velocities of all bodies, moving and fixed, against MuJoCo in float64."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from physics_models import load, names, world
from physics_reference import DOUBLE, FloatStep, error, mujoco_body_states, mujoco_data, samples, stages, with_signs_of
from pluriverse.dynamics.body_states import body_states, quaternion_from
from pluriverse.dynamics.tree import rotation


@pytest.mark.parametrize("name", names("small") + names("robots"))
def test_body_states(name: str) -> None:
    for stage in stages(name):
        expected = mujoco_body_states(stage.mj_model, stage.data)
        states = np.array(body_states(stage.floats.tree, stage.floats.qpos, stage.floats.qvel), dtype=float)
        assert error(with_signs_of(states, expected), expected) <= DOUBLE


def test_bodies_fixed_to_moving_and_to_fixed_bodies() -> None:
    fixed = '<body pos=".1 .2 .3" euler="10 20 30"><geom size=".1"/><body pos="1 0 0" euler="0 90 0"/></body>'
    mj_model = load(world(f'{fixed}<body><joint axis="1 2 3"/><geom size=".1"/>{fixed}</body>'))
    for sample in samples(mj_model, 2):
        floats = FloatStep(mj_model, sample)
        expected = mujoco_body_states(mj_model, mujoco_data(mj_model, sample))
        states = np.array(body_states(floats.tree, floats.qpos, floats.qvel), dtype=float)
        assert error(with_signs_of(states, expected), expected) <= DOUBLE


@given(st.integers(0, 2**32 - 1), st.sampled_from([0, 1, 2, 3, None]))
def test_quaternion_of_a_matrix(seed: int, half_turn: int | None) -> None:
    q = np.random.default_rng(seed).normal(size=4)
    if half_turn is not None:  # near the places where a formula may divide by zero
        q = np.eye(4)[half_turn] + 1e-6 * q
    q /= np.linalg.norm(q)
    found = np.array(quaternion_from(rotation(q)))
    assert found[0] >= 0
    assert min(np.abs(found - q).max(), np.abs(found + q).max()) < 1e-12
