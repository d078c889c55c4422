"""The whole step on float64 numbers against MuJoCo: acceleration, velocity, position."""

from __future__ import annotations

import copy
from dataclasses import replace

import mujoco
import numpy as np
import pytest

from physics_models import load, names
from physics_reference import DOUBLE, FloatStep, Sample, mujoco_step, samples, settings_of
from pluriverse.step import FAR, finite, solver_path

EULER, IMPLICITFAST = int(mujoco.mjtIntegrator.mjINT_EULER), int(mujoco.mjtIntegrator.mjINT_IMPLICITFAST)


def worst_error(mj_model: mujoco.MjModel, count: int = 6, **changes: object) -> float:
    """Of qacc, qvel and qpos after a step from a few samples."""
    settings = settings_of(mj_model, tolerance=0.0, iterations=100, **changes)
    return max(
        FloatStep(mj_model, sample, settings).result().errors(mujoco_step(mj_model, sample)).max()
        for sample in samples(mj_model, count)
    )


@pytest.mark.parametrize("integrator", [EULER, IMPLICITFAST])
@pytest.mark.parametrize("name", names("small"))
def test_small_worlds(name: str, integrator: int) -> None:
    assert worst_error(load(name, integrator=integrator)) <= DOUBLE


@pytest.mark.parametrize("name", names("robots"))
def test_robots(name: str) -> None:
    assert worst_error(load(name), 4) <= DOUBLE


@pytest.mark.parametrize("name", ["scene_franka", "scene_quad", "own_humanoid"])
def test_robots_that_meet_the_floor_only(name: str) -> None:
    assert worst_error(load(name, masked=True), 4) <= DOUBLE


@pytest.mark.parametrize(
    ("flag", "name", "integrator"),
    [
        ("EULERDAMP", "damped", EULER),
        ("EULERDAMP", "damped", IMPLICITFAST),
        ("DAMPER", "damped", EULER),
        ("DAMPER", "damped", IMPLICITFAST),
        ("GRAVITY", "gravcomp", EULER),
        ("SPRING", "springs", IMPLICITFAST),
        ("CONTACT", "round", EULER),
        ("LIMIT", "limits", IMPLICITFAST),
        ("EQUALITY", "equality", IMPLICITFAST),
        ("FRICTIONLOSS", "frictionloss", EULER),
        ("SPRING", "tendons", EULER),
        ("DAMPER", "tendons", IMPLICITFAST),
        ("LIMIT", "tendons", EULER),
        ("FRICTIONLOSS", "tendons", IMPLICITFAST),
        ("EQUALITY", "tendon_equality", EULER),
        ("FILTERPARENT", "round", EULER),
    ],
)
def test_disable_flags(flag: str, name: str, integrator: int) -> None:
    bit = int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}"))
    assert worst_error(load(name, integrator=integrator, disableflags=bit)) <= DOUBLE


@pytest.mark.parametrize("option", [{"timestep": 0.01}, {"impratio": 10.0}, {"gravity": (1.0, -2.0, -5.0)}])
@pytest.mark.parametrize("name", ["actuators", "four_legs"])
def test_options(name: str, option: dict) -> None:
    assert worst_error(load(name, **option)) <= DOUBLE


@pytest.mark.parametrize("name", ["damped", "actuators", "four_legs"])
def test_approximate_implicitfast_adds_damping_to_armature(name: str) -> None:
    """As Genesis World has it: the solver itself works with M + dt * damping, clamped servos included."""
    mj_model = load(name)
    stiff = copy.copy(load(name, integrator=EULER, disableflags=int(mujoco.mjtDisableBit.mjDSBL_EULERDAMP)))
    damping = mj_model.dof_damping.copy()
    for u in range(mj_model.nu):
        velocity_gain = mj_model.actuator_biasprm[u, 2] * (mj_model.actuator_biastype[u] == 1)
        dof = mj_model.jnt_dofadr[mj_model.actuator_trnid[u, 0]]
        damping[dof] -= mj_model.actuator_gear[u, 0] ** 2 * velocity_gain
    stiff.dof_armature[:] += mj_model.opt.timestep * damping
    settings = settings_of(mj_model, integrator="approximate_implicitfast", tolerance=0.0)
    for sample in samples(mj_model, 4):
        result = FloatStep(mj_model, sample, settings).result()
        assert result.errors(mujoco_step(stiff, sample)).max() <= DOUBLE


def test_default_tolerance_is_enough() -> None:
    for name in ("go1", "own_humanoid", "round"):
        mj_model = load(name, integrator=EULER)
        for sample in samples(mj_model, 4):
            errors = FloatStep(mj_model, sample, settings_of(mj_model)).result().errors(mujoco_step(mj_model, sample))
            assert errors.max() <= 1e-6


def test_settings_choose_the_path() -> None:
    model = FloatStep(load("go1"), samples(load("go1"), 1)[0]).model
    assert solver_path(model, settings_of(load("go1"))) == "joint_space"  # its legs may touch
    assert solver_path(model, settings_of(load("go1"), contacts=False)) == "sweep"
    assert solver_path(model, settings_of(load("go1"), path="sweep")) == "sweep"


@pytest.mark.parametrize(
    ("values", "healthy"),
    [
        ([1.0, -2.0], True),
        ([1.0, float("nan")], False),
        ([float("inf"), 0.0], False),
        ([float("-inf"), float("inf")], False),
        ([FAR], False),
    ],
)
def test_finite(values: list[float], healthy: bool) -> None:
    assert finite(values) is healthy


def test_a_model_at_rest_stays_at_rest() -> None:
    mj_model = load("damped", gravity=(0.0, 0.0, 0.0))
    rest = Sample(mj_model.qpos0.copy(), *(np.zeros(n) for n in (mj_model.nv, mj_model.nv, mj_model.nu)))
    result = FloatStep(mj_model, rest).result()
    assert np.array_equal(result.qpos, rest.qpos)
    assert not np.any(result.qvel)


def test_quaternions_need_no_unit_length() -> None:
    mj_model = load("joints")
    for sample in samples(mj_model, 4):
        qpos = sample.qpos.copy()
        for joint in np.flatnonzero(mj_model.jnt_type <= 1):  # free and ball
            first = mj_model.jnt_qposadr[joint] + (3 if mj_model.jnt_type[joint] == 0 else 0)
            qpos[first : first + 4] *= 1.7
        scaled = replace(sample, qpos=qpos)
        assert FloatStep(mj_model, scaled).result().errors(mujoco_step(mj_model, scaled)).max() <= DOUBLE
