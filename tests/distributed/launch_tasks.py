"""What the tests of `launch` run in other processes."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from pluriverse.distributed.rank import Rank

NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS")
AT_IMPORT = {name: os.environ.get(name) for name in (*NAMES, "QD_VISIBLE_DEVICE", "TORCHELASTIC_RESTART_COUNT")}
CORES_AT_IMPORT = sorted(os.sched_getaffinity(0))


def facts(rank: Rank, offset: int) -> dict[str, Any]:
    """Where this process is, and the sum over ranks of rank + offset, by a process group."""
    dist.init_process_group("gloo")
    total = torch.tensor([rank.rank + offset])
    dist.all_reduce(total)
    dist.destroy_process_group()
    return {
        "rank": rank,
        "variables": AT_IMPORT,
        "cores": CORES_AT_IMPORT,
        "threads": torch.get_num_threads(),
        "pid": os.getpid(),
        "total": total,
    }


def square(rank: Rank, task: int, folder: str, count: int) -> tuple[int, int]:
    """The square and who found it; the first task takes until the others of so many are done."""
    deadline = time.monotonic() + 60
    while task == 0 and len(list(Path(folder).iterdir())) < count - 1 and time.monotonic() < deadline:
        time.sleep(0.02)
    Path(folder, str(task)).touch()
    return task * task, rank.rank


def note_pids(rank: Rank, folder: str) -> None:
    """Write this process's id and that of a fork of it, which would live on for minutes and holds all its pipes."""
    fork = os.fork()
    if fork == 0:
        time.sleep(300)
        os._exit(0)
    partial = Path(folder, f".{rank.rank}")
    partial.write_text(f"{os.getpid()} {fork}")
    partial.rename(Path(folder, f"pids{rank.rank}"))


def noted_pids(folder: Path, ranks: int) -> list[int]:
    """The ids that so many ranks noted, once all have."""
    deadline = time.monotonic() + 60
    while len(files := list(folder.glob("pids*"))) < ranks:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return [int(pid) for file in files for pid in file.read_text().split()]


def fail_on_one(rank: Rank, task: str, folder: str) -> None:
    """The last rank fails as the task says, once all ranks are there; the others would work on for minutes.

    With "kill", SIGTERM ends none of them.
    """
    if task == "kill":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    note_pids(rank, folder)
    noted_pids(Path(folder), rank.world_size)
    if rank.rank < rank.world_size - 1:
        time.sleep(300)
    if task == "raise":
        raise ValueError("a wrong number\nand more")
    os.kill(os.getpid(), signal.SIGKILL)


def odd_ends(rank: Rank, task: str) -> Any:
    """Results that are none, and ends that are no faults."""
    if task == "unpicklable":
        return threading.Lock()
    if task.startswith("exit"):
        sys.exit(int(task[-1]))
    return os._exit(0) if task == "_exit" else task
