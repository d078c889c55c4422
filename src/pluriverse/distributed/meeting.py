"""How the ranks of a job compare notes: a key-value store beside any process group, with a judge and a deadline."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from typing import Any

import torch.distributed as dist

from pluriverse.distributed.rank import Rank
from pluriverse.errors import GenesisException

Notes = list[dict[str, Any]]
"""What each rank has said, by rank."""


def open_store(rank: Rank, purpose: str, timeout: float) -> dist.Store:
    """A connection of its own to the job's store. It starts no process group and is no part of one.

    Under torchrun the agent keeps the store; elsewhere rank 0 does, at the address that a later process group uses too.

    purpose: its keys are apart from those of others, and from those of earlier stores of this purpose: all ranks open
    as many. timeout: seconds to wait for the store to come up.
    """
    if rank.master is None:
        return dist.HashStore()
    host, port = rank.master
    keeper = rank.rank == 0 and not rank.agent_store
    try:
        if keeper:
            _keep_store(host, port, rank.world_size)
        store = dist.TCPStore(
            host, port, rank.world_size, False, timedelta(seconds=timeout), wait_for_workers=False, multi_tenant=True
        )
    except (RuntimeError, ValueError) as error:
        who = "torchrun" if rank.agent_store else "rank 0"
        raise GenesisException(
            f"{rank}: the ranks meet at MASTER_ADDR={host}, MASTER_PORT={port}, where {who} keeps a store, and that "
            f"could not be reached within {timeout:g} s: {_first_line(error)}. Is that process running, the address "
            "one that this machine can reach, and the port open?"
        ) from error
    job = dist.PrefixStore(f"pluriverse/{rank.restarts}/{purpose}", store)
    return dist.PrefixStore(str(job.add(f"opened by {rank.rank}", 1)), job)


@cache
def _keep_store(host: str, port: int, world_size: int) -> dist.Store:
    """Rank 0's store, until this process ends: it would end with its last user here, while other ranks still read."""
    return dist.TCPStore(host, port, world_size, True, wait_for_workers=False, multi_tenant=True)


class Meeting:
    """Exchanges between all ranks of a job. All of them make as many meetings and exchanges, in the same order."""

    def __init__(self, rank: Rank, purpose: str, timeout: float = 60.0) -> None:
        self.rank, self.purpose, self.timeout = rank, purpose, timeout
        self._store = open_store(rank, purpose, timeout)
        self._exchanges = 0

    def judge(
        self,
        note: dict[str, Any],
        rule: Callable[[Notes], str | None] = lambda notes: None,
        answer: Callable[[Notes], Any] = lambda notes: None,
    ) -> Any:
        """Every rank tells its note, and rank 0 judges them all. Every rank gets the answer, or the same error.

        rule: what is wrong with the notes, None if nothing. answer: what all ranks are to know, small because it goes
        to each of them.

        Raises GenesisException with the rule's words, or with the ranks that have not come in time.
        """
        if self.rank.world_size == 1:
            verdict, told = rule([note]), answer([note])
        else:
            self._exchanges += 1
            self._store.set(f"{self._exchanges}/{self.rank.rank}", json.dumps(note))
            if self.rank.rank == 0:
                verdict, told = self._conclude(rule, answer)
                self._store.set(f"{self._exchanges}/verdict", json.dumps([verdict, told]))
            else:
                verdict, told = self._await_verdict()
        if verdict is not None:
            raise GenesisException(verdict)
        return told

    def _conclude(self, rule: Callable[[Notes], str | None], answer: Callable[[Notes], Any]) -> tuple[str | None, Any]:
        keys = [f"{self._exchanges}/{rank}" for rank in range(self.rank.world_size)]
        deadline = time.monotonic() + self.timeout
        while time.monotonic() < deadline and not self._store.check(keys):
            time.sleep(0.02)
        missing = [rank for rank, key in enumerate(keys) if not self._store.check([key])]
        if missing:
            return (
                f"{self.purpose}: rank {', '.join(map(str, missing))} of {self.rank.world_size} has not come within "
                f"{self.timeout:g} s, the others have. Look at the output of those ranks, and at whether their machine "
                "was started and reaches this one."
            ), None
        notes = [json.loads(self._store.get(key)) for key in keys]
        last = self._exchanges - 1  # who has come to this exchange has read the last one
        for name in (*range(self.rank.world_size), "verdict") if last else ():
            self._store.delete_key(f"{last}/{name}")
        verdict = rule(notes)
        return verdict, answer(notes) if verdict is None else None

    def _await_verdict(self) -> tuple[str | None, Any]:
        key = f"{self._exchanges}/verdict"
        deadline = time.monotonic() + self.timeout + 10  # rank 0 waits too, and then says who is missing
        try:
            while not self._store.check([key]):
                if time.monotonic() > deadline:
                    raise GenesisException(
                        f"{self.purpose}: rank 0 has said nothing to {self.rank} within {self.timeout + 10:g} s. Look "
                        "at the output of rank 0."
                    )
                time.sleep(0.02)
            verdict, told = json.loads(self._store.get(key))
        except RuntimeError as error:  # torch's, where the store is gone
            raise GenesisException(
                f"{self.purpose}: the store of the job has ended while {self.rank} waited for rank 0: "
                f"{_first_line(error)}. Look at the output of rank 0."
            ) from error
        return verdict, told


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
