"""MuJoCo in C, `mujoco.rollout` on several threads: a whole window in one call, its fastest way."""

from __future__ import annotations

from typing import Any

import numpy as np

from engines.base import Engine, Health, Motion
from scenes import Case

MOST_ENVS = 1024  # environments of a window: the rate does not depend on it, the memory of the trajectories does


class MujocoEngine(Engine):
    """float64; `rollout` keeps the trajectory of every environment, which is its only interface."""

    name = "mujoco"

    def __init__(self, case: Case, threads: int) -> None:
        import mujoco
        from mujoco import rollout

        super().__init__(case)
        self.n_envs = n = min(case.n_envs, MOST_ENVS)
        model = case.model
        self._rollout = rollout.Rollout(nthread=threads)
        self._data = [mujoco.MjData(model) for _ in range(threads)]
        full = mujoco.mjtState.mjSTATE_FULLPHYSICS
        self._initial = np.zeros((n, mujoco.mj_stateSize(model, full)))
        data = self._data[0]
        for env in range(n):
            mujoco.mj_resetData(model, data)
            data.qpos[:] = case.qpos[env]
            mujoco.mj_getState(model, data, self._initial[env], full)
        lengths = np.array(case.lengths)
        blocks = np.stack([control[:n] for control in case.controls], 1).astype(np.float64)
        self._control = np.repeat(blocks, lengths, axis=1)
        self._state = np.zeros((n, case.steps, self._initial.shape[1]))
        self._arguments: dict[str, Any] = {"state": self._state, "nstep": case.steps}
        if model.nu:
            self._arguments["control"] = self._control
        if model.nsensordata:
            self._arguments["sensordata"] = np.zeros((n, case.steps, model.nsensordata))
        self.settings = {"path": "mujoco.rollout, whole window in one call", "threads": threads, "precision": "float64"}

    def restart(self) -> None:
        pass

    def run(self) -> None:
        self._rollout.rollout(self.case.model, self._data, self._initial, **self._arguments)

    def wait(self) -> None:
        pass

    def motion(self) -> Motion:
        return self.motion_after(self.case.steps)

    def motion_after(self, steps: int) -> Motion:
        """The state after some steps of the last window; `rollout` does not tell accelerations."""
        nq, nv = self.case.model.nq, self.case.model.nv
        state = self._state[:, steps - 1, 1:]  # time comes first
        return Motion(state[:, :nq].copy(), state[:, nq : nq + nv].copy(), np.full((self.n_envs, nv), np.nan))

    def health(self) -> Health:
        finite = np.isfinite(self._state).all((1, 2))
        return Health(int((~finite).sum()), unconverged=None, overflow=0)
