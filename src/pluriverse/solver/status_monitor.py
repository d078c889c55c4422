"""Tells the user about environments that went wrong, without making a step wait for the device."""

from __future__ import annotations

import torch

from pluriverse.errors import GenesisException
from pluriverse.logging import logger
from pluriverse.solver.state import STATUS_CONTACT_OVERFLOW, STATUS_NON_FINITE, STATUS_SOLVER_LIMIT, State
from pluriverse.status_bits import BITS

PERIOD = 10  # steps between looks

_SHOWN = 8  # environments that a message lists

_MEANING = {
    STATUS_NON_FINITE: "met a NaN or an infinity and stand still until they are reset; get_error_envs_mask() has them",
    STATUS_SOLVER_LIMIT: "stopped the constraint solver at its iteration limit, so that their constraint forces are "
    "approximate; RigidOptions(iterations=...) raises it",
    STATUS_CONTACT_OVERFLOW: "had more contacts than there is room for, and lost some; "
    "RigidOptions(max_contacts={room}) makes room for what has been seen and a quarter more",
}


class StatusMonitor:
    """Looks every `PERIOD` steps for status bits that have risen and warns once about each kind of trouble.

    Kernels write what there is to see into host memory, so that a look costs nothing. What calls with an index on the
    GPU have found wrong (see `EnvAxis.faults`) is copied there, for a later look.
    """

    def __init__(self, state: State, faults: torch.Tensor, *, strict: bool) -> None:
        self._status = state.status[0, : state.n_envs]
        self._alarm = state.status_alarm.numpy()
        self._together = state.together
        self._faults = faults
        self._strict = strict
        self._reported = 0
        self._asynchronous = state.status.device.type == "cuda"
        self._fault_copy = torch.zeros(2, dtype=torch.int32, pin_memory=self._asynchronous)
        self._copied: torch.cuda.Event | None = None

    def look(self) -> None:
        """Report what has become known. Raises for faults, and for status if strict."""
        if self._asynchronous and torch.cuda.is_current_stream_capturing():
            return  # a graph must not hold the host's part
        for bit, risen in zip(BITS, self._alarm.tolist(), strict=True):
            if risen and not self._reported & bit:
                self._report_status(bit, risen)
        self._look_at_faults()

    def _look_at_faults(self) -> None:
        if not self._asynchronous:
            self._fault_copy.copy_(self._faults)
        elif self._copied is not None and not self._copied.query():
            return
        bad_index, bad_count = self._fault_copy.tolist()
        if bad_index or bad_count:
            self._faults.zero_()
            self._fault_copy.zero_()
            raise GenesisException(self._fault_text(bad_index, bad_count))
        if self._asynchronous:
            self._fault_copy.copy_(self._faults, non_blocking=True)
            self._copied = torch.cuda.Event()
            self._copied.record()

    def forget(self) -> None:
        """All environments were reset: trouble is news again."""
        self._reported = 0
        self._alarm[:] = 0

    def _report_status(self, bit: int, alarm: int) -> None:
        """Says which environments are in trouble; alarm: what the kernel said about it."""
        envs = torch.nonzero(self._status & bit).flatten().tolist()  # waits, once for each kind of trouble
        if not envs:  # reset meanwhile
            return
        room = -(-5 * alarm // (4 * self._together))
        listed = ", ".join(map(str, envs[:_SHOWN])) + (", ..." if len(envs) > _SHOWN else "")
        text = f"{len(envs)} of {len(self._status)} environments ({listed}) {_MEANING[bit].format(room=room)}."
        if self._strict:
            raise GenesisException(f"strict=True: {text}")
        self._reported |= bit
        logger.warning(text)

    @staticmethod
    def _fault_text(bad_index: int, bad_count: int) -> str:
        faults = []
        if bad_index:
            faults.append("an envs_idx held an index out of range, and the nearest environment was used in its place")
        if bad_count:
            faults.append("the values for a boolean envs_idx had not as many rows as the mask has True entries")
        return (
            f"In an earlier call with an envs_idx on the GPU {' and '.join(faults)}. This is found late because "
            "checking at the call would wait for the GPU; pass the index as a CPU tensor or list to find the call."
        )
