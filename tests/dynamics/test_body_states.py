"""Poses and velocities of all bodies, moving and fixed, against MuJoCo in float64."""

from __future__ import annotations

import numpy as np
import pytest

from physics_models import load, names, world
from physics_reference import DOUBLE, FloatStep, error, mujoco_body_states, mujoco_data, samples, stages
from pluriverse.dynamics.body_states import body_states


@pytest.mark.parametrize("name", names("small") + names("robots"))
def test_body_states(name: str) -> None:
    for stage in stages(name):
        expected = mujoco_body_states(stage.mj_model, stage.data)
        states = np.array(body_states(stage.floats.tree, stage.floats.qpos, stage.floats.qvel), dtype=float)
        assert error(states, expected) <= DOUBLE


@pytest.mark.parametrize("turn", ['euler="10 20 30"', 'quat="-.5 .5 -.5 .5"', 'euler="190 0 0"'])
def test_bodies_fixed_to_moving_and_to_fixed_bodies(turn: str) -> None:
    """The signs of the quaternions are MuJoCo's too."""
    fixed = (
        f'<body pos=".1 .2 .3" {turn}><geom size=".1"/><body pos="1 0 0" euler="0 170 0"/>'
        f'<body {turn}><joint axis="0 1 0"/><geom size=".1"/><body {turn}/></body></body>'
    )
    mj_model = load(world(f'{fixed}<body><joint axis="1 2 3"/><geom size=".1"/>{fixed}</body>'))
    for sample in samples(mj_model, 2):
        floats = FloatStep(mj_model, sample)
        expected = mujoco_body_states(mj_model, mujoco_data(mj_model, sample))
        states = np.array(body_states(floats.tree, floats.qpos, floats.qvel), dtype=float)
        assert error(states, expected) <= DOUBLE
