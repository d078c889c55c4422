"""Which EGL device draws for a session: pure rules over EGL's list of devices and the GPU the session computes on.

EGL lists all GPUs in an order of its own, which `CUDA_VISIBLE_DEVICES` does not change: an index into one list is no
index into the other. Only a renderer that draws through EGL needs the match; the compute renderer runs on the session's
device and needs none. Asking libEGL is `egl_driver`'s work, behind the protocol `EglDriver`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from pluriverse.devices import MASK, Gpu, parse_mask
from pluriverse.errors import GenesisException

DEVICE_ID = "EGL_DEVICE_ID"


@dataclass(frozen=True)
class EglDevice:
    """One entry of EGL's list, with what its driver tells about it: "" and None where it tells nothing.

    `uuid` is written as CUDA's; `cuda` is EGL_CUDA_DEVICE_NV, the k of this process's `cuda:k`.
    """

    extensions: frozenset[str] = frozenset()
    uuid: str = ""
    bus: str = ""
    cuda: int | None = None
    name: str = ""

    @property
    def nvidia(self) -> bool:
        """Whether NVIDIA's driver is behind it. Mesa can list the same GPU once more, and cannot draw on it then."""
        return "EGL_NV_device_cuda" in self.extensions

    @property
    def software(self) -> bool:
        """Whether it draws on the CPU."""
        return "EGL_MESA_device_software" in self.extensions

    def __str__(self) -> str:
        return (
            " ".join(filter(None, (self.name, self.uuid, self.bus, "software" if self.software else ""))) or "unknown"
        )


class NoEgl(Exception):
    """EGL cannot be asked for devices here; the message says why."""


class EglDriver(Protocol):
    """What the rules ask of EGL. It may create neither an EGL display nor a CUDA context."""

    def devices(self, ask_cuda: bool) -> tuple[EglDevice, ...]:
        """EGL's list, in its order; with CUDA's numbers, whose query starts CUDA, only if asked. Raises `NoEgl`."""


@dataclass(frozen=True)
class EglChoice:
    """The index into EGL's list, None where no device fits; why; and what to warn the user of."""

    index: int | None
    reason: str
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"EGL {'none' if self.index is None else self.index}"


def match_egl(
    environ: Mapping[str, str], egl: EglDriver, gpu: Gpu | None = None, cuda_index: int | None = None
) -> EglChoice:
    """Choose the EGL device: what `EGL_DEVICE_ID` says, else the one that is the session's GPU, else none.

    Args:
        environ: the environment variables.
        egl: answers for libEGL.
        gpu: the GPU that the session computes on, as `devices.Choice` has it; None on the CPU.
        cuda_index: its index in this process, the k of `cuda:k`.

    Raises:
        GenesisException: EGL_DEVICE_ID is no index of EGL's list.
    """
    text = environ.get(DEVICE_ID, "").strip()
    try:
        devices, reason = egl.devices(ask_cuda=gpu is not None), "EGL lists no device"
    except NoEgl as error:
        devices, reason = (), str(error)
    if not devices:
        return EglChoice(None, reason, (f"{DEVICE_ID}={text!r} has no effect: {reason}.",) if text else ())
    if gpu is None:
        return EglChoice(_named_index(text, devices), f"{DEVICE_ID}={text!r}") if text else _on_cpu(devices)
    found = _on_gpu(environ, devices, gpu, cuda_index)
    return _overridden(text, devices, gpu, cuda_index, found) if text else found


def evidence(device: EglDevice, gpu: Gpu, cuda_index: int | None) -> dict[str, bool]:
    """What says that the EGL device is this GPU (True) and what says that it is not; without what is not known."""
    pairs = {
        "uuid": (device.uuid.lower(), gpu.uuid.lower()),
        "PCI bus": (plain_bus(device.bus), plain_bus(gpu.bus)),
        "CUDA number": (device.cuda, cuda_index),
    }
    unknown = ("", None)
    return {name: a == b for name, (a, b) in pairs.items() if a not in unknown and b not in unknown}


def is_gpu(device: EglDevice, gpu: Gpu, cuda_index: int | None) -> bool | None:
    """Whether the EGL device is this GPU; None where nothing is known of both.

    A uuid or a PCI bus that agrees is enough, since a MIG instance has its GPU's bus and a uuid of its own. The CUDA
    number decides only where neither is known.
    """
    known = evidence(device, gpu, cuda_index)
    number = known.pop("CUDA number", None)
    return False if device.software else any(known.values()) if known else number


def plain_bus(text: str) -> str:
    """A PCI address as Linux writes it: NVML's 00000000:0A:00.0 and CUDA's 0000:0A:00.0 as 0000:0a:00.0; else ""."""
    match = re.fullmatch(r"([0-9a-f]+):([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])", text.strip().lower())
    return f"{int(match[1], 16):04x}:{match[2]}" if match else ""


def listing(devices: tuple[EglDevice, ...]) -> str:
    """EGL's list in words: `2 devices (0: NVIDIA H200 GPU-1f2e... 0000:0a:00.0, 1: software)`."""
    items = ", ".join(f"{index}: {device}" for index, device in enumerate(devices))
    return f"{len(devices)} device{'' if len(devices) == 1 else 's'} ({items})"


def _on_cpu(devices: tuple[EglDevice, ...]) -> EglChoice:
    """A device that draws on the CPU, as the session computes there; else the first."""
    for index, device in enumerate(devices):
        if device.software:
            return EglChoice(index, "it draws on the CPU, where the session computes")
    return EglChoice(0, f"the session has no GPU and EGL no software device; it is the first: {devices[0]}")


def _on_gpu(environ: Mapping[str, str], devices: tuple[EglDevice, ...], gpu: Gpu, cuda_index: int | None) -> EglChoice:
    """The entry of NVIDIA's driver that is this GPU. No other GPU is ever taken in its place."""
    mask = dict(enumerate(parse_mask(environ.get(MASK)) or ()))
    words = _gpu_words(gpu, cuda_index)
    if "MIG" in gpu.name.split() or mask.get(cuda_index or 0, "").startswith("MIG-"):
        return EglChoice(None, f"{words} is a MIG instance, which draws no graphics")
    if all(device.software for device in devices):
        return EglChoice(None, f"EGL has software devices only: {listing(devices)}")
    if not any(device.nvidia for device in devices):
        advice = "A container gets it with NVIDIA_DRIVER_CAPABILITIES=all"
        return EglChoice(None, f"NVIDIA's EGL driver is not there: EGL has {listing(devices)}. {advice}")
    for index, device in enumerate(devices):
        if not (device.nvidia and is_gpu(device, gpu, cuda_index)):
            continue
        known = evidence(device, gpu, cuda_index)
        if list(known) == ["CUDA number"] and mask and any((one.cuda or 0) >= len(mask) for one in devices):
            break  # such a driver numbers all GPUs of the machine, and not those that the mask leaves
        against = [name for name, agrees in known.items() if not agrees]
        reason = f"it is the session's GPU by {' and '.join(name for name, agrees in known.items() if agrees)}"
        return EglChoice(index, reason + (f", against its {' and '.join(against)}" if against else ""))
    return EglChoice(None, f"none of EGL's devices is known to be {words}: it has {listing(devices)}")


def _overridden(
    text: str, devices: tuple[EglDevice, ...], gpu: Gpu, cuda_index: int | None, found: EglChoice
) -> EglChoice:
    """The device that EGL_DEVICE_ID names, with a warning where it is not known to be the GPU that computes."""
    index = _named_index(text, devices)
    same = is_gpu(devices[index], gpu, cuda_index)
    if same or index == found.index:
        return EglChoice(index, f"{DEVICE_ID}={text!r}")
    verb = "is not" if same is False else "is not known to be"
    advice = "" if found.index is None else f" Unset {DEVICE_ID} to draw on that GPU, EGL {found.index}."
    warning = f"EGL {index} ({devices[index]}) {verb} the GPU that computes, {_gpu_words(gpu, cuda_index)}.{advice}"
    return EglChoice(index, f"{DEVICE_ID}={text!r}", (f"{DEVICE_ID}={text!r}: {warning}",))


def _named_index(text: str, devices: tuple[EglDevice, ...]) -> int:
    if text.isdecimal() and int(text) < len(devices):
        return int(text)
    raise GenesisException(
        f"{DEVICE_ID}={text!r} is no index of EGL's list, which has {listing(devices)}. It counts EGL's devices, whose "
        "order is not CUDA's. Unset it to draw on the GPU that computes."
    )


def _gpu_words(gpu: Gpu, cuda_index: int | None) -> str:
    return f"cuda:{cuda_index} ({' '.join(filter(None, (gpu.name, gpu.uuid, gpu.bus)))})"
