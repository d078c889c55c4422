"""Rollouts over a Ray cluster: actors with a scene each; a lost one is replaced, results come as they are done."""

from __future__ import annotations

import io
import os
import pickle
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch

from pluriverse.devices import MASK, PIN
from pluriverse.distributed.rank import Rank, export, own_rank
from pluriverse.distributed.worker import unpacked
from pluriverse.errors import GenesisException
from pluriverse.logging import logger

NO_MEETING = ("rollout-pool-actors-do-not-meet.invalid", 1)
"""In place of an address where ranks meet: a lost actor could not come back to a process group."""

BUILT, VALUE, FAULT = "built", "value", "fault"
"""What an actor answers: where it is; a result, as bytes; a headline and a traceback."""


class RolloutPool:
    """Workers on a Ray cluster, each in a process with a device and a scene of its own.

        class Walkers:
            def __init__(self, rank, n_envs):
                gs.distributed.setup(seed=1)
                self.scene = ...

            def rollout(self, task):
                ...
                return {"qpos": self.robot.get_qpos()}

        with gs.distributed.ray.RolloutPool(Walkers, n_workers=8, args=(1024,)) as pool:
            for number, result in pool.map(tasks):
                ...

    Uses the cluster that `ray.init` has connected to, else the one that RAY_ADDRESS names, else starts one on this
    machine. In a worker `gs.init` and `gs.distributed.setup` take the GPU that Ray gave it, or the CPU, and torch's
    generators get seeds that differ from worker to worker. Workers form no process group.

    Args:
        worker: called as worker(rank, *args) in each process, with a `Rank`. What it makes has a method
            `rollout(task)`.
        n_workers: as many as the cluster has room for work at a time, the others once there is.
        num_gpus: GPUs that each reserves, 0.5 for two on one; by default 1 where the cluster has any, else 0, which
            hides them all.
        num_cpus: CPU cores that each reserves.
        args: further arguments of the worker. Tensors arrive on the CPU, in tasks too.
        restarts: how often a task is done again after the loss of its worker's process or machine.

    Raises:
        GenesisException: ray is not installed; an argument is not as above.
    """

    def __init__(
        self,
        worker: Callable[..., Any],
        n_workers: int,
        *,
        num_gpus: float | None = None,
        num_cpus: float = 1,
        args: Sequence[Any] = (),
        restarts: int = 3,
    ) -> None:
        if not callable(worker):
            raise GenesisException(f"RolloutPool: worker={worker!r}; give a class with a method rollout(task).")
        if n_workers < 1 or restarts < 0:
            raise GenesisException(
                f"RolloutPool: n_workers={n_workers!r}, restarts={restarts!r}; give at least 1 and at least 0."
            )
        ray = _import_ray()
        try:
            self._call = _packed((worker, tuple(args)))
        except Exception as error:
            raise GenesisException(f"RolloutPool: worker or args cannot be sent to a process: {error}.") from error
        if not ray.is_initialized():
            ray.init()
        there = ray.cluster_resources()
        if num_gpus is None:
            num_gpus = 1 if there.get("GPU") else 0
        for name, each in (("GPU", num_gpus), ("CPU", num_cpus)):
            if each * n_workers > there.get(name, 0):
                logger.warning(
                    f"RolloutPool: {n_workers} workers need {each * n_workers:g} {name}s and the cluster has "
                    f"{there.get(name, 0):g}. Those without room wait."
                )
        self._make = ray.remote(_Actor).options(num_gpus=num_gpus, num_cpus=num_cpus)
        self._restarts = restarts
        self._seats = [_Seat(rank) for rank in range(n_workers)]
        for seat in self._seats:
            self._fill(seat)

    def map(self, tasks: Iterable[Any]) -> Iterator[tuple[int, Any]]:
        """Have worker.rollout(task) done for each task, in whichever worker is free.

        Work goes on while the results are iterated: each worker has at most one task done or under way. `dict(...)` of
        the iterator has all results by number.

        tasks: read one by one, as workers become free.

        Yields the number of a task and its result, whose tensors are on the CPU, in the order in which they are done.

        Raises GenesisException: a worker raised an exception (its traceback is in the message; it is not tried again);
        a task lost its worker more than `restarts` times, or a worker ended so often before it was built.
        """
        if not self._seats:
            raise GenesisException("RolloutPool: the pool is closed.")
        return self._map(tasks)

    def _map(self, tasks: Iterable[Any]) -> Iterator[tuple[int, Any]]:
        """Each round does the first that it can: hand out a task, yield a result, end, await an answer."""
        import ray

        source = _jobs(tasks)
        todo: deque[_Job] = deque()
        free: list[_Seat] = []
        waiting: dict[Any, _Waiting] = {seat.built: _Waiting(seat, seat.actor) for seat in self._seats}
        done: list[tuple[int, Any]] = []
        while True:
            if not todo:
                todo.extend(islice(source, 1))
            if todo and free:
                seat, job = free.pop(), todo.popleft()
                waiting[seat.actor.rollout.remote(job.task)] = _Waiting(seat, seat.actor, job)
                continue
            if done:
                yield done.pop()
                continue
            if not todo and not any(item.job for item in waiting.values()):
                return
            (reference,), _ = ray.wait(list(waiting), num_returns=1)
            item = waiting.pop(reference)
            try:
                kind, *content = ray.get(reference)
            except ray.exceptions.RayError as loss:
                self._replace(item, loss)
                waiting[item.seat.built] = _Waiting(item.seat, item.seat.actor)
                todo.extend([item.job] if item.job else [])
                continue
            if kind == FAULT:
                headline, text = content
                raise GenesisException(f"RolloutPool: {item} failed: {headline}.\n\n{text}")
            free.append(item.seat)
            if kind == BUILT:
                item.seat.place, item.seat.losses = content[0], 0
            elif item.job:
                done.append((item.job.number, unpacked(content[0])))

    def _fill(self, seat: _Seat) -> None:
        seat.actor = self._make.remote(seat.rank, len(self._seats))
        seat.built = seat.actor.build.remote(self._call)
        seat.place = ""

    def _replace(self, item: _Waiting, loss: Exception) -> None:
        """A new actor in the seat of a lost one. Raises GenesisException where that would not help."""
        import ray

        if not self._seats:
            raise GenesisException(f"RolloutPool: {item} was under way when the pool was closed.") from loss
        counter = item.job or item.seat
        counter.losses += 1
        if counter.losses > self._restarts:
            raise GenesisException(
                f"RolloutPool: {item} was lost {_times(counter.losses)}, and restarts={self._restarts}.\n\n{loss}"
            ) from loss
        if item.seat.actor is item.actor:  # not yet replaced by another map
            logger.warning(f"RolloutPool: {item} was lost, {_times(counter.losses)}; a new worker takes its place.")
            ray.kill(item.actor)  # where only the connection is lost, it would keep its GPU
            self._fill(item.seat)

    def close(self) -> None:
        """End all workers at once."""
        import ray

        seats, self._seats = self._seats, []
        if ray.is_initialized():
            for seat in seats:
                ray.kill(seat.actor)

    def __enter__(self) -> RolloutPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(eq=False)
class _Seat:
    """A place in the pool, and the actor that has it now."""

    rank: int
    actor: Any = None
    built: Any = None  # Ray's reference to what `build` answers
    place: str = ""  # process and machine, once it is built
    losses: int = 0  # of actors in a row before they were built


@dataclass
class _Job:
    number: int
    task: bytes
    losses: int = 0


@dataclass
class _Waiting:
    """What an answer is awaited of: a task, or the worker's building."""

    seat: _Seat
    actor: Any
    job: _Job | None = None

    def __str__(self) -> str:
        where = f" ({self.seat.place})" if self.seat.place else ""
        return f"{f'task {self.job.number}' if self.job else 'building'} in worker {self.seat.rank}{where}"


class _Actor:
    """The process of a worker, as Ray runs it."""

    def __init__(self, rank: int, n_workers: int) -> None:
        import ray

        self.rank = rank
        for name in [name for name in os.environ if name == PIN or name.startswith("TORCHELASTIC_")]:
            del os.environ[name]
        os.environ.update(export(Rank(rank, n_workers, master=NO_MEETING)))
        # Ray sets it too, but not for an actor without GPUs, nor with RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES.
        os.environ[MASK] = ",".join(ray.get_runtime_context().get_accelerator_ids().get("GPU", []))

    def __repr__(self) -> str:
        """What Ray puts before the lines that this process prints."""
        return f"worker {self.rank}"

    def build(self, call: bytes) -> tuple[str, ...]:
        try:
            worker, args = unpacked(call)
            rank = own_rank()
            self.worker = worker(rank, *args)
            return BUILT, f"pid {os.getpid()} on {rank.host}"
        except BaseException as error:
            return _fault(error)

    def rollout(self, task: bytes) -> tuple[str, Any] | tuple[str, ...]:
        try:
            return VALUE, _packed(self.worker.rollout(*unpacked(task)))
        except BaseException as error:
            return _fault(error)


def _fault(error: BaseException) -> tuple[str, ...]:
    return FAULT, traceback.format_exception_only(error)[-1].strip().splitlines()[0], traceback.format_exc()


def _jobs(tasks: Iterable[Any]) -> Iterator[_Job]:
    for number, task in enumerate(tasks):
        try:
            data = _packed((task,))
        except Exception as error:
            raise GenesisException(f"RolloutPool: task {number} cannot be sent to a process: {error}.") from error
        yield _Job(number, data)


def _packed(value: Any) -> bytes:
    """Any value as bytes, with Ray's pickler: it takes classes of a script or a notebook along."""
    from ray import cloudpickle

    file = io.BytesIO()
    torch.save(value, file, pickle_module=cloudpickle, pickle_protocol=pickle.DEFAULT_PROTOCOL)
    return file.getvalue()


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _import_ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise GenesisException("RolloutPool needs Ray: pip install 'pluriverse[ray]'.") from error
    return ray
