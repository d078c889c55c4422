"""The mass matrix against MuJoCo in float64, and kinetic energy against the mass matrix."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from physics_models import names
from physics_reference import DOUBLE, error, full_matrix, stages
from pluriverse.dynamics.inertia import kinetic_energy_twice


@pytest.mark.parametrize("name", names("small") + names("robots"))
def test_mass_matrix(name: str) -> None:
    for stage in stages(name):
        expected = np.zeros((stage.mj_model.nv, stage.mj_model.nv))
        mujoco.mj_fullM(stage.mj_model, stage.data, expected)
        assert error(full_matrix(stage), expected) <= DOUBLE


@pytest.mark.parametrize("name", ["joints", "chain", "go1"])
def test_kinetic_energy(name: str) -> None:
    for stage in stages(name):
        smooth, values = stage.smooth, stage.floats.qvel
        energy = kinetic_energy_twice(stage.floats.tree, smooth.inertias, smooth.velocities, values, smooth.armature)
        assert error(energy, values @ full_matrix(stage) @ values) <= DOUBLE
