"""Trajectories of the float64 reference, for tests that know the answer from a textbook."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np

from physics_reference import FloatStep, Sample, by_index
from pluriverse.step import step


def simulate(
    mj_model: mujoco.MjModel, steps: int, qpos: Sequence[float] | None = None, qvel: Sequence[float] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """(steps + 1, nq) positions and (steps + 1, nv) velocities, the start included."""
    start = np.array(mj_model.qpos0 if qpos is None else qpos, dtype=float)
    velocity = np.zeros(mj_model.nv) if qvel is None else np.array(qvel, dtype=float)
    floats = FloatStep(mj_model, Sample(start, velocity, np.zeros(mj_model.nv), np.zeros(mj_model.nu)))
    qacc = {d: floats.run.variable(0.0) for d in range(mj_model.nv)}
    positions, velocities = [start], [velocity]
    for _ in range(steps):
        now = positions[-1].tolist(), velocities[-1].tolist()
        q, v, _, _ = step(floats.tree, *now, [], qacc, floats.inputs, floats.settings)
        positions.append(by_index(q))
        velocities.append(by_index(v))
    return np.array(positions), np.array(velocities)


def order_of(errors: Sequence[float], steps: Sequence[float]) -> float:
    """The slope of log error over log step."""
    return float(np.polyfit(np.log(steps), np.log(errors), 1)[0])
