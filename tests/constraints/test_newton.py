"""The constrained acceleration: against MuJoCo's exact solution, by its KKT residual, and from any start."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest

from physics_models import load, names
from physics_reference import (
    DOUBLE,
    FloatStep,
    Sample,
    cost_gradient,
    error,
    mujoco_data,
    mujoco_step,
    samples,
    settings_of,
)
from pluriverse.step import StepSettings, step

CONSTRAINED = [
    "frictionloss",
    "equality",
    "limits",
    "contact_parameters",
    "round",
    "shapes",
    "four_legs",
    "chain",
    "torsion",
    "elliptic",
    "elliptic_torsion",
]


def exact(mj_model: mujoco.MjModel, **changes: object) -> StepSettings:
    """Settings under which the solver stops at the exact minimum only."""
    return settings_of(mj_model, tolerance=0.0, iterations=100, **changes)


@pytest.mark.parametrize("name", names("small") + names("robots"))
def test_constrained_acceleration(name: str) -> None:
    mj_model = load(name)
    for sample in samples(mj_model, 6):
        result = FloatStep(mj_model, sample, exact(mj_model)).result()
        assert error(result.qacc, mujoco_step(mj_model, sample).qacc) <= DOUBLE


@pytest.mark.parametrize(
    ("name", "path"),
    [(name, "joint_space") for name in CONSTRAINED] + [("frictionloss", "sweep"), ("four_legs", "sweep")],
)
def test_kkt_residual(name: str, path: str) -> None:
    mj_model = load(name)
    for sample in samples(mj_model, 6):
        data = mujoco_data(mj_model, sample)
        result = FloatStep(mj_model, sample, exact(mj_model, path=path)).result()
        gradient = cost_gradient(mj_model, data, result.qacc)
        assert np.abs(gradient).max() <= DOUBLE * max(1.0, np.abs(data.qfrc_smooth).max())


def test_kkt_residual_of_something_else_is_large() -> None:
    mj_model = load("four_legs")
    sample = samples(mj_model, 3)[2]
    data = mujoco_data(mj_model, sample)
    assert np.abs(cost_gradient(mj_model, data, data.qacc_smooth)).max() > 0.01


@pytest.mark.parametrize(
    "name", ["frictionloss", "limits", "round", "four_legs", "torsion", "elliptic", "elliptic_torsion"]
)
def test_start_does_not_matter(name: str) -> None:
    mj_model = load(name)
    rng = np.random.default_rng(0)
    for sample in samples(mj_model, 3):
        starts = [sample.warmstart, 0 * sample.warmstart, rng.normal(size=mj_model.nv) * 1e3]
        floats = FloatStep(mj_model, sample, exact(mj_model))
        found = [floats.start_from(start).result().qacc for start in starts]
        assert error(found[1], found[0]) <= DOUBLE
        assert error(found[2], found[0]) <= DOUBLE


def solver_ran_out(mj_model: mujoco.MjModel, sample: Sample, iterations: int) -> bool:
    floats = FloatStep(mj_model, sample, exact(mj_model))
    qacc = {d: floats.run.variable(a) for d, a in enumerate(floats.warmstart)}
    settings = replace(floats.settings, iterations=iterations)
    return bool(step(floats.tree, floats.qpos, floats.qvel, floats.act, qacc, floats.inputs, settings)[3])


def test_too_few_iterations_are_reported() -> None:
    mj_model = load("round")
    far = [replace(s, warmstart=s.warmstart + 1e3) for s in samples(mj_model, 8)]
    assert any(solver_ran_out(mj_model, sample, 1) for sample in far)
    assert not any(solver_ran_out(mj_model, sample, 100) for sample in far)
