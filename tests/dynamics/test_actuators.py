"""General actuators against MuJoCo in float64: transmissions, activations, forces, limits, and steps of all of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import mujoco
import numpy as np
import pytest

from actuated_worlds import ACTUATED
from physics_models import load, world
from physics_reference import (
    DOUBLE,
    FloatStep,
    Result,
    Sample,
    by_index,
    error,
    mujoco_data,
    mujoco_step,
    samples,
    settings_of,
    sorted_forces,
)
from pluriverse.dynamics.actuators import activation_rates_by_row

WORLDS = [name for name in ACTUATED if name != "fluid"]
FLAG = mujoco.mjtDisableBit
EULER, RK4, IMPLICIT, IMPLICITFAST = range(4)  # mjtIntegrator


def wild(mj_model: mujoco.MjModel, count: int, size: float = 5.0) -> Iterator[Sample]:
    """Samples with controls and activations far out of their ranges, and setpoints of rotations several turns away."""
    rng = np.random.default_rng(1)
    for sample in samples(mj_model, count):
        yield replace(sample, ctrl=size * rng.normal(size=mj_model.nu), act=size * rng.normal(size=mj_model.na))


@pytest.mark.parametrize("name", WORLDS)
def test_stages(name: str) -> None:
    mj_model = load(name)
    for sample in [*samples(mj_model, 3), *wild(mj_model, 3)]:
        floats, data = FloatStep(mj_model, sample), mujoco_data(mj_model, sample)
        smooth = floats.smooth()
        moments = np.zeros((mj_model.nout, mj_model.nv))
        mujoco.mju_sparse2dense(
            moments, data.actuator_moment, data.moment_rownnz, data.moment_rowadr, data.moment_colind
        )
        for drive in smooth.drives:
            first = mj_model.actuator_outadr[drive.actuator]
            outputs = zip(drive.outputs, drive.velocities, drive.pulls(), strict=True)
            for k, (output, velocity, force) in enumerate(outputs, first):
                moment = np.zeros(mj_model.nv)
                moment[list(output.moment)] = list(output.moment.values())
                assert error(moment, moments[k]) <= DOUBLE
                assert output.length == pytest.approx(data.actuator_length[k], abs=DOUBLE)
                assert velocity == pytest.approx(data.actuator_velocity[k], abs=DOUBLE)
                assert force == pytest.approx(data.actuator_force[k], rel=DOUBLE, abs=DOUBLE)
        assert error(activation_rates_by_row(smooth.drives, mj_model.na), data.act_dot) <= DOUBLE
        assert error(by_index(smooth.actuation), sorted_forces(mj_model, data)["actuation"]) <= DOUBLE


@pytest.mark.parametrize("integrator", [EULER, RK4, IMPLICIT, IMPLICITFAST])
@pytest.mark.parametrize("name", WORLDS)
def test_steps(name: str, integrator: int) -> None:
    mj_model = load(name, integrator=integrator)
    for sample in wild(mj_model, 3):
        assert FloatStep(mj_model, sample).result().errors(mujoco_step(mj_model, sample)).max() <= DOUBLE


@pytest.mark.parametrize(
    "option",
    [
        {"disableflags": int(FLAG.mjDSBL_CLAMPCTRL)},
        {"disableflags": int(FLAG.mjDSBL_ACTUATION)},
        {"disableflags": int(FLAG.mjDSBL_SPRING | FLAG.mjDSBL_DAMPER)},
        {"disableactuator": 1 << 2},
        {"disableactuator": 1 << 2 | 1 << 3},
    ],
    ids=lambda option: " ".join(f"{name}={value}" for name, value in option.items()),
)
def test_options(option: dict[str, int]) -> None:
    mj_model = load("force_limits", **option)
    for sample in [*samples(mj_model, 2), *wild(mj_model, 2)]:
        assert FloatStep(mj_model, sample).result().errors(mujoco_step(mj_model, sample)).max() <= DOUBLE


@pytest.mark.parametrize("disabled", [0, 1 << 1])
def test_controls_are_clamped_in_simple_actuators_too(disabled: int) -> None:
    mj_model = load("actuators", disableflags=int(FLAG.mjDSBL_CLAMPCTRL), disableactuator=disabled)
    for sample in wild(mj_model, 4):
        assert FloatStep(mj_model, sample).result().errors(mujoco_step(mj_model, sample)).max() <= DOUBLE


@pytest.mark.parametrize("name", ["activations", "motors"])
def test_activations_over_several_steps(name: str) -> None:
    mj_model = load(name, timestep=0.01)
    (sample,) = samples(mj_model, 1)
    data = mujoco_data(mj_model, sample)
    for _ in range(20):
        result = FloatStep(mj_model, sample).result()
        mujoco.mj_step(mj_model, data)
        sample = replace(sample, qpos=result.qpos, qvel=result.qvel, act=result.act, warmstart=result.qacc)
    reference = Result(data.qacc, data.qvel, data.qpos, data.act)
    assert np.abs(sample.act).max() > 0.1
    assert result.errors(reference).max() <= DOUBLE


def test_gravity_compensation_without_actuators_is_forgotten() -> None:
    """MuJoCo leaves out what actuators should lift where there are none."""
    body = '<body gravcomp="1"><joint axis="0 1 0" actuatorgravcomp="true"/><geom size=".1" pos=".3 0 0"/></body>'
    mj_model = load(world(body))
    (sample,) = samples(mj_model, 1)
    result = FloatStep(mj_model, sample).result()
    assert abs(result.qacc[0]) > 1
    assert result.errors(mujoco_step(mj_model, sample)).max() <= DOUBLE


def test_orientation_torque_is_limited_in_norm() -> None:
    xml = world(
        '<body><joint name="b" type="ball"/><geom type="box" size=".1 .2 .3" pos=".1 0 0"/></body>',
        after='<actuator><orientation joint="b" kp="3" kv=".1" forcerange="0 .2"/></actuator>',
    )
    mj_model = load(xml, integrator=EULER)
    for sample in wild(mj_model, 4, size=1.0):
        smooth = FloatStep(mj_model, sample).smooth()
        assert np.linalg.norm(smooth.drives[0].forces) == pytest.approx(0.2)
        assert FloatStep(mj_model, sample).result().errors(mujoco_step(mj_model, sample)).max() <= DOUBLE


@pytest.mark.parametrize("name", ["transmissions", "activations"])
def test_genesis_scheme_takes_only_joints_into_the_inertia(name: str) -> None:
    mj_model = load(name)
    (sample,) = samples(mj_model, 1)
    smooth = FloatStep(mj_model, sample, settings_of(mj_model, integrator="approximate_implicitfast")).smooth()
    expected = mj_model.dof_armature + mj_model.opt.timestep * mj_model.dof_damping
    assert error(by_index(smooth.armature), expected) <= DOUBLE
    assert not smooth.damping
    assert any(i != j for i, j in FloatStep(mj_model, sample).smooth().damping)  # of the integrator by default
