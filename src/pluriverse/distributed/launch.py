"""`launch`: one process for each device, for independent work; results are gathered, and a fault ends all of it."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any

import torch.distributed as dist

from pluriverse.cuda_driver import CudaDriver
from pluriverse.distributed.device_list import Share, assign
from pluriverse.distributed.rank import Rank, export
from pluriverse.distributed.worker import FAULT, READY, packed, surroundings, unpacked, work
from pluriverse.errors import GenesisException
from pluriverse.logging import logger

LOOPBACK = "127.0.0.1"
END_SECONDS = 3.0
"""How long a process may take to end when told to; then it is killed."""
REPORT_SECONDS = 2.0
"""Progress is logged at most so often, and at the end."""

_starting = threading.Lock()  # held while the environment and the affinity of this process are those of a child


def launch(
    fn: Callable[..., Any],
    devices: str | Sequence[Any] = "all",
    tasks: Iterable[Any] | None = None,
    *,
    per_device: int = 1,
    args: Sequence[Any] = (),
    progress: bool = True,
) -> list[Any]:
    """Run a function in one process for each device, and return the results.

    Each process is started afresh (`spawn`) and sees its own device only, on the CPU its own share of the cores.
    torchrun's variables tell it its rank: a plain `gs.init` takes its device, `gs.distributed.setup` may form a process
    group.

    Args:
        fn: defined at the top level of a module or script, with `launch` called under `if __name__ == "__main__":`.
            Without tasks it is called once in each process, as fn(rank, *args), where `rank` is a `Rank`.
        devices: "all" (the visible GPUs, else the CPU), ids among the GPUs that this process sees such as "0,2",
            "GPU-<uuid>", "MIG-<uuid>", a list of such ids, "cpu", or "cpu:4" for four processes that share the cores.
        tasks: fn(rank, task, *args) is called for each of them, in whichever process is free.
        per_device: processes on each device.
        args: further arguments of fn. Tensors arrive on the CPU, in tasks too.
        progress: log what is done.

    Returns:
        The results in the order of ranks, or of tasks. Tensors are on the CPU.

    Raises:
        GenesisException: fn, args, a task or a result cannot be pickled; a device cannot be used; a process raised an
            exception (its traceback is in the message), called sys.exit with an error, or was killed. All processes
            have ended then, with what they started, as they have at a return and after Ctrl-C. If this process is
            killed, they end within seconds.
    """
    call = _packed_call(fn, args)
    items = None if tasks is None else [_packed_task(task, number) for number, task in enumerate(tasks)]
    if items == []:
        return []
    with _starting:
        shares = assign(devices, os.environ, CudaDriver(), os.sched_getaffinity(0), per_device)
    job = _Job(call, shares if items is None else shares[: len(items)], items, progress)
    try:
        job.start()
        return job.run()
    finally:
        job.end()


@dataclass
class _Worker:
    """A process as its parent sees it."""

    rank: int
    share: Share
    process: multiprocessing.process.BaseProcess
    connection: Connection
    item: int | None = None  # the number of what it works on
    begun: bool = False
    told_to_end: bool = False
    failed: bool = False


class _Job:
    """The processes of one launch. A worker is sent an item when it is ready and after each result."""

    def __init__(self, call: bytes, shares: Sequence[Share], tasks: list[bytes] | None, progress: bool) -> None:
        self.call, self.shares, self.progress = call, shares, progress
        self.of_tasks = tasks is not None
        self.items = tasks if tasks is not None else [packed(())] * len(shares)
        self.next_item = 0
        self.results: list[Any] = [None] * len(self.items)
        self.done = 0
        self.workers: list[_Worker] = []
        self.faults: list[tuple[str, str]] = []  # headline and traceback
        self.store: dist.TCPStore | None = None
        self.begin = time.monotonic()
        self.last_report = -REPORT_SECONDS

    def start(self) -> None:
        resource_tracker.ensure_running()  # Python's own helper, lest it start in a child's surroundings
        self.store = _open_store()
        for rank, share in enumerate(self.shares):
            self._start_worker(rank, share, self.store.port)
        if self.progress:
            places = ", ".join(f"rank {worker.rank} on {worker.share.label}" for worker in self.workers)
            _say(f"launch: {self._processes()}: {places}")

    def _start_worker(self, rank: int, share: Share, port: int) -> None:
        count = len(self.shares)
        place = Rank(rank, count, rank, count, master=(LOOPBACK, port))
        variables: dict[str, str | None] = {name: None for name in os.environ if name.startswith("TORCHELASTIC_")}
        variables |= {**export(place), "TORCHELASTIC_USE_AGENT_STORE": "True", **share.variables}
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=work, args=(theirs,), name=str(place))
        self.workers.append(_Worker(rank, share, process, ours))
        with theirs, _starting, surroundings(variables, share.cores):
            process.start()

    def run(self) -> list[Any]:
        """Hear the workers until all have ended. Raises GenesisException at a fault, with those of the same moment."""
        running = list(self.workers)
        while running:
            handles = [w.process.sentinel for w in running] + [w.connection for w in running if not w.connection.closed]
            # A sentinel does not tell of a worker's death while a process forked from it lives; the exit code does.
            ready = wait(handles, timeout=0.2 if self.faults else 1.0)
            if self.faults and not ready:
                break
            for worker in list(running):
                ended = worker.process.exitcode is not None  # asked first: what it said before its end is in the pipe
                if not worker.connection.closed and worker.connection.poll():
                    self._hear(worker)
                elif ended:
                    running.remove(worker)
                    self._note_end(worker)
        if self.faults:
            raise GenesisException(self._fault_message())
        return self.results

    def _hear(self, worker: _Worker) -> None:
        try:
            kind, *content = worker.connection.recv()
            if kind == READY:
                worker.begun = True
                worker.connection.send_bytes(self.call)
            elif kind == FAULT:
                headline, text = content
                self._fail(worker, f"{self._name(worker)} failed{self._task(worker)}: {headline}", text)
            else:
                self._keep_result(worker, content[0])
            if not self.faults:
                self._hand_out(worker)
        except (EOFError, OSError):  # it has ended or is about to
            worker.connection.close()

    def _fail(self, worker: _Worker, headline: str, text: str) -> None:
        worker.failed = True
        self.faults.append((headline, text))

    def _keep_result(self, worker: _Worker, value: bytes) -> None:
        assert worker.item is not None
        try:
            self.results[worker.item] = unpacked(value)
        except Exception as error:
            headline = f"the result of {self._name(worker)}{self._task(worker)} cannot be read here: {error!r}"
            self._fail(worker, headline, traceback.format_exc())
            return
        self.done += 1
        seconds = time.monotonic() - self.begin
        if self.progress and (self.done == len(self.items) or seconds - self.last_report >= REPORT_SECONDS):
            self.last_report = seconds
            what = f"tasks done, {self._processes()}" if self.of_tasks else "ranks done"
            _say(f"launch: {self.done} of {len(self.items)} {what}, {seconds:.0f} s")

    def _hand_out(self, worker: _Worker) -> None:
        if not self.of_tasks:
            worker.item = worker.rank if worker.item is None else None
        elif self.next_item < len(self.items):
            worker.item = self.next_item
            self.next_item += 1
        else:
            worker.item = None
        worker.told_to_end = worker.item is None
        worker.connection.send_bytes(b"" if worker.item is None else self.items[worker.item])

    def _note_end(self, worker: _Worker) -> None:
        code = worker.process.exitcode
        if worker.failed or (worker.told_to_end and code == 0):
            return
        headline = f"{self._name(worker)} {_ending(code)}{self._task(worker)}"
        if worker.told_to_end:
            logger.warning(f"launch: {headline}, after its work was done. Its results are kept.")
            return
        if not worker.begun:
            headline += (
                " before it could begin; what it printed says why. A script calls launch under "
                "`if __name__ == '__main__':`, since every process imports it"
            )
        elif code == -signal.SIGKILL:
            headline += ". The system does that where memory runs out"
        self.faults.insert(0, (headline, ""))  # a death is the cause of what other ranks say of it

    def _fault_message(self) -> str:
        (headline, text), *others = self.faults
        lines = [f"launch: {headline}.", *(f"Then {other}." for other, _ in others)]
        if len(self.workers) > 1:
            lines.append("The other processes were ended.")
        return "\n".join(lines) + (f"\n\n{text}" if text else "")

    def _name(self, worker: _Worker) -> str:
        return f"rank {worker.rank} of {len(self.workers)} ({worker.share.label})"

    def _task(self, worker: _Worker) -> str:
        return f" in task {worker.item}" if self.of_tasks and worker.item is not None else ""

    def _processes(self) -> str:
        return f"{len(self.workers)} process{'' if len(self.workers) == 1 else 'es'}"

    def end(self) -> None:
        """End every process and those that it started: a worker leads a process group."""
        started = [worker for worker in self.workers if worker.process.pid is not None]
        for worker in started:
            worker.process.terminate()
        deadline = time.monotonic() + END_SECONDS
        while time.monotonic() < deadline and any(worker.process.exitcode is None for worker in started):
            time.sleep(0.02)
        for worker in started:
            _kill_group(worker.process.pid)
            worker.process.kill()
            worker.process.join()
        for worker in self.workers:
            worker.connection.close()
        self.store = None


def _kill_group(leader: int | None) -> None:
    if leader:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)


def _open_store() -> dist.TCPStore:
    """The store where the ranks meet, on loopback only: torch's own choice is to listen on all of the network."""
    listener = socket.create_server((LOOPBACK, 0))
    port = listener.getsockname()[1]
    return dist.TCPStore(  # the libuv server cannot take over a socket in every version of torch that we allow
        LOOPBACK, port, is_master=True, wait_for_workers=False, master_listen_fd=listener.detach(), use_libuv=False
    )


def _packed_call(fn: Callable[..., Any], args: Sequence[Any]) -> bytes:
    """The function and its arguments as bytes. Raises GenesisException where other processes could not have them."""
    rule = "Give a function defined at the top level of a module or script, no lambda and no nested function"
    if not callable(fn):
        raise GenesisException(f"launch: fn={fn!r} cannot be called. {rule}.")
    try:
        packed(fn)
    except Exception as error:
        raise GenesisException(f"launch: fn={fn!r} cannot be sent to other processes: {error}. {rule}.") from error
    main = sys.modules["__main__"]
    importable = getattr(main, "__spec__", None) is not None or os.path.isfile(getattr(main, "__file__", ""))
    if getattr(fn, "__module__", None) == "__main__" and not importable:
        raise GenesisException(
            f"launch: fn={fn!r} was defined at a prompt, from which other processes cannot import it. Put it into "
            "a file and import it from there."
        )
    try:
        return packed((fn, tuple(args)))
    except Exception as error:
        raise GenesisException(f"launch: args cannot be sent to other processes: {error}.") from error


def _packed_task(task: Any, number: int) -> bytes:
    try:
        return packed((task,))
    except Exception as error:
        raise GenesisException(f"launch: task {number} cannot be sent to another process: {error}.") from error


def _ending(code: int | None) -> str:
    if code is None or code >= 0:
        return f"ended with exit code {code}"
    names = {member.value: f" ({member.name})" for member in signal.Signals}
    return f"was killed by signal {-code}{names.get(-code, '')}"


def _say(text: str) -> None:
    """Log, or print on stderr where neither `gs.init` nor the program has set up logging."""
    if logger.logger.level == logging.NOTSET and not logger.logger.hasHandlers():
        print(f"[pluriverse] {text}", file=sys.stderr, flush=True)
    else:
        logger.info(text)
