"""The first call of a rank: which process am I, which device is mine, how do I speak with the others."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from pluriverse.constants import Backend
from pluriverse.cuda_driver import CudaDriver
from pluriverse.devices import MASK, PIN
from pluriverse.distributed.generators import seed_generators
from pluriverse.distributed.meeting import Meeting, Notes, open_store
from pluriverse.distributed.rank import Rank, export, own_rank
from pluriverse.errors import GenesisException
from pluriverse.init_arguments import check_seed
from pluriverse.logging import logger
from pluriverse.runtime import runtime

GROUPS = (None, "auto", "nccl", "gloo")


def setup(
    process_group: str | None = None,
    *,
    seed: int = 0,
    share_device: bool = False,
    timeout: float = 300.0,
    **init_arguments: Any,
) -> Rank:
    """Start a session on this rank's device, under torchrun, srun, Ray Train, `gs.distributed.launch`, or alone.

    Calls `gs.init` (unless a session is running), which takes `cuda:LOCAL_RANK` where several GPUs are visible and
    `cuda:0` where the launcher shows this process one; see docs/devices.md.

    Args:
        process_group: None starts none, for trainers that do so themselves (rsl_rl, skrl); "auto" starts NCCL where
            each rank of this machine has a GPU of its own, else gloo.
        seed: of the job, the same on all ranks; a running session's own counts. `gs.SEED` and random streams are keyed
            by it; the generators of torch, numpy and `random` get seeds that differ from rank to rank.
        share_device: deal the visible GPUs out in turn where there are fewer than ranks.
        timeout: seconds that collectives of the process group may take.
        init_arguments: those of `gs.init`. Ranks above 0 log warnings only.

    Raises:
        GenesisException: the launcher's variables are incomplete or contradict each other; what `gs.init` raises; a
            process group is running already, or NCCL was asked for on ranks that share a GPU or have none.
    """
    if process_group not in GROUPS:
        raise GenesisException(f"process_group={process_group!r}; give one of {', '.join(map(repr, GROUPS))}.")
    seed = check_seed(seed) or 0
    rank = own_rank()
    if rank.world_size > 1:  # under SLURM they are missing: for gs.init, and for trainers
        for name, value in export(rank).items():
            os.environ.setdefault(name, value)
    if runtime.session is None:
        arguments = {"logging_level": "info" if rank.rank == 0 else "warning", **init_arguments}
        if share_device and "device" not in arguments and arguments.get("backend") is not Backend.cpu:
            arguments |= _shared_device(rank)
        runtime.init(seed=seed, **arguments)
    elif runtime.seed is None and rank.world_size > 1:
        raise GenesisException(
            "setup: the session that is running was given no seed, so that random streams would differ from rank to "
            "rank. Leave gs.init to setup, or give it the same seed on all ranks."
        )
    elif init_arguments:
        raise GenesisException(
            f"setup was given {', '.join(init_arguments)} for gs.init, and a session is running already. Give them to "
            "gs.init, or call setup first."
        )
    device = runtime.device
    seed = runtime.seed if runtime.seed is not None else seed
    seed_generators(seed, rank.rank)
    gpu = CudaDriver().visible()[device.index] if device.type == "cuda" else None
    rank = replace(rank, device=str(device), gpu=gpu, seed=seed)
    _tell_trainers(rank)
    if process_group is not None:
        _start_process_group(process_group, rank, timeout)
    return rank


def _shared_device(rank: Rank) -> dict[str, str]:
    """The device argument for ranks that outnumber the GPUs; none where each has one, or a variable names it."""
    count = torch.cuda.device_count() if not os.environ.get(PIN) else 0
    return {"device": f"cuda:{rank.local_rank % count}"} if 1 < count < rank.local_world_size else {}


def _tell_trainers(rank: Rank) -> None:
    """rsl_rl and skrl take `cuda:LOCAL_RANK`, which a process that sees only its own GPU does not have."""
    if rank.gpu is not None and rank.local_rank > 0 and rank.device == "cuda:0" and os.environ.get(MASK):
        os.environ["LOCAL_RANK"] = "0"
        logger.info(
            f"{rank} sees its own GPU only: LOCAL_RANK is 0 from here on, for trainers that take cuda:LOCAL_RANK."
        )


def _start_process_group(name: str, rank: Rank, timeout: float) -> None:
    if dist.is_initialized():
        raise GenesisException(
            f"process_group={name!r}: torch.distributed has a process group already. Leave it out where the trainer "
            "starts one, or call setup before it."
        )
    note = {"gpu": rank.gpu.uuid if rank.gpu else None}
    fault = Meeting(rank, "GPUs of all ranks", timeout).judge(note, answer=_against_nccl)
    if name == "nccl" and fault is not None:
        raise GenesisException(
            f"process_group='nccl': {fault}, and NCCL needs a GPU for each rank. Give 'gloo', or 'auto'."
        )
    backend = "gloo" if name == "gloo" or fault is not None else "nccl"
    dist.init_process_group(
        backend,
        store=open_store(rank, "process group", timeout),
        rank=rank.rank,
        world_size=rank.world_size,
        timeout=timedelta(seconds=timeout),
        device_id=torch.device(rank.device) if backend == "nccl" else None,
    )


def _against_nccl(notes: Notes) -> str | None:
    """Why NCCL cannot serve ranks with these GPUs; None if it can."""
    uuids = [note["gpu"] for note in notes]
    return "some ranks compute on the CPU" if None in uuids else "ranks share a GPU" if repeated(uuids) else None


def repeated(items: list[str]) -> list[str]:
    """What stands in the list more than once."""
    return [item for item, times in Counter(items).items() if times > 1]
