"""Which device this process computes on: pure rules over environment variables and a list of GPUs.

Three things can name a GPU: `CUDA_VISIBLE_DEVICES` (the mask, read by the CUDA driver), `QD_VISIBLE_DEVICE` (one
physical device) and `gs.init(device=...)`. The rules here are what docs/devices.md tells users; asking the hardware is
`cuda_driver`'s work, behind the protocol `Driver`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import torch

from pluriverse.constants import Backend
from pluriverse.errors import GenesisException
from pluriverse.typing import DeviceLike

MASK = "CUDA_VISIBLE_DEVICES"
PIN = "QD_VISIBLE_DEVICE"
UUID_PREFIXES = ("GPU-", "MIG-")


@dataclass(frozen=True)
class Gpu:
    """One GPU. `context` tells whether this process already holds a CUDA context on it."""

    uuid: str
    name: str = ""
    bus: str = ""
    context: bool = False


class Unavailable(Exception):
    """No GPU can be used in this process; the message says why."""


class Driver(Protocol):
    """What the rules ask of CUDA. No method may create a CUDA context, except `use`."""

    def started(self) -> bool:
        """Whether the CUDA driver has read the mask in this process; it does so once."""

    def visible(self) -> tuple[Gpu, ...]:
        """The GPUs of this process in CUDA's order; starts the driver. Raises `Unavailable` where there is none."""

    def physical(self) -> tuple[Gpu, ...] | None:
        """The GPUs of the machine in CUDA's order without a mask; None where that is not known for certain."""

    def current(self) -> int | None:
        """torch's current CUDA device, None while torch has not started CUDA."""

    def use(self, index: int) -> None:
        """Make `cuda:index` torch's current device."""


@dataclass(frozen=True)
class Choice:
    """The outcome: torch's device, the GPU behind it (None on the CPU), and what to tell the user."""

    device: torch.device
    gpu: Gpu | None = None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def resolve(
    environ: Mapping[str, str],
    driver: Driver,
    backend: Backend | None = None,
    device: DeviceLike | None = None,
    debug: bool = False,
) -> Choice:
    """Choose the device.

    Args:
        environ: the environment variables.
        driver: answers for the hardware.
        backend: what the user asked for; None is the best there is, and the CPU with `debug`.
        device: "cpu", "cuda" or "cuda:k", k counting the devices this process sees.

    Raises:
        GenesisException: a backend or device that was asked for by name is not there; a variable is malformed, out of
            range, contradicts another, or was set too late.
    """
    wanted = _parse_device(device)
    if backend in (Backend.amdgpu, Backend.metal):
        raise GenesisException(
            f"Backend {backend} not available on this machine: this package computes on gs.cpu and gs.cuda only. "
            "Use gs.gpu to take a GPU where there is one and the CPU elsewhere."
        )
    if wanted is not None and backend is not None and (wanted.type == "cpu") != (backend is Backend.cpu):
        raise GenesisException(
            f"backend={backend} and device={str(wanted)!r} contradict each other. Give one of them, or two that agree."
        )
    if backend is Backend.cpu or (wanted is not None and wanted.type == "cpu"):
        return Choice(torch.device("cpu"))
    if backend is None and wanted is None and debug:
        return Choice(torch.device("cpu"))

    try:
        mask = parse_mask(environ.get(MASK))
        gpus = visible_gpus(environ, driver, mask)
    except Unavailable as reason:
        if backend is Backend.cuda or wanted is not None:
            raise GenesisException(
                f"Backend gs.cuda not available on this machine: {reason}. "
                "Use gs.gpu to take a GPU where there is one and the CPU elsewhere, or gs.cpu."
            ) from None
        note = f"No GPU is used, computing on the CPU: {reason}."
        return Choice(torch.device("cpu"), warnings=(note,) if backend is Backend.gpu else ())
    return _select(environ, driver, mask, gpus, wanted.index if wanted is not None else None)


def parse_mask(text: str | None) -> tuple[str, ...] | None:
    """The entries of `CUDA_VISIBLE_DEVICES`: integers, "GPU-<uuid>" and "MIG-<uuid>" as strings; None where unset.

    As in CUDA, an empty or negative entry ends the list. Spaces are dropped. Raises GenesisException on an entry of
    another form and on one that is there twice (CUDA would see no device at all).
    """
    if text is None:
        return None
    entries: list[str] = []
    for raw in text.split(","):
        entry = raw.strip()
        if entry in ("", "NoDevFiles") or re.fullmatch(r"-\d+", entry):  # NoDevFiles: how SLURM says "none"
            break
        if entry.isdecimal():
            entry = str(int(entry))
        elif not entry.startswith(UUID_PREFIXES):
            raise GenesisException(
                f"{MASK}={text!r}: entry {raw!r} is no device id. An id is an integer, GPU-<uuid> or MIG-<uuid>; "
                "several are separated by commas."
            )
        if entry in entries:
            raise GenesisException(
                f"{MASK}={text!r} names device {entry} twice; CUDA then shows no device at all. Name each device once."
            )
        entries.append(entry)
    return tuple(entries)


def _parse_device(device: DeviceLike | None) -> torch.device | None:
    if device is None:
        return None
    try:
        parsed = torch.device(device)
    except (RuntimeError, TypeError):
        parsed = None
    if parsed is None or parsed.type not in ("cpu", "cuda"):
        raise GenesisException(f"device={device!r} is no device of this package. Give 'cpu', 'cuda' or 'cuda:<index>'.")
    return parsed


def visible_gpus(environ: Mapping[str, str], driver: Driver, mask: tuple[str, ...] | None) -> tuple[Gpu, ...]:
    """The GPUs of this process, checked to be those that the mask names now."""
    if mask == ():
        raise Unavailable(f"{MASK}={environ[MASK]!r} hides every GPU")
    if mask is None:
        return driver.visible()
    physical = driver.physical()
    if physical:
        _check_range(environ[MASK], mask, physical)
    early = driver.started()
    try:
        gpus = driver.visible()
    except Unavailable as reason:
        raise Unavailable(f"{reason} ({MASK}={environ[MASK]!r})") from None
    if early and not _agrees(mask, gpus, physical):
        raise GenesisException(
            f"{MASK}={environ[MASK]!r} was set too late: CUDA had already started in this process and shows "
            f"{listing(gpus)}. The first CUDA call of a process reads the variable once (torch.cuda.is_available() "
            "is one). Set it before that call, or leave it unset and choose with gs.init(device='cuda:<index>')."
        )
    if len(gpus) < len(mask):
        raise GenesisException(
            f"{MASK}={environ[MASK]!r} names {len(mask)} devices and CUDA accepts the first {len(gpus)} of them: "
            f"entry {mask[len(gpus)]!r} is no GPU of this machine. `nvidia-smi -L` lists those there are."
        )
    return gpus


def _check_range(text: str, mask: tuple[str, ...], physical: tuple[Gpu, ...]) -> None:
    for entry in mask:
        if entry.isdecimal() and int(entry) >= len(physical):
            raise GenesisException(
                f"{MASK}={text!r}: device {entry} is out of range; this machine has {listing(physical)}."
            )


def _agrees(mask: tuple[str, ...], gpus: tuple[Gpu, ...], physical: tuple[Gpu, ...] | None) -> bool:
    """Whether the GPUs that CUDA shows can be those of the mask; an integer is compared only where it is known."""
    if len(gpus) != len(mask):
        return False
    for entry, gpu in zip(mask, gpus, strict=True):
        if entry.startswith(UUID_PREFIXES):
            if not same_uuid(entry, gpu.uuid):
                return False
        elif physical and physical[int(entry)].uuid != gpu.uuid:
            return False
    return True


def same_uuid(entry: str, uuid: str) -> bool:
    """Whether a mask entry, which may be cut short, names this uuid.

    CUDA reports a MIG instance's uuid in the form of a GPU's, so the prefixes are not compared. The old form
    MIG-GPU-<uuid>/<gi>/<ci> names no uuid of the instance and is taken on trust.
    """
    return entry.startswith("MIG-GPU-") or uuid[4:].lower().startswith(entry[4:].lower())


def _select(
    environ: Mapping[str, str],
    driver: Driver,
    mask: tuple[str, ...] | None,
    gpus: tuple[Gpu, ...],
    wanted: int | None,
) -> Choice:
    """Choose by, in this order, `device=`, QD_VISIBLE_DEVICE, torch's current device, LOCAL_RANK; else the first."""
    notes: list[str] = []
    pinned = pinned_index(environ, mask, gpus, notes)
    current = driver.current() or None  # 0 is torch's default, not somebody's choice
    for index, name in ((wanted, f"device='cuda:{wanted}'"), (current, f"torch's current device cuda:{current}")):
        if index is not None and pinned is not None and index != pinned:
            raise GenesisException(
                f"{name} and {PIN}={environ[PIN]!r} (cuda:{pinned} in this process) contradict each other. Give one."
            )
    if wanted is not None and wanted >= len(gpus):
        raise GenesisException(
            f"device='cuda:{wanted}' is out of range: this process sees {listing(gpus)}"
            f"{f' ({MASK}={environ[MASK]!r})' if mask else ''}. The index counts the visible devices, from 0."
        )
    chosen = next((k for k in (wanted, pinned, current) if k is not None), None)
    if chosen is None:
        chosen = _rank_index(environ, gpus, notes)

    warnings: list[str] = []
    strays = [f"cuda:{k}" for k, gpu in enumerate(gpus) if gpu.context and k != chosen]
    if strays:
        message = (
            f"This process had opened a CUDA context on {', '.join(strays)} before gs.init chose cuda:{chosen}; it "
            "takes memory there. Call gs.init, or torch.cuda.set_device, before the first CUDA tensor."
        )
        if pinned is not None:
            raise GenesisException(f"{PIN}={environ[PIN]!r} comes too late. {message}")
        warnings.append(message)
    return Choice(torch.device("cuda", chosen), gpus[chosen], tuple(notes), tuple(warnings))


def pinned_index(
    environ: Mapping[str, str], mask: tuple[str, ...] | None, gpus: tuple[Gpu, ...], notes: list[str]
) -> int | None:
    """The index in this process of the physical device that QD_VISIBLE_DEVICE names; None where it names none."""
    text = environ.get(PIN, "").strip()
    if not text:
        return None
    if text.startswith(UUID_PREFIXES):
        matches = [k for k, gpu in enumerate(gpus) if same_uuid(text, gpu.uuid)]
        if len(matches) == 1:
            return matches[0]
        raise GenesisException(f"{PIN}={text!r} names no single one of the visible devices: {listing(gpus)}.")
    if not text.isdecimal():
        raise GenesisException(f"{PIN}={text!r} is no device id. Give one integer, GPU-<uuid> or MIG-<uuid>.")
    entry = str(int(text))
    if mask is None:
        if int(entry) >= len(gpus):
            raise GenesisException(f"{PIN}={text!r} is out of range: this machine has {listing(gpus)}.")
        return int(entry)
    if entry in mask:
        return mask.index(entry)
    if len(mask) == 1 and mask[0].startswith(UUID_PREFIXES):
        notes.append(f"{PIN}={text!r} is ignored: {MASK}={environ[MASK]!r} already names one device.")
        return None
    raise GenesisException(
        f"{PIN}={text!r} and {MASK}={environ[MASK]!r} contradict each other: {PIN} names a physical device, as "
        f"{MASK} does, and is no index into it; the mask does not hold {text}. Set both to one device, or unset {PIN}."
    )


def _rank_index(environ: Mapping[str, str], gpus: tuple[Gpu, ...], notes: list[str]) -> int:
    """The device of this rank of torchrun's node: its own where several are visible, else the one there is."""
    text = environ.get("LOCAL_RANK", "").strip()
    if not text:
        return 0
    ranks = environ.get("LOCAL_WORLD_SIZE", "").strip() or "1"
    if not text.isdecimal() or not ranks.isdecimal():
        raise GenesisException(
            f"LOCAL_RANK={text!r} and LOCAL_WORLD_SIZE={ranks!r} must be integers; torchrun sets both. Unset them "
            "outside torchrun."
        )
    rank, ranks_here = int(text), max(int(ranks), int(text) + 1)
    if len(gpus) == 1:
        if ranks_here > 1 and MASK not in environ:
            notes.append(f"The {ranks_here} ranks of this machine share its only GPU.")
        return 0
    if ranks_here > len(gpus):
        raise GenesisException(
            f"{ranks_here} ranks on this machine and {len(gpus)} visible GPUs. Start torchrun with "
            f"--nproc_per_node={len(gpus)}, or share GPUs by choice: gs.init(device=f'cuda:{{rank % {len(gpus)}}}')."
        )
    return rank


def listing(gpus: tuple[Gpu, ...]) -> str:
    """The GPUs in words: `2 GPUs (0: NVIDIA H200 GPU-1f2e..., 1: ...)`."""
    items = ", ".join(f"{k}: {gpu.name} {gpu.uuid}".replace("  ", " ") for k, gpu in enumerate(gpus))
    return f"{len(gpus)} GPU{'' if len(gpus) == 1 else 's'}{f' ({items})' if items else ''}"
