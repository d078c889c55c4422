"""Asking libEGL: the system's own where there is one, and a fake one that answers as NVIDIA's driver does."""

from __future__ import annotations

import ctypes
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pluriverse import egl_driver
from pluriverse.cuda_driver import CudaDriver
from pluriverse.egl_devices import NoEgl, match_egl
from pluriverse.egl_driver import LibEgl, pci_address

RAW = bytes(range(16))
CLIENT = b"EGL_EXT_device_base EGL_EXT_platform_base EGL_EXT_platform_device"
NVIDIA = b"EGL_NV_device_cuda EGL_EXT_device_drm EGL_EXT_device_query_name EGL_EXT_device_persistent_id"
STRINGS: dict[int, dict[int, bytes]] = {
    100: {0x3055: NVIDIA, 0x3233: b"/dev/dri/card3", 0x3053: b"NVIDIA", 0x335F: b"NVIDIA H200"},
    200: {0x3055: NVIDIA, 0x3053: b"NVIDIA"},
    300: {0x3055: b"EGL_MESA_device_software EGL_EXT_device_drm_render_node", 0x335F: b"not to be asked for"},
}
NUMBERS = {100: 4}


class FakeLibrary:
    """A libEGL with two GPUs of NVIDIA's driver, the second of them hidden from CUDA, and Mesa's software device."""

    def __init__(self, client: bytes = CLIENT, handles: tuple[int, ...] = tuple(STRINGS)) -> None:
        self.client, self.handles = client, handles
        self.asked: list[str] = []
        integer, pointer = ctypes.c_int, ctypes.c_void_p
        self.functions = {
            b"eglQueryDevicesEXT": ctypes.CFUNCTYPE(ctypes.c_uint, integer, pointer, pointer)(self.query_devices),
            b"eglQueryDeviceStringEXT": ctypes.CFUNCTYPE(pointer, pointer, integer)(self.query_string),
            b"eglQueryDeviceAttribEXT": ctypes.CFUNCTYPE(ctypes.c_uint, pointer, integer, pointer)(self.query_attrib),
            b"eglQueryDeviceBinaryEXT": ctypes.CFUNCTYPE(ctypes.c_uint, pointer, integer, integer, pointer, pointer)(
                self.query_binary
            ),
        }
        self.buffers: list[Any] = []
        self.eglQueryString = self._plain(lambda display, name: self.client)
        self.eglGetProcAddress = self._plain(self.address)

    @staticmethod
    def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
        """A function that takes attributes, as those of a library do."""
        return lambda *arguments: function(*arguments)

    def address(self, name: bytes) -> int | None:
        self.asked.append(name.decode())
        return ctypes.cast(self.functions[name], ctypes.c_void_p).value if name in self.functions else None

    def query_devices(self, room: int, handles: int | None, count: int) -> int:
        ctypes.c_int.from_address(count).value = len(self.handles)
        if handles:
            (ctypes.c_void_p * room).from_address(handles)[:] = list(self.handles)
        return 1

    def query_string(self, handle: int, name: int) -> int | None:
        text = STRINGS[handle].get(name)
        if text is None:
            return None
        self.buffers.append(ctypes.create_string_buffer(text))
        return ctypes.addressof(self.buffers[-1])

    def query_attrib(self, handle: int, name: int, value: int) -> int:
        if name != 0x323A or handle not in NUMBERS:
            return 0
        ctypes.c_ssize_t.from_address(value).value = NUMBERS[handle]
        return 1

    def query_binary(self, handle: int, name: int, room: int, value: int, size: int) -> int:
        assert (name, room) == (0x335C, 16)
        if handle != 100:
            return 0
        ctypes.memmove(value, RAW, 16)
        ctypes.c_int.from_address(size).value = 16
        return 1


def load(monkeypatch: pytest.MonkeyPatch, library: FakeLibrary) -> FakeLibrary:
    monkeypatch.setattr(egl_driver.ctypes, "CDLL", lambda name: library)
    return library


def test_what_each_device_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(egl_driver, "pci_address", {"/dev/dri/card3": "0000:0a:00.0"}.get)
    load(monkeypatch, FakeLibrary())
    seen, hidden, software = LibEgl().devices(ask_cuda=True)
    assert (seen.name, seen.bus, seen.cuda) == ("NVIDIA H200", "0000:0a:00.0", 4)
    assert seen.uuid == f"GPU-{uuid.UUID(bytes=RAW)}" == "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert (hidden.name, hidden.uuid, hidden.bus, hidden.cuda) == ("NVIDIA", "", "", None)
    assert seen.nvidia
    assert hidden.nvidia
    assert software.software
    assert not software.nvidia
    assert (software.name, software.bus, software.cuda) == ("", "", None)


def test_cuda_is_asked_only_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    library = load(monkeypatch, FakeLibrary())
    assert [device.cuda for device in LibEgl().devices(ask_cuda=False)] == [None] * 3
    assert "eglQueryDeviceAttribEXT" not in library.asked


def test_older_libraries_without_uuids(monkeypatch: pytest.MonkeyPatch) -> None:
    library = load(monkeypatch, FakeLibrary())
    del library.functions[b"eglQueryDeviceBinaryEXT"]
    assert [device.uuid for device in LibEgl().devices(ask_cuda=True)] == [""] * 3


@pytest.mark.parametrize(
    ("client", "words"),
    [
        (b"EGL_EXT_client_extensions", "EGL_EXT_device_enumeration, EGL_EXT_device_query, EGL_EXT_platform_device"),
        (b"EGL_EXT_device_base", "lacks EGL_EXT_platform_device"),
        (b"EGL_EXT_device_enumeration EGL_EXT_platform_device", "lacks EGL_EXT_device_query"),
    ],
)
def test_extensions_that_are_missing(monkeypatch: pytest.MonkeyPatch, client: bytes, words: str) -> None:
    load(monkeypatch, FakeLibrary(client))
    with pytest.raises(NoEgl, match=words):
        LibEgl().devices(ask_cuda=True)


def test_empty_list_and_failing_query(monkeypatch: pytest.MonkeyPatch) -> None:
    library = load(monkeypatch, FakeLibrary(handles=()))
    assert LibEgl().devices(ask_cuda=True) == ()
    del library.functions[b"eglQueryDevicesEXT"]
    with pytest.raises(NoEgl, match="fails to list"):
        LibEgl().devices(ask_cuda=True)


def test_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(egl_driver.ctypes, "CDLL", missing)
    choice = match_egl({}, LibEgl())
    assert (str(choice), choice.reason) == ("EGL none", "the library libEGL is not installed")


def test_pci_address_of_a_node(tmp_path: Path) -> None:
    """Linux's links: card1 of a PCI device, and a display controller of an embedded board on no PCI bus."""
    for node, target in (("card1", "pci0000:00/0000:0a:00.0"), ("renderD128", "platform/13e00000.host1x")):
        (tmp_path / "devices" / target).mkdir(parents=True)
        (tmp_path / "drm" / node).mkdir(parents=True)
        (tmp_path / "drm" / node / "device").symlink_to(tmp_path / "devices" / target)
    assert pci_address("/dev/dri/card1", tmp_path / "drm") == "0000:0a:00.0"
    assert pci_address("/dev/dri/renderD128", tmp_path / "drm") == ""
    assert pci_address("/dev/dri/card9", tmp_path / "drm") == ""
    assert pci_address("", tmp_path / "drm") == ""


def test_the_libegl_of_this_machine() -> None:
    started = CudaDriver().started()
    try:
        devices = LibEgl().devices(ask_cuda=False)
    except NoEgl as reason:
        pytest.skip(f"no EGL here: {reason}")
    assert devices == LibEgl().devices(ask_cuda=False)
    assert all(device.extensions for device in devices)
    assert CudaDriver().started() == started
    choice = match_egl({}, LibEgl())
    assert (choice.index is None) == (devices == ())
    if any(device.software for device in devices):
        assert choice.index is not None
        assert devices[choice.index].software
