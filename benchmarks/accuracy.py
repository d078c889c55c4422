"""How exact a step is, and on what work: one scene.step() out of the benchmark's own states against MuJoCo float64.

error = max |x - reference| / max(max |reference|, 1) per environment, x being the acceleration or the position.
The reference is MuJoCo in float64 with tolerance 0 and 100 iterations. Beside it stands the error that MuJoCo itself
makes when its inputs are rounded to float32: no float32 engine can be expected to be nearer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from engines.base import Motion, Steppable
from engines.mujoco_engine import MujocoEngine
from scenes import Case

SAMPLES = 64  # environments of each block
HALF_ULP = 2.0**-24  # greatest relative change when a number is rounded to float32


@dataclass(frozen=True)
class Sample:
    """A state of one environment, its control, and where the engine went from there in one scene.step()."""

    qpos: np.ndarray
    qvel: np.ndarray
    warm_start: np.ndarray
    control: np.ndarray
    next_qpos: np.ndarray
    qacc: np.ndarray


def samples(engine: Steppable) -> list[Sample]:
    """Runs the window once by hand and takes the first step of every block, when controls are fresh."""
    case = engine.case
    envs = np.unique(np.linspace(0, case.n_envs - 1, min(SAMPLES, case.n_envs)).astype(int))
    taken = []
    engine.restart()
    for block, steps in case.blocks():
        engine.command(block)
        before = engine.motion()
        engine.advance(case.substeps)
        after = engine.motion()
        engine.advance(steps - case.substeps)
        controls = case.controls[block].astype(np.float64)
        parts = (before.qpos, before.qvel, before.qacc, controls, after.qpos, after.qacc)
        taken += [Sample(*(part[env] for part in parts)) for env in envs]
    return taken


def errors(case: Case, taken: list[Sample]) -> dict[str, dict[str, float]]:
    """Median and maximum of the errors of the engine and of MuJoCo with rounded inputs."""
    exact = Reference(case.model, tolerance=0.0, iterations=100)
    random = np.random.default_rng(7)
    names = ("qacc", "qpos", "qacc_rounded_inputs", "qpos_rounded_inputs")
    found: dict[str, list[float]] = {name: [] for name in names}
    for s in taken:
        inputs = (s.qpos, s.qvel, s.warm_start, s.control)
        qpos, qacc = exact.step(inputs, case.substeps)
        rounded = tuple(x * (1 + HALF_ULP * random.uniform(-1, 1, x.shape)) for x in inputs)
        rounded_qpos, rounded_qacc = exact.step(rounded, case.substeps)
        found["qacc"].append(error(s.qacc, qacc))
        found["qpos"].append(error(s.next_qpos, qpos))
        found["qacc_rounded_inputs"].append(error(rounded_qacc, qacc))
        found["qpos_rounded_inputs"].append(error(rounded_qpos, qpos))
    return {name: {"median": float(np.median(e)), "max": float(np.max(e))} for name, e in found.items()}


def work(case: Case, taken: list[Sample]) -> dict[str, dict[str, float]]:
    """What MuJoCo, with the file's own settings, finds to do in the sampled states: contacts, rows, iterations."""
    own = Reference(case.model)
    counts: dict[str, list[int]] = {"contacts": [], "constraint_rows": [], "solver_iterations": []}
    for s in taken:
        own.step((s.qpos, s.qvel, s.warm_start, s.control), 1)
        counts["contacts"].append(int(own.data.ncon))
        counts["constraint_rows"].append(int(own.data.nefc))
        counts["solver_iterations"].append(int(own.data.solver_niter[: max(1, own.data.nisland)].max()))
    return {name: {"mean": float(np.mean(c)), "max": float(np.max(c))} for name, c in counts.items()}


def error(x: np.ndarray, reference: np.ndarray) -> float:
    """max |x - reference| / max(max |reference|, 1)."""
    return float(np.abs(x - reference).max() / max(np.abs(reference).max(), 1.0))


class Reference:
    """MuJoCo in float64, stepped from given states. None: the model's own tolerance and iterations."""

    def __init__(self, model: Any, tolerance: float | None = None, iterations: int | None = None) -> None:
        import copy

        import mujoco

        self._step, self.model = mujoco.mj_step, copy.copy(model)
        if tolerance is not None:
            self.model.opt.tolerance = tolerance
        if iterations is not None:
            self.model.opt.iterations = iterations
        self.data = mujoco.MjData(self.model)

    def step(self, inputs: tuple[np.ndarray, ...], steps: int) -> tuple[np.ndarray, np.ndarray]:
        """qpos after, and qacc of, the last of some steps. inputs: qpos, qvel, warm start, control."""
        data = self.data
        data.qpos[:], data.qvel[:], data.qacc_warmstart[:], data.ctrl[:] = inputs
        for _ in range(steps):
            self._step(self.model, data)
        return data.qpos.copy(), data.qacc.copy()


class Trajectories:
    """MuJoCo's own run of the window in some environments, to see that an engine simulates the same thing."""

    def __init__(self, case: Case, n_envs: int = 64) -> None:
        qpos, controls = case.qpos[:n_envs], tuple(control[:n_envs] for control in case.controls)
        self._case = replace(case, n_envs=len(qpos), qpos=qpos, controls=controls)
        engine = MujocoEngine(self._case, threads=1)
        engine.run()
        self._after_block, self._at_end = engine.motion_after(case.lengths[0]), engine.motion()

    def distance(self, engine: Steppable) -> dict[str, float]:
        """Median over environments of max |qpos - MuJoCo's| [m, rad] after the first block and after the window."""
        engine.restart()
        engine.command(0)
        engine.advance(self._case.lengths[0])
        after_block = engine.motion()
        engine.restart()
        engine.run()
        engine.wait()
        return {
            "after_first_block": self._median(after_block, self._after_block),
            "at_end": self._median(engine.motion(), self._at_end),
        }

    def _median(self, motion: Motion, reference: Motion) -> float:
        return float(np.median(np.abs(motion.qpos[: self._case.n_envs] - reference.qpos).max(1)))
