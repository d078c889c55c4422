"""Bodies that nothing touches: free fall, pendulum, spring and damper, torque-free tops."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
from float_simulation import order_of, simulate

from physics_models import load, world
from pluriverse.dynamics.tree import rotation

EULER, IMPLICITFAST = int(mujoco.mjtIntegrator.mjINT_EULER), int(mujoco.mjtIntegrator.mjINT_IMPLICITFAST)
INERTIA = np.array([0.3, 0.2, 0.1])  # of the tops [kg m^2]


def test_free_fall() -> None:
    mj_model, n = load(world('<body pos="0 0 10"><freejoint/><geom size=".1"/></body>')), 200
    dt, g = mj_model.opt.timestep, 9.81
    q, v = simulate(mj_model, n, qvel=[1, 0, 2, 0, 0, 0])
    assert v[-1, 2] == pytest.approx(2 - g * n * dt, rel=1e-12)
    assert q[-1, 0] == pytest.approx(n * dt, rel=1e-12)
    assert q[-1, 2] == pytest.approx(10 + 2 * n * dt - g * dt**2 * n * (n + 1) / 2, rel=1e-12)  # of semi-implicit Euler


def pendulum(dt: float = 1e-3) -> tuple[mujoco.MjModel, float]:
    """A pendulum about y, and its angular frequency at small amplitude [rad/s]."""
    radius, length = 0.05, 0.7
    text = f'<body><joint axis="0 1 0"/><geom size="{radius}" pos="0 0 {-length}"/></body>'
    return load(world(text), timestep=dt), math.sqrt(9.81 * length / (length**2 + 0.4 * radius**2))


def agm(a: float, b: float) -> float:
    while abs(a - b) > 1e-15:
        a, b = (a + b) / 2, math.sqrt(a * b)
    return a


@pytest.mark.parametrize("amplitude", [0.01, 0.5, 2.0])
def test_pendulum_period(amplitude: float) -> None:
    mj_model, omega = pendulum()
    period = 2 * math.pi / omega / agm(1.0, math.cos(amplitude / 2))  # Gauss
    angle = simulate(mj_model, int(3.2 * period / 1e-3), qpos=[amplitude])[0][:, 0]
    before = np.flatnonzero((angle[:-1] > 0) & (angle[1:] <= 0))
    crossings = before + angle[before] / (angle[before] - angle[before + 1])
    assert len(crossings) == 3
    assert np.diff(crossings).mean() * 1e-3 == pytest.approx(period, rel=1e-5)


def test_pendulum_energy_stays() -> None:
    """A symplectic integrator's energy swings with the step, and does not drift."""
    swings = []
    for dt in (0.004, 0.002):
        mj_model, omega = pendulum(dt)
        q, v = simulate(mj_model, int(8 / dt), qpos=[1.0])
        energy = 0.5 * v[:, 0] ** 2 - omega**2 * np.cos(q[:, 0])
        swings.append(np.abs(energy - energy[0]).max())
        halves = np.split(np.abs(energy - energy[0])[: len(energy) // 2 * 2], 2)
        assert halves[1].max() == pytest.approx(halves[0].max(), rel=0.05)
    assert order_of(swings, (0.004, 0.002)) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("integrator", [EULER, IMPLICITFAST])
def test_spring_and_damper(integrator: int) -> None:
    """An underdamped oscillator against its solution: the error is of first order in the step."""
    k, c, m, errors, steps = 40.0, 1.5, 2.0, [], (0.008, 0.004, 0.002)
    text = f'<body><joint type="slide" axis="1 0 0" stiffness="{k}" damping="{c}"/><geom size=".1" mass="{m}"/></body>'
    decay = c / (2 * m)
    omega = math.sqrt(k / m - decay**2)
    for dt in steps:
        x = simulate(load(world(text), timestep=dt, integrator=integrator), round(2 / dt), qpos=[0.3])[0][:, 0]
        t = dt * np.arange(len(x))
        exact = 0.3 * np.exp(-decay * t) * (np.cos(omega * t) + decay / omega * np.sin(omega * t))
        errors.append(np.abs(x - exact).max())
    assert errors[-1] < 0.002
    assert order_of(errors, steps) == pytest.approx(1, abs=0.1)


def top(dt: float, inertia: np.ndarray = INERTIA) -> mujoco.MjModel:
    numbers = " ".join(map(str, inertia))
    text = f'<body><freejoint/><inertial pos="0 0 0" mass="1" diaginertia="{numbers}"/></body>'
    return load(world(text), timestep=dt, integrator=EULER, gravity=(0.0, 0.0, 0.0))


def test_torque_free_top_keeps_momentum_and_energy() -> None:
    """To the integrator's order, which is the first."""
    steps, momentum, energy = (0.004, 0.002, 0.001), [], []
    for dt in steps:
        q, v = simulate(top(dt), round(1 / dt), qvel=[0, 0, 0, 1.0, 2.0, -1.5])
        spin = INERTIA * v[:, 3:]
        L = np.array([rotation(x[3:7]) @ s for x, s in zip(q, spin)])
        T = 0.5 * (spin * v[:, 3:]).sum(1)
        momentum.append(np.abs(L - L[0]).max() / np.linalg.norm(L[0]))
        energy.append(np.abs(T - T[0]).max() / T[0])
        assert np.abs(v[:, :3]).max() == 0.0
    assert max(momentum[-1], energy[-1]) < 0.003
    assert order_of(momentum, steps) == pytest.approx(1, abs=0.1)
    assert order_of(energy, steps) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_spin_about_a_principal_axis(axis: int) -> None:
    spin = np.eye(3)[axis] * 7.0
    q, v = simulate(top(0.002), 100, qvel=[0, 0, 0, *spin])
    assert np.abs(v[-1, 3:] - spin).max() < 1e-12
    half = 7.0 * 0.2 / 2
    assert np.abs(q[-1, 3:] - [math.cos(half), *(math.sin(half) * np.eye(3)[axis])]).max() < 1e-12


def test_symmetric_top_precesses() -> None:
    """Its axis turns about the angular momentum at the rate L / I_across (Landau and Lifshitz I, section 33)."""
    across, along, dt, n = 0.2, 0.3, 0.0005, 1000
    inertia, spin = np.array([across, across, along]), np.array([1.0, 0.0, 4.0])
    L = inertia * spin
    q, _ = simulate(top(dt, inertia), n, qvel=[0, 0, 0, *spin])
    turn, unit = np.linalg.norm(L) / across * n * dt, L / np.linalg.norm(L)
    expected = rotation(np.array([math.cos(turn / 2), *(math.sin(turn / 2) * unit)])) @ [0.0, 0.0, 1.0]
    assert np.abs(rotation(q[-1, 3:])[:, 2] - expected).max() < 0.002
