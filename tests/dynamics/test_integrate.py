"""Integration of positions against MuJoCo in float64."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from physics_models import names
from physics_reference import DOUBLE, by_index, error, stages
from pluriverse.dynamics.integrate import integrate_positions, rotate_quaternion


@pytest.mark.parametrize("name", names("small") + names("robots"))
@pytest.mark.parametrize("dt", [1e-4, 0.02])
def test_integrated_positions(name: str, dt: float) -> None:
    for stage in stages(name):
        expected = np.array(stage.floats.qpos)
        mujoco.mj_integratePos(stage.mj_model, expected, np.array(stage.floats.qvel), dt)
        result = integrate_positions(stage.floats.tree, stage.floats.qpos, stage.floats.qvel, dt)
        assert error(by_index(result), expected) <= DOUBLE


@pytest.mark.parametrize("speed", [0.0, 1e-12, 1e-6, 1.0, 500.0])
def test_any_speed(speed: float) -> None:
    q, angular = np.array([0.1, -0.7, 0.5, 0.5]), speed * np.array([0.6, 0.0, -0.8])
    q /= np.linalg.norm(q)
    expected = q.copy()
    mujoco.mju_quatIntegrate(expected, angular, 0.01)
    assert error(rotate_quaternion(q.tolist(), angular.tolist(), 0.01), expected) <= DOUBLE
