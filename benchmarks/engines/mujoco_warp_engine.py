"""MuJoCo Warp: on CUDA the steps between two controls are one graph, captured once and replayed."""

from __future__ import annotations

from typing import Any

import numpy as np

from engines.base import Health, Motion, Steppable
from scenes import Case, make_case

_SAMPLE, _SAMPLE_STEPS = 128, 200  # environments and steps of MuJoCo that tell how much room is needed
_ROOM = 1.5
_ATTEMPTS = 3  # at finding room enough


class MujocoWarpEngine(Steppable):
    """float32. Room for contacts and constraints is what MuJoCo needs on the same workload and half as much again."""

    name = "mujoco_warp"

    def __init__(self, case: Case, device: str, controls: str) -> None:
        import mujoco_warp as mjw
        import warp as wp

        super().__init__(case)
        if hasattr(wp.config, "log_level"):
            wp.config.log_level = wp.LOG_WARNING
        self._wp, self._mjw, self._device = wp, mjw, wp.get_device(device)
        with wp.ScopedDevice(self._device):
            self._model = mjw.put_model(case.model)
            self._model.opt.warn_overflow = 0  # the flags are read instead of printed
            self._start = wp.array(case.qpos, dtype=float)
            self._controls = [wp.array(control, dtype=float) for control in case.controls]
        contacts, rows = room_needed(case, controls)
        for _ in range(_ATTEMPTS):
            self._allocate(contacts, rows)
            if not self._device.is_cuda or not self._overflows():
                break
            contacts, rows = 2 * contacts, 2 * rows
        self.settings = {
            "path": "CUDA graph of the steps between two controls" if self._graphs else "mjw.step() called from Python",
            "precision": "float32",
            "device": str(self._device),
            "nconmax": contacts,
            "njmax": rows,
        }

    def _allocate(self, contacts: int, rows: int) -> None:
        """Makes room for so many contacts and constraint rows an environment, and captures the graphs."""
        import mujoco

        self._graphs: dict[int, Any] = {}
        with self._wp.ScopedDevice(self._device):
            data, n_envs = mujoco.MjData(self.case.model), self.case.n_envs
            self._data = self._mjw.put_data(self.case.model, data, nworld=n_envs, nconmax=contacts, njmax=rows)
            if self._device.is_cuda:
                self.restart()
                self.advance(1)  # compiles
                for steps in set(self.case.lengths):
                    with self._wp.ScopedCapture() as capture:
                        self.advance(steps)
                    self._graphs[steps] = capture.graph

    def _overflows(self) -> bool:
        self.restart()
        self.run()
        self.wait()
        return self.health().overflow > 0

    def restart(self) -> None:
        with self._wp.ScopedDevice(self._device):
            self._mjw.reset_data(self._model, self._data)
        self._wp.copy(self._data.qpos, self._start)
        self.command(0)

    def command(self, block: int) -> None:
        if self.case.model.nu:
            self._wp.copy(self._data.ctrl, self._controls[block])

    def advance(self, steps: int) -> None:
        with self._wp.ScopedDevice(self._device):
            for _ in range(steps):
                self._mjw.step(self._model, self._data)

    def run(self) -> None:
        if not self._graphs:
            return super().run()
        for block, steps in self.case.blocks():
            self.command(block)
            self._wp.capture_launch(self._graphs[steps])
        return None

    def wait(self) -> None:
        self._wp.synchronize_device(self._device)

    def motion(self) -> Motion:
        data = self._data
        return Motion(*(a.numpy().astype(np.float64) for a in (data.qpos, data.qvel, data.qacc_warmstart)))

    def health(self) -> Health:
        kinds = self._mjw.OverflowType
        flags = self._data.overflow.numpy()
        limits = int(kinds.ITERATIONS | kinds.LS_ITERATIONS)
        return Health(
            non_finite=int((~self.motion().finite()).sum()),
            unconverged=int(((flags & int(kinds.ITERATIONS)) != 0).sum()),
            overflow=int(((flags & ~limits) != 0).sum()),
        )


def room_needed(case: Case, controls: str) -> tuple[int, int]:
    """Contacts and constraint rows an environment needs, from MuJoCo on the first environments of this workload.

    It does not depend on the batch size: MuJoCo Warp compiles the number of rows into its kernels.
    """
    import mujoco

    sample = make_case(case.scene, case.file, _SAMPLE, _SAMPLE_STEPS, 1, controls=controls)
    model, data = sample.model, mujoco.MjData(sample.model)
    contacts = rows = 0
    for env in range(_SAMPLE):
        mujoco.mj_resetData(model, data)
        data.qpos[:] = sample.qpos[env]
        for block, steps in sample.blocks():
            data.ctrl[:] = sample.controls[block][env]
            for _ in range(steps):
                mujoco.mj_step(model, data)
                contacts, rows = max(contacts, data.ncon), max(rows, data.nefc)
    return _rounded(contacts), _rounded(rows)


def _rounded(number: int) -> int:
    """With room to spare, a multiple of 8, at least 16."""
    return max(16, -(-int(_ROOM * number) // 8) * 8)
