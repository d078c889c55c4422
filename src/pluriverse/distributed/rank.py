"""Where a process stands in its job, as its launcher says in environment variables."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass

from pluriverse.devices import Gpu
from pluriverse.errors import GenesisException

TORCHRUN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""What torchrun tells each process it starts; Ray Train, submitit's helper and `launch` set the same names."""


@dataclass(frozen=True)
class Rank:
    """The facts of one process of a job. A process that nobody launched is rank 0 of 1.

    `read_rank` fills in what the launcher says, `setup` the device and the seed.
    """

    rank: int = 0  # in the whole job
    world_size: int = 1
    local_rank: int = 0  # on this machine
    local_world_size: int = 1
    host: str = ""
    master: tuple[str, int] | None = None  # address and port where the job's ranks meet
    agent_store: bool = False  # whether the launcher keeps a store there; else rank 0 does
    restarts: int = 0  # how often torchrun has started the job again
    device: str = ""  # torch's name of this rank's device; empty before `setup`
    gpu: Gpu | None = None  # the GPU behind it
    seed: int = 0  # of the job, the same on all ranks

    def envs(self, total: int) -> range:
        """The global numbers of this rank's environments, where the job has `total` of them.

        Every rank has a run of them; the first `total % world_size` ranks have one more. With these numbers the worlds
        of a job do not depend on how many ranks it has: `scene.build(n_envs=len(envs), first_env=envs.start)`.
        """
        if isinstance(total, bool) or not isinstance(total, int) or total < self.world_size:
            raise GenesisException(
                f"total={total!r} environments cannot be shared among {self.world_size} ranks: give an integer of at "
                "least one environment for each rank."
            )
        share, more = divmod(total, self.world_size)
        first = self.rank * share + min(self.rank, more)
        return range(first, first + share + (self.rank < more))

    def __str__(self) -> str:
        return f"rank {self.rank} of {self.world_size}"


def read_rank(environ: Mapping[str, str]) -> Rank:
    """The rank that the variables describe: torchrun's, else those of a SLURM step (`srun`), else rank 0 of 1.

    Raises GenesisException where a variable is missing, no number, or out of range.
    """
    if "RANK" in environ or "WORLD_SIZE" in environ:
        return _torchrun_rank(environ)
    # A shell or script inside a SLURM job has SLURM_PROCID=0 and is no rank; only srun's tasks have a step.
    if "SLURM_STEP_ID" in environ and "SLURM_STEP_NUM_TASKS" in environ and "SLURM_PROCID" in environ:
        return _slurm_rank(environ)
    return Rank(host=socket.gethostname())


def export(rank: Rank) -> dict[str, str]:
    """The variables, named as torchrun names them, that tell a trainer about this rank."""
    values = (rank.rank, rank.world_size, rank.local_rank, rank.local_world_size, *(rank.master or ()))
    return {name: str(value) for name, value in zip(TORCHRUN, values, strict=False)}


def _torchrun_rank(environ: Mapping[str, str]) -> Rank:
    rank, world_size = _number(environ, "RANK"), _number(environ, "WORLD_SIZE")
    local_rank = _number(environ, "LOCAL_RANK", default=rank)
    local_world_size = _number(environ, "LOCAL_WORLD_SIZE", default=max(world_size if local_rank == rank else 1, 1))
    _require_below(rank, world_size, "RANK", "WORLD_SIZE")
    _require_below(local_rank, local_world_size, "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    master = None
    if world_size > 1 or "MASTER_ADDR" in environ:
        if not environ.get("MASTER_ADDR") or "MASTER_PORT" not in environ:
            raise GenesisException(
                f"RANK={rank} of WORLD_SIZE={world_size} is set without MASTER_ADDR and MASTER_PORT, where the ranks "
                "meet. torchrun sets all of them; start the script with torchrun, or unset RANK and WORLD_SIZE."
            )
        master = (environ["MASTER_ADDR"], _number(environ, "MASTER_PORT"))
    return Rank(
        rank=rank,
        world_size=world_size,
        local_rank=local_rank,
        local_world_size=local_world_size,
        host=socket.gethostname(),
        master=master,
        agent_store=environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True",
        restarts=_number(environ, "TORCHELASTIC_RESTART_COUNT", default=0),
    )


def _slurm_rank(environ: Mapping[str, str]) -> Rank:
    rank, world_size = _number(environ, "SLURM_PROCID"), _number(environ, "SLURM_STEP_NUM_TASKS")
    local_rank = _number(environ, "SLURM_LOCALID", default=0)
    _require_below(rank, world_size, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS")
    node = _number(environ, "SLURM_NODEID", default=0)
    counts = _tasks_of_nodes(environ.get("SLURM_STEP_TASKS_PER_NODE", str(world_size)))
    _require_below(node, len(counts), "SLURM_NODEID", "nodes in SLURM_STEP_TASKS_PER_NODE")
    _require_below(local_rank, counts[node], "SLURM_LOCALID", "tasks of this node")
    port = 20000 + _number(environ, "SLURM_JOB_ID", default=0) % 20000  # the same on all nodes, another for other jobs
    host = environ.get("MASTER_ADDR") or _first_host(environ.get("SLURM_STEP_NODELIST", ""))
    return Rank(
        rank=rank,
        world_size=world_size,
        local_rank=local_rank,
        local_world_size=counts[node],
        host=socket.gethostname(),
        master=(host, _number(environ, "MASTER_PORT", default=port)) if world_size > 1 else None,
        restarts=_number(environ, "SLURM_RESTART_COUNT", default=0),
    )


def _number(environ: Mapping[str, str], name: str, default: int | None = None) -> int:
    text = environ.get(name, "").strip()
    if not text and default is not None:
        return default
    if not text.isdecimal():
        given = f"{name}={environ[name]!r} is no number" if name in environ else f"{name} is not set"
        raise GenesisException(
            f"{given}. A launcher sets {', '.join(TORCHRUN)} together; start the script with torchrun or srun, or "
            "unset them all."
        )
    return int(text)


def _require_below(value: int, bound: int, name: str, bound_name: str) -> None:
    if value >= bound:
        raise GenesisException(f"{name}={value} must be below {bound_name}={bound}: ranks count from 0.")


def _tasks_of_nodes(text: str) -> list[int]:
    """SLURM's `2(x3),1` as [2, 2, 2, 1]."""
    counts: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part.strip())
        if match is None:
            raise GenesisException(f"SLURM_STEP_TASKS_PER_NODE={text!r} is not of SLURM's form, such as '2(x3),1'.")
        counts += [int(match[1])] * int(match[2] or 1)
    return counts


def _first_host(nodes: str) -> str:
    """The first host of SLURM's `gpu[03-05,9],login1`: gpu03."""
    match = re.match(r"([^,\[]+)(?:\[(\d+)[^\]]*\]([^,]*))?", nodes.strip())
    if match is None:
        raise GenesisException(
            f"SLURM_STEP_NODELIST={nodes!r} names no host where the ranks could meet. Set MASTER_ADDR."
        )
    return match[1] + (match[2] or "") + (match[3] or "")


def own_rank() -> Rank:
    """The rank of this process."""
    return read_rank(os.environ)
