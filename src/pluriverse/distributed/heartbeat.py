"""Signs of life of every rank, so that a job that cannot go on ends in seconds and says whose fault it was.

A thread of each rank tells a store which phase the rank is in. Rank 0's thread judges (`verdict.judge`); all read its
verdict, and end. It works while the main thread waits inside a collective, and beside any process group.
"""

from __future__ import annotations

import atexit
import faulthandler
import json
import os
import select
import signal
import sys
import threading
import time
import traceback
from contextlib import suppress
from dataclasses import asdict
from types import TracebackType

from pluriverse.distributed.meeting import open_store
from pluriverse.distributed.rank import Rank
from pluriverse.distributed.verdict import DONE, FAILED, RUNNING, Sign, Verdict, dead, judge
from pluriverse.errors import GenesisException

INTERVAL = 0.5  # seconds between signs while nothing is new, and between looks at the others
SPACING = 0.05  # seconds at least between two signs; more in a job of many ranks, so that the store can follow
GRACE = 3.0  # seconds in which the culprit and the launcher may end the job before the others do
EXIT_CODE = 1
STDERR = 2  # the file, whatever has become of sys.stderr
NEWS = b"\0"
TERMINATED = 128 + signal.SIGTERM


class heartbeat:
    """A context in which a rank tells what it does, and ends with the job.

        with gs.distributed.heartbeat(rank) as beat:
            beat("build", limit=300)
            scene.build(n_envs=4096)
            for _ in range(updates):
                beat("step")
                ...
                beat("update")
                ...

    All ranks enter the same phases. When one of them raises, is killed, or stays in a phase beyond its limit, every
    rank prints which, in which phase, and ends non-zero. Rank 0, which judges, leaves the context after the others.

    Args:
        rank: what `setup` returned.
        limit: seconds that a phase may take unless it says otherwise, and that a rank may give no sign.
    """

    def __init__(self, rank: Rank, limit: float = 20.0) -> None:
        if not limit > 4 * INTERVAL:
            raise GenesisException(f"heartbeat: limit={limit!r}; give more than {4 * INTERVAL:g} seconds.")
        self._rank, self._limit = rank, limit
        self._phase = ("start", 0, time.monotonic(), max(limit, 60.0))  # name, number, since when, limit
        self._state, self._error = RUNNING, ""
        self._number = 0
        self._ending = False
        self._over = threading.Event()  # this rank's part is over, and so is its thread
        self._seen: dict[int, tuple[Sign | None, float]] = {}
        self._reader, self._writer = -1, -1  # a pipe that wakes the thread: a new phase, or SIGTERM
        self._woken = False
        self._handles_termination = False

    def __call__(self, phase: str, limit: float | None = None) -> None:
        """Enter a phase, which may take `limit` seconds."""
        self._phase = (phase, self._phase[1] + 1, time.monotonic(), self._limit if limit is None else limit)
        if not self._woken:
            self._woken = True
            os.write(self._writer, NEWS)

    def __enter__(self) -> heartbeat:
        self._store = open_store(self._rank, "heartbeat", 60.0)
        now = time.monotonic()
        self._seen = dict.fromkeys(range(self._rank.world_size), (None, now))
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._watch_for_termination()
        self._tell()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is not None and not (isinstance(error, SystemExit) and not error.code):
            self._error = "".join(traceback.format_exception_only(error)).strip().replace("\n", " ")
            self._state = FAILED
            # What was begun on other threads and GPUs may keep this process from ending: end it then all the same.
            atexit.register(faulthandler.dump_traceback_later, 2 * GRACE, exit=True, file=STDERR)
            with suppress(Exception):  # a store that is gone must not hide the error
                self._tell_of_failure()
        else:
            self._state = DONE
            self._tell()
            while self._rank.rank == 0 and not self._others_done():
                time.sleep(INTERVAL / 5)
        self._over.set()
        os.write(self._writer, NEWS)
        self._thread.join(2 * INTERVAL)
        faulthandler.cancel_dump_traceback_later()
        self._stop_watching()

    def _tell_of_failure(self) -> None:
        self._tell()
        time.sleep(INTERVAL / 2)  # a killed rank's connections end before it does
        gone = _gone(self._neighbours())  # whose end this rank's collectives fail of
        if gone is not None and not self._ending:
            self._say(gone.text)
        if self._rank.rank == 0:
            verdict = self._judge()
            if verdict is not None and gone is None:
                self._say(verdict.text)
            time.sleep(3 * INTERVAL)  # the others read it while the store is there

    # the thread -------------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        spacing = SPACING * max(1.0, self._rank.world_size / 64)
        looked = 0.0
        while not self._over.is_set():
            readable, _, _ = select.select([self._reader], [], [], INTERVAL)
            if readable and signal.SIGTERM in os.read(self._reader, 64):
                self._explain_termination()
            self._woken = False
            try:
                self._tell()
                verdict = None
                if time.monotonic() - looked >= INTERVAL:
                    looked = time.monotonic()
                    if (
                        self._state == RUNNING
                    ):  # where native code holds the interpreter, no thread of Python can end it
                        faulthandler.dump_traceback_later(self._limit + 2 * GRACE, exit=True, file=STDERR)
                    verdict = self._judge() if self._rank.rank == 0 else self._read_verdict()
            except Exception as error:  # the store is gone, and with it the process that keeps it
                keeper = "torchrun's agent" if self._rank.agent_store else "rank 0"
                text = f"the job's store is gone ({str(error).splitlines()[0]}): {keeper}, which keeps it, has ended"
                verdict = Verdict(text, ())
            if verdict is not None and self._state != FAILED and not self._over.is_set():
                self._end(verdict)
            self._over.wait(spacing)

    def _tell(self) -> None:
        phase, beats, since, limit = self._phase
        self._number += 1
        sign = Sign(
            rank=self._rank.rank,
            host=self._rank.host,
            pid=os.getpid(),
            parent=os.getppid(),
            state=self._state,
            phase=phase,
            beats=beats,
            age=time.monotonic() - since,
            limit=limit,
            number=self._number,
            error=self._error,
        )
        self._store.set(f"sign/{sign.rank}", json.dumps(asdict(sign)))

    def _look(self, ranks: range) -> dict[int, Sign | None]:
        """The last signs of these ranks, noting when each was news."""
        now = time.monotonic()
        for rank in ranks:
            key, (known, _) = f"sign/{rank}", self._seen[rank]
            if known is None and not self._store.check([key]):
                continue
            sign = Sign(**json.loads(self._store.get(key)))
            if known is None or sign.number != known.number:
                self._seen[rank] = (sign, now)
        return {rank: self._seen[rank][0] for rank in ranks}

    def _judge(self) -> Verdict | None:
        everyone = range(self._rank.world_size)
        signs, now = self._look(everyone), time.monotonic()
        silent = {rank: now - self._seen[rank][1] for rank in everyone}
        verdict = judge(signs, silent, self._limit)
        if verdict is not None:
            self._store.set("verdict", json.dumps(asdict(verdict)))
        return verdict

    def _read_verdict(self) -> Verdict | None:
        if self._store.check(["verdict"]):
            told = json.loads(self._store.get("verdict"))
            return Verdict(told["text"], tuple(told["culprits"]))
        signs = self._look(range(1))  # the judge itself
        silent = time.monotonic() - self._seen[0][1]
        return judge(signs, {0: silent}, self._limit + 4 * INTERVAL) if silent > self._limit else None

    def _others_done(self) -> bool:
        return all(
            sign is not None and sign.state != RUNNING for sign in self._look(range(self._rank.world_size)).values()
        )

    # the end ----------------------------------------------------------------------------------------------------------

    def _end(self, verdict: Verdict) -> None:
        """Say why, and end this process: culprits at once, so that the launcher names them, the others after them."""
        self._ending = True
        culprit = self._rank.rank in verdict.culprits
        self._say(f"the job ends: {verdict.text}")
        if culprit:
            faulthandler.dump_traceback(all_threads=True, file=STDERR)
        if not culprit:
            time.sleep(GRACE)
            self._kill(verdict.culprits)
        self._exit(EXIT_CODE)

    def _explain_termination(self) -> None:
        """The launcher ends this rank: say of which other one that is the fault, if it is known."""
        signs = self._neighbours()
        verdict = _gone(signs) or judge(signs, dict.fromkeys(signs, 0.0), self._limit)
        self._say(
            f"ended by its launcher in phase '{self._phase[0]}'{f': {verdict.text}' if verdict is not None else ''}"
        )
        self._exit(TERMINATED)

    def _neighbours(self) -> dict[int, Sign | None]:
        """The last signs of the ranks on this machine."""
        first = self._rank.rank - self._rank.local_rank
        try:
            return self._look(range(first, min(first + self._rank.local_world_size, self._rank.world_size)))
        except Exception:  # the store has ended first
            return {}

    def _say(self, text: str) -> None:
        print(f"[pluriverse] {self._rank}: {text}", file=sys.stderr, flush=True)

    def _exit(self, code: int) -> None:
        sys.stdout.flush()
        os._exit(code)

    def _kill(self, culprits: tuple[int, ...]) -> None:
        """End culprits on this machine that cannot end themselves, if they are children of this rank's launcher."""
        for culprit in culprits:
            sign, _ = self._seen.get(culprit) or (None, 0.0)
            if sign is None and self._store.check([f"sign/{culprit}"]):
                sign = self._look(range(culprit, culprit + 1))[culprit]
            if sign is not None and sign.host == self._rank.host and sign.parent == os.getppid() == _parent(sign.pid):
                os.kill(sign.pid, signal.SIGKILL)

    def _watch_for_termination(self) -> None:
        """SIGTERM shows in the pipe, which the thread reads: the main thread may wait where Python runs no handler."""
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
            return
        former = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        if former != -1:  # somebody else's, such as asyncio's
            signal.set_wakeup_fd(former)
            return
        signal.signal(signal.SIGTERM, lambda *_: None)
        self._handles_termination = True

    def _stop_watching(self) -> None:
        self._woken = True  # no phase of later calls is written anywhere
        if self._handles_termination:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.close(self._reader)
        os.close(self._writer)


def _gone(signs: dict[int, Sign | None]) -> Verdict | None:
    """Which of these ranks of this machine have ended without saying so."""
    return dead(signs, {sign.pid for sign in signs.values() if sign is not None and not _is_running(sign.pid)})


def _parent(pid: int) -> int | None:
    """The process that started this one; None where it is gone or not known."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return None


def _is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False
