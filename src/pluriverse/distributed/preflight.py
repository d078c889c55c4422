"""The check before a job: every rank on a device of its own, able to reach the others, running the same thing."""

from __future__ import annotations

import os
import platform
import sys
from datetime import timedelta
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.distributed as dist

from pluriverse.cuda_driver import CudaDriver
from pluriverse.distributed.meeting import Meeting, Notes, open_store
from pluriverse.distributed.rank import Rank
from pluriverse.distributed.setup import repeated
from pluriverse.egl_devices import match_egl
from pluriverse.egl_driver import LibEgl
from pluriverse.errors import GenesisException
from pluriverse.logging import logger
from pluriverse.runtime import runtime

if TYPE_CHECKING:
    from pluriverse.scene import Scene

PACKAGES = ("pluriverse", "torch", "warp-lang", "mujoco", "numpy")
NCCL_HINT = (
    "Run again with NCCL_DEBUG=INFO to see which transport fails; NCCL_P2P_DISABLE=1, NCCL_SHM_DISABLE=1, "
    "NCCL_IB_DISABLE=1 or NCCL_ALGO=Ring avoid the ones that fail on some machines, NCCL_SOCKET_IFNAME names the "
    "network."
)


def preflight(rank: Rank, scene: Scene | None = None, *, share_device: bool = False, timeout: float = 60.0) -> str:
    """Check the job, before the scene is built, and log one line for each rank on rank 0.

    Checked are, on all ranks: that no two compute on one GPU; that no process holds a CUDA context on a GPU that it
    does not use; that versions and precision are equal, and the scene's model, if a scene is given; and that an
    all-reduce of one number arrives within the timeout, by the process group that is running, else by one made for this
    and ended after.

    Args:
        rank: what `setup` returned.
        scene: with all entities added; the worlds of all ranks must be the same.
        share_device: allow ranks to share a GPU.
        timeout: seconds for each of the two exchanges.

    Returns the line of this rank.

    Raises:
        GenesisException: on every rank, with the ranks that differ and how.
    """
    if not rank.device:
        raise GenesisException("preflight needs the rank that gs.distributed.setup() returned; it knows the device.")
    facts = _facts(rank, scene)

    def announce(notes: Notes) -> bool:  # on rank 0
        for note in notes:
            logger.info(line(note))
            for warning in note["warnings"]:
                logger.warning(f"rank {note['rank']}: {warning}")
        uuids = [note["uuid"] for note in notes]
        return None not in uuids and not repeated(uuids)

    own_gpus = Meeting(rank, "preflight", timeout).judge(facts, lambda notes: faults(notes, share_device), announce)
    _all_reduce(rank, own_gpus, timeout)
    return line(facts)


def line(note: dict[str, Any]) -> str:
    """One rank in words: `rank 3 of 8 on node1: cuda:3, NVIDIA H200 GPU-1f2e..., PCI 0000:0A:00.0, EGL 2`."""
    gpu = (
        f", {note['name']} {note['uuid']}, PCI {note['bus']}, {note['egl']}"
        if note["uuid"]
        else f", {note['cores']} cores"
    )
    return f"rank {note['rank']} of {note['world_size']} on {note['host']}: {note['device']}{gpu}"


def faults(notes: Notes, share_device: bool) -> str | None:
    """What is wrong with the ranks' facts, all of it in one text; None if nothing."""
    found = []
    shared = set() if share_device else set(repeated([note["uuid"] for note in notes if note["uuid"]]))
    for uuid in sorted(shared):
        ranks = ", ".join(str(note["rank"]) for note in notes if note["uuid"] == uuid)
        found.append(
            f"ranks {ranks} compute on one GPU, {uuid}. Start as many ranks as GPUs, or allow it: share_device=True"
        )
    on_cpu = [str(note["rank"]) for note in notes if not note["uuid"]]
    if 0 < len(on_cpu) < len(notes):
        found.append(
            f"rank {', '.join(on_cpu)} computes on the CPU, the others on GPUs. With setup(backend=gs.cuda) such a "
            "rank says why it has found none"
        )
    for note in notes:
        if note["strays"]:
            found.append(
                f"rank {note['rank']} holds a CUDA context, and with it memory, on {', '.join(note['strays'])} beside "
                f"its own {note['uuid']}. Call setup, or torch.cuda.set_device, before its first CUDA tensor"
            )
    for fact in ("world_size", "precision", "versions", "model"):
        groups: dict[str, list[int]] = {}
        for note in notes:
            groups.setdefault(str(note[fact]), []).append(note["rank"])
        if len(groups) > 1:
            listed = "; ".join(f"rank {', '.join(map(str, ranks))}: {value}" for value, ranks in groups.items())
            found.append(f"the ranks differ in {_MEANING[fact]}: {listed}")
    return "Preflight: " + ".\n  ".join(found) + "." if found else None


_MEANING = {
    "world_size": "what they take for the number of ranks",
    "precision": "the precision of gs.init",
    "versions": "versions",
    "model": "their scene's model (its sha256). Do all machines have the same files, and all ranks add the same "
    "entities",
}


def _facts(rank: Rank, scene: Scene | None) -> dict[str, Any]:
    gpu = rank.gpu
    strays = [other.uuid for other in CudaDriver().visible() if other.context and other.uuid != gpu.uuid] if gpu else []
    egl = match_egl(os.environ, LibEgl(), gpu, torch.device(rank.device).index)
    return {
        "rank": rank.rank,
        "world_size": rank.world_size,
        "host": rank.host,
        "device": rank.device,
        "uuid": gpu.uuid if gpu else None,
        "bus": gpu.bus if gpu else None,
        "name": gpu.name if gpu else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "egl": str(egl),
        "warnings": egl.warnings,
        "strays": strays,
        "precision": 8 * np.dtype(runtime.np_float).itemsize,
        "versions": package_versions(),
        "model": scene.model_digest() if scene is not None else None,
    }


def package_versions() -> dict[str, str]:
    """Of Python and of what the physics depends on."""
    return {"python": sys.version.split()[0], **{name: _version(name) for name in PACKAGES}}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # run from a checkout that is not installed
        return "from its sources"


def _all_reduce(rank: Rank, own_gpus: bool, timeout: float) -> None:
    """One number over all ranks, on the device and by the library that the job will use."""
    if rank.world_size == 1:
        return
    limit, mine = timedelta(seconds=timeout), not dist.is_initialized()
    nccl = own_gpus if mine else dist.get_backend() == "nccl"
    try:
        group = _own_group(rank, nccl, limit) if mine else dist.group.WORLD
        one = torch.ones(1, device=rank.device if nccl else "cpu")
        group.allreduce([one]).wait(limit)  # type: ignore[union-attr]
        total = int(one.item())
        if mine and nccl:
            group.shutdown()  # type: ignore[union-attr]
    except RuntimeError as error:
        library = "NCCL" if nccl else "gloo"
        raise GenesisException(
            f"Preflight: {rank} on {rank.host} could not add one number over all ranks by {library} within {timeout:g} "
            f"s: {error}. {NCCL_HINT if nccl else 'GLOO_SOCKET_IFNAME names the network interface to use.'}"
        ) from error
    if total != rank.world_size:
        raise GenesisException(
            f"Preflight: the sum of one from each of {rank.world_size} ranks came out as {total} on {rank}: the "
            f"communication between the GPUs corrupts data. {NCCL_HINT}"
        )


def _own_group(rank: Rank, nccl: bool, limit: timedelta) -> Any:
    """A process group beside torch's global one, so that the trainer can still start that."""
    store = open_store(rank, "group of preflight", limit.total_seconds())
    if nccl:
        return dist.ProcessGroupNCCL(store, rank.rank, rank.world_size, limit)  # type: ignore[arg-type]
    return dist.ProcessGroupGloo(store, rank.rank, rank.world_size, limit)
