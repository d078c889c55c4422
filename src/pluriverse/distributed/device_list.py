"""Which devices the processes of `launch` get: pure rules over environment variables and a list of GPUs.

Ids count what the caller sees and never widen it: a process gets the entry of the caller's own CUDA_VISIBLE_DEVICES.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pluriverse.devices import (
    MASK,
    PIN,
    UUID_PREFIXES,
    Driver,
    Gpu,
    Unavailable,
    listing,
    parse_mask,
    pinned_index,
    same_uuid,
    visible_gpus,
)
from pluriverse.egl_devices import DEVICE_ID
from pluriverse.errors import GenesisException

THREADS = "OMP_NUM_THREADS"
FORMS = "Give 'all', 'cpu', 'cpu:4', or ids of visible GPUs such as '0,2', 'GPU-<uuid>' or 'MIG-<uuid>'"


@dataclass(frozen=True)
class Share:
    """What one process gets.

    `label` names the device in messages; `variables` hold in the environment, None for one that is not inherited;
    `cores` are the CPU cores that it runs on, None for those of the caller.
    """

    label: str
    variables: Mapping[str, str | None]
    cores: tuple[int, ...] | None = None


@dataclass(frozen=True)
class _Seen:
    """A GPU of the caller: its index in the caller's torch, the entry that names it in a mask, and itself."""

    index: int
    entry: str
    gpu: Gpu

    @property
    def label(self) -> str:
        return f"cuda:{self.index} = {self.gpu.uuid}"


def assign(
    devices: str | Sequence[Any],
    environ: Mapping[str, str],
    driver: Driver,
    cores: Collection[int],
    per_device: int = 1,
) -> tuple[Share, ...]:
    """One share for each process, in the order of `devices`.

    Args:
        devices: "all" (the visible GPUs, else the CPU), "cpu", "cpu:N" (N equal runs of the cores), or ids separated by
            commas: indices among the GPUs that the caller sees, or uuids of them, which may be cut short. Or a list of
            such ids, integers or texts.
        environ: the caller's environment variables. QD_VISIBLE_DEVICE narrows what the caller sees to one GPU.
        driver: answers for the hardware.
        cores: the CPU cores that the caller may use.
        per_device: processes for each device; on the CPU they get cores of their own, as with "cpu:N".

    Raises:
        GenesisException: an id is malformed, not visible, ambiguous or named twice; CPU and GPUs are mixed; a GPU was
            named and none is usable; the caller's own variables are at fault.
    """
    given = f"devices={devices!r}"
    entries = _entries(devices, given)
    if isinstance(per_device, bool) or not isinstance(per_device, int) or per_device < 1:
        raise GenesisException(f"per_device={per_device!r}: give the number of processes for each device, at least 1.")
    on_cpu = [entry == "cpu" or entry.startswith("cpu:") for entry in entries]
    if len(entries) > 1 and ("all" in entries or any(on_cpu)):
        raise GenesisException(
            f"{given} names {', '.join(entries)} together; 'all' and the CPU stand alone. Launch twice for GPUs and "
            "the CPU; 'cpu:4' starts four processes on the CPU."
        )
    if on_cpu[0]:
        return _cpu_shares(_cpu_count(entries[0], given) * per_device, environ, cores)
    try:
        gpus = _seen(environ, driver)
    except Unavailable as reason:
        if entries == ["all"]:
            return _cpu_shares(per_device, environ, cores, f" (no GPU: {reason})")
        raise GenesisException(f"{given}: no GPU is usable here: {reason}. Give 'cpu' or 'cpu:4'.") from None
    chosen = gpus if entries == ["all"] else [_find(entry, gpus, environ, given) for entry in entries]
    for k, seen in enumerate(chosen):
        if seen in chosen[:k]:
            raise GenesisException(
                f"{given} names {seen.label} twice. Name each device once; per_device=2 (--per-device 2) starts two "
                "processes on each."
            )
    threads = _threads(environ, len(cores) // (len(chosen) * per_device))
    return tuple(Share(seen.label, _variables(seen.entry, threads)) for seen in chosen for _ in range(per_device))


def _entries(devices: str | Sequence[Any], given: str) -> list[str]:
    parts = devices.split(",") if isinstance(devices, str) else devices
    if not isinstance(parts, Sequence) or len(parts) == 0:
        raise GenesisException(f"{given} is no list of devices. {FORMS}.")
    entries = [str(part).strip() for part in parts]
    for entry in entries:
        number = entry.isascii() and entry.isdecimal()
        if not (number or entry in ("all", "cpu") or entry.startswith(("cpu:", *UUID_PREFIXES))):
            raise GenesisException(f"{given}: {entry!r} is no device id. {FORMS}.")
    return entries


def _seen(environ: Mapping[str, str], driver: Driver) -> list[_Seen]:
    """The GPUs that the caller sees. Raises Unavailable where there is none."""
    mask = parse_mask(environ.get(MASK))
    early = driver.started()
    gpus = visible_gpus(environ, driver, mask)
    physical = driver.physical() if early and mask is None else None
    if physical and [gpu.uuid for gpu in physical] != [gpu.uuid for gpu in gpus]:
        raise GenesisException(
            f"{MASK} is not set now and was when CUDA started in this process, which sees {listing(gpus)} of the "
            f"{len(physical)} GPUs of this machine. A process started now would see them all: leave {MASK} as it was."
        )
    seen = [_Seen(k, mask[k] if mask is not None else str(k), gpu) for k, gpu in enumerate(gpus)]
    pinned = pinned_index(environ, mask, gpus, notes=[])
    return seen if pinned is None else [seen[pinned]]


def _find(entry: str, gpus: list[_Seen], environ: Mapping[str, str], given: str) -> _Seen:
    """The one visible GPU that an id names."""
    if entry.isdecimal():
        found = gpus[int(entry) : int(entry) + 1]
    else:
        found = [seen for seen in gpus if _names(entry, seen)]
    if len(found) == 1:
        return found[0]
    variables = ", ".join(f"{name}={environ[name]!r}" for name in (MASK, PIN) if environ.get(name))
    raise GenesisException(
        f"{given}: {entry!r} names {len(found) or 'none'} of the GPUs that this process sees: "
        f"{listing(tuple(seen.gpu for seen in gpus))}{f' ({variables})' if variables else ''}. An id is an index "
        "into that list, or the uuid of one of them."
    )


def _names(entry: str, seen: _Seen) -> bool:
    """Whether a uuid, which may be cut short, names this GPU; an entry of the old form MIG-GPU-... by its text only."""
    if seen.entry.lower().startswith(entry.lower()):
        return True
    return not entry.startswith("MIG-GPU-") and same_uuid(entry, seen.gpu.uuid)


def _cpu_count(entry: str, given: str) -> int:
    count = entry.removeprefix("cpu").removeprefix(":") if entry != "cpu" else "1"
    if not (count.isascii() and count.isdecimal()) or int(count) < 1:
        raise GenesisException(f"{given}: {entry!r} must give a number of processes, such as 'cpu:4'.")
    return int(count)


def _cpu_shares(count: int, environ: Mapping[str, str], cores: Collection[int], why: str = "") -> tuple[Share, ...]:
    """Runs of the cores, as equal as possible; where there are more shares than cores, one core each in turn."""
    order = sorted(cores)
    size, more = divmod(len(order), count)
    shares = []
    for k in range(count):
        first = k * size + min(k, more)
        own = tuple(order[first : first + size + (k < more)]) if size else (order[k % len(order)],)
        label = f"cpu, {len(own)} core{'' if len(own) == 1 else 's'}{why}"
        shares.append(Share(label, _variables("", _threads(environ, len(own))), own))
    return tuple(shares)


def _variables(mask: str, threads: str) -> dict[str, str | None]:
    """A device's environment. What pinned the caller's device names none in a process that sees another mask."""
    return {MASK: mask, PIN: None, DEVICE_ID: None, THREADS: threads}


def _threads(environ: Mapping[str, str], count: int) -> str:
    """At most the caller's own number of threads."""
    own = environ.get(THREADS, "").strip()
    return str(max(1, min(count, int(own)))) if own.isdecimal() else own or str(max(1, count))
