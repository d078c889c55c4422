"""Asking the CUDA driver and NVML which GPUs there are, without creating a CUDA context on any.

torch's own questions will not do: `torch.cuda.get_device_properties` starts torch's CUDA state, and its list cannot
tell what the driver saw at an earlier start. Both libraries come with NVIDIA's driver and are called through ctypes.
"""

from __future__ import annotations

import ctypes
import os
import sys
import uuid

import torch

from pluriverse.devices import Gpu, Unavailable
from pluriverse.errors import GenesisException

CUDA_SUCCESS = 0
CUDA_ERROR_NOT_INITIALIZED = 3
CUDA_ERROR_NO_DEVICE = 100
NVML_DEVICE_MIG_ENABLE = 1


class CudaDriver:
    """The GPUs of this process and of this machine; see `devices.Driver`."""

    def started(self) -> bool:
        """Whether cuInit has run in this process: cuDeviceGetCount refuses before it, and starts nothing."""
        cuda = _load("libcuda.so.1", "nvcuda.dll")
        return cuda is not None and cuda.cuDeviceGetCount(ctypes.byref(ctypes.c_int())) == CUDA_SUCCESS

    def visible(self) -> tuple[Gpu, ...]:
        """The GPUs that the mask leaves to this process. Raises Unavailable, and GenesisException in a bad fork."""
        if torch.version.cuda is None:
            raise Unavailable(f"torch {torch.__version__} was built without CUDA")
        cuda = _load("libcuda.so.1", "nvcuda.dll")
        if cuda is None:
            raise Unavailable("the NVIDIA driver's library libcuda is not installed")
        error = cuda.cuInit(0)
        if error == CUDA_ERROR_NOT_INITIALIZED:
            raise GenesisException(
                "This process was forked from one that had started CUDA, and CUDA cannot be used in such a child. "
                "Start children with the 'spawn' method, or fork before the parent's first CUDA call."
            )
        if error == CUDA_ERROR_NO_DEVICE:
            raise Unavailable("the CUDA driver finds no GPU")
        if error != CUDA_SUCCESS:
            raise Unavailable(f"the CUDA driver failed to start (cuInit returned {error})")
        count = ctypes.c_int()
        cuda.cuDeviceGetCount(ctypes.byref(count))
        if count.value == 0:
            raise Unavailable("the CUDA driver finds no GPU")
        return tuple(_visible_gpu(cuda, index) for index in range(count.value))

    def physical(self) -> tuple[Gpu, ...] | None:
        """All GPUs of the machine by NVML, if its order (by PCI bus) is surely CUDA's and MIG splits none of them."""
        nvml = _load("libnvidia-ml.so.1", "nvml.dll")
        if nvml is None or nvml.nvmlInit_v2() != CUDA_SUCCESS:
            return None
        try:
            count = ctypes.c_uint()
            nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
            gpus = [_physical_gpu(nvml, index) for index in range(count.value)]
        finally:
            nvml.nvmlShutdown()
        known = [gpu for gpu in gpus if gpu is not None]
        # CUDA lists the fastest first unless told otherwise: among equal GPUs that is the order of the bus too.
        by_bus = os.environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID" or len({gpu.name for gpu in known}) == 1
        return tuple(known) if len(known) == len(gpus) and by_bus else None

    def current(self) -> int | None:
        """torch's current CUDA device, None while torch has not started CUDA."""
        return torch.cuda.current_device() if torch.cuda.is_initialized() else None

    def use(self, index: int) -> None:
        """Make `cuda:index` torch's current device; this creates the process's one CUDA context."""
        torch.cuda.set_device(index)


def _load(linux: str, windows: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(windows if sys.platform == "win32" else linux)
    except OSError:
        return None


def _visible_gpu(cuda: ctypes.CDLL, index: int) -> Gpu:
    device = ctypes.c_int()
    cuda.cuDeviceGet(ctypes.byref(device), index)
    raw, name, bus = (ctypes.create_string_buffer(size) for size in (16, 128, 32))
    get_uuid = getattr(cuda, "cuDeviceGetUuid_v2", cuda.cuDeviceGetUuid)  # v2 tells a MIG instance from its GPU
    get_uuid(raw, device)
    cuda.cuDeviceGetName(name, len(name), device)
    cuda.cuDeviceGetPCIBusId(bus, len(bus), device)
    flags, active = ctypes.c_uint(), ctypes.c_int()
    cuda.cuDevicePrimaryCtxGetState(device, ctypes.byref(flags), ctypes.byref(active))
    return Gpu(f"GPU-{uuid.UUID(bytes=raw.raw)}", name.value.decode(), bus.value.decode(), bool(active.value))


def _physical_gpu(nvml: ctypes.CDLL, index: int) -> Gpu | None:
    """The GPU at this place of NVML's list; None where it may not be used from here or is split into MIG instances."""
    handle = ctypes.c_void_p()
    if nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) != CUDA_SUCCESS:
        return None
    mode, pending = ctypes.c_uint(), ctypes.c_uint()
    mig = nvml.nvmlDeviceGetMigMode(handle, ctypes.byref(mode), ctypes.byref(pending))
    if mig == CUDA_SUCCESS and mode.value == NVML_DEVICE_MIG_ENABLE:
        return None
    text, name = ctypes.create_string_buffer(96), ctypes.create_string_buffer(96)
    if nvml.nvmlDeviceGetUUID(handle, text, len(text)) != CUDA_SUCCESS:
        return None
    nvml.nvmlDeviceGetName(handle, name, len(name))
    return Gpu(text.value.decode(), name.value.decode())
