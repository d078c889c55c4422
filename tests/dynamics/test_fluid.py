"""Forces of a medium, and their derivatives, against MuJoCo in float64."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest

from physics_models import load, world
from physics_reference import DOUBLE, FloatStep, Sample, by_index, error, mujoco_data, mujoco_step, samples
from pluriverse.dynamics.bias import bias_forces
from pluriverse.dynamics.velocity_slopes import chain_columns, fluid_damping

MEDIA = [
    {"density": 1.2, "viscosity": 0.0, "wind": (0.0, 0.0, 0.0)},
    {"density": 0.0, "viscosity": 0.5, "wind": (0.0, 3.0, 0.0)},
    {"density": 800.0, "viscosity": 0.3, "wind": (1.0, -2.0, 0.5)},
]
IMPLICIT, IMPLICITFAST = 2, 3  # mjtIntegrator


def moving(mj_model: mujoco.MjModel, count: int) -> list[Sample]:
    return [replace(sample, qvel=3 * sample.qvel) for sample in samples(mj_model, count)]


@pytest.mark.parametrize("medium", MEDIA)
def test_forces(medium: dict) -> None:
    mj_model = load("fluid", **medium)
    for sample in moving(mj_model, 3):
        floats, data = FloatStep(mj_model, sample), mujoco_data(mj_model, sample)
        smooth = floats.smooth()
        assert smooth.medium
        forces = by_index(bias_forces(floats.tree, smooth.poses, smooth.medium.forces))
        assert np.abs(data.qfrc_fluid).max() > 0.01
        assert error(forces, data.qfrc_fluid) <= DOUBLE


@pytest.mark.parametrize("integrator", [IMPLICIT, IMPLICITFAST])
@pytest.mark.parametrize("medium", MEDIA)
def test_implicit_steps(medium: dict, integrator: int) -> None:
    mj_model = load("fluid", integrator=integrator, timestep=0.01, **medium)
    for sample in moving(mj_model, 3):
        assert FloatStep(mj_model, sample).result().errors(mujoco_step(mj_model, sample)).max() <= DOUBLE


def test_damping_is_the_derivative_of_the_forces() -> None:
    mj_model = load("fluid", integrator=IMPLICIT)
    (sample,) = moving(mj_model, 1)
    floats = FloatStep(mj_model, sample)
    smooth, damping = floats.smooth(), {}
    fluid_damping(floats.tree, smooth.poses, chain_columns(floats.tree, smooth.poses), smooth.medium, damping)
    h = 1e-6
    for j in range(mj_model.nv):
        pushed = [
            mujoco_data(mj_model, replace(sample, qvel=sample.qvel + sign * h * np.eye(mj_model.nv)[j])).qfrc_fluid
            for sign in (1, -1)
        ]
        column = np.array([damping.get((i, j), 0.0) for i in range(mj_model.nv)])
        assert error(-column, (pushed[0] - pushed[1]) / (2 * h)) <= 1e-5


def test_a_body_at_rest_in_still_water() -> None:
    """No velocity has a direction here: nothing is divided by it."""
    for shape in ("none", "ellipsoid"):
        body = f'<body><freejoint/><geom type="box" size=".1 .2 .3" fluidshape="{shape}"/></body>'
        mj_model = load(world(body, option='density="1000" viscosity="1"'))
        rest = Sample(mj_model.qpos0.copy(), *(np.zeros(n) for n in (6, 6, 0)))
        result = FloatStep(mj_model, rest).result()
        assert result.errors(mujoco_step(mj_model, rest)).max() <= DOUBLE


def test_disabled_springs_and_dampers_disable_the_medium() -> None:
    flags = int(mujoco.mjtDisableBit.mjDSBL_SPRING | mujoco.mjtDisableBit.mjDSBL_DAMPER)
    mj_model = load("fluid", disableflags=flags)
    (sample,) = moving(mj_model, 1)
    floats = FloatStep(mj_model, sample)
    assert floats.smooth().medium is None
    assert floats.result().errors(mujoco_step(mj_model, sample)).max() <= DOUBLE
