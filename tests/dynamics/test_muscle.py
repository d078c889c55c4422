"""The curves of muscles against MuJoCo's functions."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from pluriverse.dynamics.muscle import Muscle, activation_rate

PRM = np.array([0.7, 1.1, -1.0, 200.0, 0.5, 1.6, 1.5, 1.3, 1.2, 0.0])
SPARE = np.zeros(3)
RANGE, ACC0 = np.array([0.2, 0.9]), 4.0


@pytest.mark.parametrize("force", [-1.0, 30.0])
def test_forces(force: float) -> None:
    prm = PRM.copy()
    prm[2] = force
    muscle = Muscle.of(prm, RANGE, ACC0)
    for length in np.linspace(-0.5, 3.0, 71):
        assert muscle.bias(length) == pytest.approx(mujoco.mju_muscleBias(length, RANGE, ACC0, prm[:9]), abs=1e-12)
        for velocity in (-9.0, -2.0, -0.3, 0.0, 0.1, 0.5, 9.0):
            expected = mujoco.mju_muscleGain(length, velocity, RANGE, ACC0, prm[:9])
            assert muscle.gain(length, velocity) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("length", [0.2, 0.4, 0.7, 1.0])
@pytest.mark.parametrize("velocity", [-9.0, -1.0, -0.1, 0.1, 9.0])
def test_slope_of_the_gain(length: float, velocity: float) -> None:
    muscle, h = Muscle.of(PRM, RANGE, ACC0), 1e-6
    change = (muscle.gain(length, velocity + h) - muscle.gain(length, velocity - h)) / (2 * h)
    assert muscle.gain_slope(length, velocity) == pytest.approx(change, abs=1e-6)


@pytest.mark.parametrize("smooth", [0.0, 0.3])
def test_activation(smooth: float) -> None:
    prm = np.array([0.01, 0.04, smooth])
    for control in (-0.2, 0.0, 0.3, 0.5, 1.0, 2.0):
        for activation in (-0.3, 0.0, 0.4, 0.5, 1.0, 1.4):
            expected = mujoco.mju_muscleDynamics(control, activation, prm)
            assert activation_rate(control, activation, prm) == pytest.approx(expected, rel=1e-12)
