"""Whether all ranks hold the same network: a check that costs little and finds drift early."""

from __future__ import annotations

import hashlib

import torch
from torch import nn

from pluriverse.distributed.meeting import Meeting, Notes
from pluriverse.distributed.rank import Rank


class EqualityCheck:
    """Compares all parameters and buffers between ranks, every N-th time it is called.

        equal = gs.distributed.EqualityCheck(rank, every=100)
        for _ in range(updates):
            ...
            equal(policy=policy, normalizer=normalizer)

    Data-parallel training keeps parameters equal; what it does not synchronise drifts: buffers, frozen networks,
    counters of normalisers, the statistics of BatchNorm (SyncBatchNorm's stay equal). The check brings the tensors to
    the host, and waits for the device.
    """

    def __init__(self, rank: Rank, every: int = 1, timeout: float = 60.0) -> None:
        self._meeting, self._every = Meeting(rank, "equality check", timeout), every
        self._calls = 0

    def __call__(self, **modules: nn.Module) -> None:
        """Compare, if it is time. All ranks call it equally often, with the same modules by name.

        Raises GenesisException on every rank, with the tensors that differ and the ranks that hold other bits.
        """
        self._calls += 1
        if self._calls % self._every == 0:
            digests = {name: digest for name, module in modules.items() for name, digest in _digests(name, module)}
            self._meeting.judge(digests, differences)


def _digests(name: str, module: nn.Module) -> list[tuple[str, str]]:
    """sha256 of every parameter and every buffer, those that are not saved too."""
    tensors = [*module.named_parameters(), *module.named_buffers()]
    return [(f"{name}.{key}", _digest(tensor)) for key, tensor in tensors]


def _digest(tensor: torch.Tensor) -> str:
    host = tensor.detach().cpu().contiguous()
    form = f"{host.dtype} {tuple(host.shape)}".encode()
    return hashlib.sha256(form + host.reshape(-1).view(torch.uint8).numpy().tobytes()).hexdigest()


def differences(notes: Notes) -> str | None:
    """Which tensors differ from rank 0's, and on which ranks; None if none does."""
    found: list[str] = []
    for rank, note in enumerate(notes):
        names = [name for name in {**notes[0], **note} if notes[0].get(name) != note.get(name)]
        if names:
            found.append(
                f"rank {rank} differs from rank 0 in {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}"
            )
    if not found:
        return None
    return (
        f"The ranks have drifted apart: {'; '.join(found)}. DistributedDataParallel synchronises what takes part in "
        "its forward pass; broadcast other networks and buffers from rank 0, tensor by tensor, and update them alike "
        "on all ranks."
    )
