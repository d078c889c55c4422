"""Asking libEGL which devices it has, without opening a display: no EGL and no CUDA context comes of it.

The calls are those of EGL_EXT_device_enumeration and EGL_EXT_device_query, together EGL_EXT_device_base. What a device
tells depends on its driver (the extensions' texts are in the Khronos EGL registry):

- EGL_EXT_device_persistent_id: EGL_DEVICE_UUID_EXT, a uuid that is "persistent across [...] APIs". NVIDIA's is CUDA's.
- EGL_EXT_device_drm and EGL_EXT_device_drm_render_node: the DRM nodes, through which Linux tells the PCI address. A
  virtual machine or container may have none.
- EGL_NV_device_cuda: EGL_CUDA_DEVICE_NV, a CUDA device "compatible with CUDA API functions". That is the k of this
  process's `cuda:k`, after the mask and in its order; for a GPU that the mask hides the query fails with
  EGL_BAD_ATTRIBUTE. It starts CUDA (the mask is read), and creates no context.

What is said of NVIDIA's driver was seen with version 580.159 on two H200 (tests/device_manual/egl_match.py). Reports of
other versions differ on whether the mask counts, so the uuid and the PCI address come first in the rules.
"""

from __future__ import annotations

import ctypes
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pluriverse.egl_devices import EglDevice, NoEgl, plain_bus

# Names of strings and attributes; the comment is the extension that has them.
EGL_VENDOR = 0x3053  # EGL_EXT_device_query_name
EGL_EXTENSIONS = 0x3055
EGL_DRM_DEVICE_FILE_EXT = 0x3233  # EGL_EXT_device_drm
EGL_CUDA_DEVICE_NV = 0x323A  # EGL_NV_device_cuda
EGL_DEVICE_UUID_EXT = 0x335C  # EGL_EXT_device_persistent_id
EGL_RENDERER_EXT = 0x335F  # EGL_EXT_device_query_name
EGL_DRM_RENDER_NODE_FILE_EXT = 0x3377  # EGL_EXT_device_drm_render_node

SYSFS = Path("/sys/class/drm")


class LibEgl:
    """EGL's devices by the system's libEGL; see `egl_devices.EglDriver`."""

    def devices(self, ask_cuda: bool) -> tuple[EglDevice, ...]:
        """EGL's list, in its order; `ask_cuda` starts CUDA. Raises NoEgl where libEGL is not there or cannot list."""
        try:
            egl = ctypes.CDLL("libEGL.so.1")
        except OSError:
            raise NoEgl("the library libEGL is not installed") from None
        egl.eglQueryString.restype, egl.eglQueryString.argtypes = ctypes.c_char_p, (ctypes.c_void_p, ctypes.c_int)
        egl.eglGetProcAddress.restype, egl.eglGetProcAddress.argtypes = ctypes.c_void_p, (ctypes.c_char_p,)
        offered = _words(egl.eglQueryString(None, EGL_EXTENSIONS))  # of EGL itself, not of a display
        if "EGL_EXT_device_base" in offered:
            offered |= {"EGL_EXT_device_enumeration", "EGL_EXT_device_query"}
        needed = {"EGL_EXT_device_enumeration", "EGL_EXT_device_query", "EGL_EXT_platform_device"}
        if needed - offered:
            raise NoEgl(
                f"this libEGL cannot draw on a device of choice: it lacks {', '.join(sorted(needed - offered))}"
            )
        return tuple(_device(egl, handle, ask_cuda) for handle in _handles(egl))


def pci_address(node: str, sysfs: Path = SYSFS) -> str:
    """The PCI address of the device behind a DRM node such as /dev/dri/card1; "" where there is none."""
    return plain_bus((sysfs / Path(node).name / "device").resolve().name) if node else ""


def _handles(egl: ctypes.CDLL) -> list[int]:
    query = _function(egl, "eglQueryDevicesEXT", ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    count = ctypes.c_int()
    if query is None or not query(0, None, ctypes.byref(count)):
        raise NoEgl("libEGL fails to list its devices")
    handles = (ctypes.c_void_p * count.value)()
    if count.value and not query(count.value, handles, ctypes.byref(count)):
        raise NoEgl("libEGL fails to list its devices")
    return [handle or 0 for handle in handles[: count.value]]


def _device(egl: ctypes.CDLL, handle: int, ask_cuda: bool) -> EglDevice:
    query = _function(egl, "eglQueryDeviceStringEXT", ctypes.c_void_p, ctypes.c_int, result=ctypes.c_char_p)

    def string(name: int) -> str:
        return ((query(handle, name) if query else None) or b"").decode(errors="replace")

    extensions = _words(string(EGL_EXTENSIONS).encode())
    nodes = []
    if "EGL_EXT_device_drm" in extensions:
        nodes.append(string(EGL_DRM_DEVICE_FILE_EXT))
    if "EGL_EXT_device_drm_render_node" in extensions:
        nodes.append(string(EGL_DRM_RENDER_NODE_FILE_EXT))
    named = "EGL_EXT_device_query_name" in extensions
    return EglDevice(
        extensions=extensions,
        uuid=_uuid(egl, handle) if "EGL_EXT_device_persistent_id" in extensions else "",
        bus=next(filter(None, map(pci_address, nodes)), ""),
        cuda=_cuda_number(egl, handle) if ask_cuda and "EGL_NV_device_cuda" in extensions else None,
        name=(string(EGL_RENDERER_EXT) or string(EGL_VENDOR)) if named else "",
    )


def _uuid(egl: ctypes.CDLL, handle: int) -> str:
    types = (ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    query = _function(egl, "eglQueryDeviceBinaryEXT", *types)
    raw, size = ctypes.create_string_buffer(16), ctypes.c_int()
    told = query is not None and query(handle, EGL_DEVICE_UUID_EXT, len(raw), raw, ctypes.byref(size))
    return f"GPU-{uuid.UUID(bytes=raw.raw)}" if told else ""


def _cuda_number(egl: ctypes.CDLL, handle: int) -> int | None:
    """The device's CUDA number; None where CUDA does not show it to this process."""
    query = _function(egl, "eglQueryDeviceAttribEXT", ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
    value = ctypes.c_ssize_t()  # EGLAttrib
    return value.value if query and query(handle, EGL_CUDA_DEVICE_NV, ctypes.byref(value)) else None


def _function(egl: ctypes.CDLL, name: str, *arguments: Any, result: Any = ctypes.c_uint) -> Callable[..., Any] | None:
    """An extension's function, which the library does not export by name; EGLBoolean is an unsigned int."""
    address = egl.eglGetProcAddress(name.encode())
    return ctypes.CFUNCTYPE(result, *arguments)(address) if address else None


def _words(text: bytes | None) -> frozenset[str]:
    return frozenset((text or b"").decode(errors="replace").split())
