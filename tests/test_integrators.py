"""RK4 and the implicit integrators: one step against MuJoCo, and the order at which they converge."""

from __future__ import annotations

import functools
from collections.abc import Callable

import mujoco
import numpy as np
import pytest

from analytic.float_simulation import order_of, simulate
from physics_models import load, world
from physics_reference import DOUBLE, FloatStep, mujoco_step, samples, settings_of

EULER, RK4, IMPLICIT, IMPLICITFAST = range(4)  # mjtIntegrator
STEPS, DURATION = (0.02, 0.01, 0.005), 0.2
SPIN = (0.0, 0.0, 0.0, 2.0, 5.0, 1.0)


@pytest.mark.parametrize("integrator", [RK4, IMPLICIT])
@pytest.mark.parametrize(
    "name", ["joints", "springs", "damped", "actuators", "limits", "equality", "round", "four_legs", "tendons", "mocap"]
)
def test_one_step(name: str, integrator: int) -> None:
    mj_model = load(name, integrator=integrator)
    settings = settings_of(mj_model, tolerance=0.0, iterations=100)
    for sample in samples(mj_model, 2):
        result = FloatStep(mj_model, sample, settings).result()
        assert result.errors(mujoco_step(mj_model, sample)).max() <= DOUBLE


def test_long_chains_in_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    from pluriverse.dynamics import chain_solve

    mj_model = load("joints", integrator=IMPLICIT)
    (sample,) = samples(mj_model, 1)
    unrolled = FloatStep(mj_model, sample).result()
    monkeypatch.setattr(chain_solve, "UNROLLED", 0)
    assert FloatStep(mj_model, sample).result().errors(unrolled).max() <= 1e-12


def double_pendulum(dt: float, integrator: int) -> mujoco.MjModel:
    text = """<body pos="0 0 1"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .5 0 0" size=".05"/>
      <body pos=".5 0 0"><joint axis="1 1 0"/><geom type="capsule" fromto="0 0 0 .4 .1 0" size=".04"/></body></body>"""
    return load(world(text), timestep=dt, integrator=integrator)


def top(dt: float, integrator: int) -> mujoco.MjModel:
    """A free body that tumbles, without weight."""
    text = '<body><freejoint/><geom type="box" size=".1 .2 .3"/></body>'
    return load(world(text), timestep=dt, integrator=integrator, gravity=(0.0, 0.0, 0.0))


def energy(mj_model: mujoco.MjModel, qpos: np.ndarray, qvel: np.ndarray) -> float:
    data = mujoco.MjData(mj_model)
    data.qpos[:], data.qvel[:] = qpos, qvel
    mujoco.mj_forward(mj_model, data)
    mujoco.mj_energyPos(mj_model, data)
    mujoco.mj_energyVel(mj_model, data)
    return float(data.energy.sum())


@functools.cache
def exact_end(make: Callable, qvel: tuple[float, ...]) -> np.ndarray:
    """Positions after DURATION, by steps that are eight times finer."""
    steps = round(DURATION / STEPS[-1] * 8)
    return simulate(make(DURATION / steps, RK4), steps, qvel=qvel)[0][-1]


@pytest.mark.parametrize(
    ("make", "qvel"),
    [(double_pendulum, (1.0, 2.0)), (top, SPIN)],
    ids=["pendulum", "spinning body"],
)
@pytest.mark.parametrize(("integrator", "order"), [(RK4, 4), (IMPLICIT, 1), (IMPLICITFAST, 1)])
def test_order(make: Callable, qvel: tuple[float, ...], integrator: int, order: int) -> None:
    """The error of the end, and the drift of the energy."""
    errors, drifts = [], []
    for dt in STEPS:
        mj_model = make(dt, integrator)
        positions, velocities = simulate(mj_model, round(DURATION / dt), qvel=qvel)
        errors.append(np.abs(positions[-1] - exact_end(make, qvel)).max())
        before, after = (energy(mj_model, positions[k], velocities[k]) for k in (0, -1))
        drifts.append(abs(after - before))
    assert order - 0.3 <= order_of(errors, STEPS) <= order + 0.7
    assert order_of(drifts, STEPS) >= order - 0.3


def test_angular_momentum_of_a_spinning_body() -> None:
    """RK4 keeps it to its order: the orientation turns by more than a radian here."""
    drifts = []
    for dt in STEPS:
        mj_model = top(dt, RK4)
        positions, velocities = simulate(mj_model, round(2 * DURATION / dt), qvel=SPIN)
        momenta = []
        for k in (0, -1):
            rotation = np.zeros(9)
            mujoco.mju_quat2Mat(rotation, positions[k][3:])
            momenta.append(rotation.reshape(3, 3) @ (mj_model.body_inertia[1] * velocities[k][3:]))
        drifts.append(np.abs(momenta[1] - momenta[0]).max())
    assert order_of(drifts, STEPS) >= 3.7
