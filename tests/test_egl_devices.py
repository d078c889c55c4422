"""Which EGL device draws: EGL lists in other orders than CUDA's, masks, overrides and machines without, all faked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pluriverse as gs
from fake_driver import FakeDriver, machine
from pluriverse.devices import Gpu, resolve
from pluriverse.egl_devices import EglChoice, EglDevice, NoEgl, is_gpu, match_egl, plain_bus

SEVEN = (2, 1, 0, 5, 6, 3, 4)  # EGL's order of a box with 7 GPUs: entry k is that physical GPU
SOFTWARE = EglDevice(frozenset({"EGL_MESA_device_software"}))
NVIDIA = frozenset({"EGL_NV_device_cuda"})
TELLS = [{"uuid"}, {"bus"}, {"cuda"}, {"uuid", "bus", "cuda"}]


@dataclass
class FakeEgl:
    """A list of devices, or why there is none; it notes whether it was asked for CUDA's numbers."""

    listed: tuple[EglDevice, ...] = ()
    missing: str = ""
    asked: list[bool] = field(default_factory=list)

    def devices(self, ask_cuda: bool) -> tuple[EglDevice, ...]:
        self.asked.append(ask_cuda)
        if self.missing:
            raise NoEgl(self.missing)
        return self.listed


def egl_list(driver: FakeDriver, order: tuple[int, ...], tells: set[str]) -> FakeEgl:
    """EGL over the machine's GPUs in this order. NVIDIA's numbers count the GPUs that CUDA shows to the process."""
    driver.start()
    visible = [gpu.uuid for gpu in driver.seen or ()]
    devices = []
    for gpu in (driver.gpus[k] for k in order):
        number = visible.index(gpu.uuid) if gpu.uuid in visible else None
        devices.append(
            EglDevice(
                NVIDIA,
                uuid=gpu.uuid if "uuid" in tells else "",
                bus=gpu.bus.lower() if "bus" in tells else "",
                cuda=number if "cuda" in tells else None,
                name=gpu.name,
            )
        )
    return FakeEgl((*devices, SOFTWARE))


def match(
    environ: dict[str, str], device: Any = None, order: tuple[int, ...] = SEVEN, tells: set[str] = TELLS[-1]
) -> EglChoice:
    driver = FakeDriver(machine(len(order)), environ)
    choice = resolve(environ, driver, device=device)
    return match_egl(environ, egl_list(driver, order, tells), choice.gpu, choice.device.index)


def session(gpu: Gpu, *devices: EglDevice, environ: dict[str, str] | None = None, index: int = 0) -> EglChoice:
    """The choice of a session on `cuda:index`, for an EGL list made by hand."""
    return match_egl(environ or {}, FakeEgl(devices), gpu, index)


@pytest.mark.parametrize("tells", TELLS)
@pytest.mark.parametrize(
    ("environ", "device", "physical"),
    [
        ({}, None, 0),
        ({}, "cuda:3", 3),
        ({"CUDA_VISIBLE_DEVICES": "2"}, None, 2),
        ({"CUDA_VISIBLE_DEVICES": "3"}, None, 3),
        ({"CUDA_VISIBLE_DEVICES": "5,0,4"}, "cuda:2", 4),
        ({"CUDA_VISIBLE_DEVICES": machine(7)[6].uuid}, None, 6),
        ({"CUDA_VISIBLE_DEVICES": "GPU-33,GPU-11"}, "cuda:1", 1),
        ({"QD_VISIBLE_DEVICE": "5"}, None, 5),
        ({"CUDA_VISIBLE_DEVICES": "4,2", "QD_VISIBLE_DEVICE": "2"}, None, 2),
        ({"LOCAL_RANK": "6", "LOCAL_WORLD_SIZE": "7"}, None, 6),
        ({"EGL_DEVICE_ID": "", "MUJOCO_EGL_DEVICE_ID": "1"}, "cuda:4", 4),
    ],
)
def test_egl_in_another_order(environ: dict[str, str], device: Any, physical: int, tells: set[str]) -> None:
    choice = match(environ, device, tells=tells)
    assert choice.index == SEVEN.index(physical)
    assert str(choice) == f"EGL {SEVEN.index(physical)}"
    assert not choice.warnings


@given(st.permutations(range(7)), st.lists(st.integers(0, 6), min_size=1, unique=True), st.data())
def test_any_order_and_any_mask(order: list[int], mask: list[int], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(mask) - 1))
    tells = data.draw(st.sampled_from(TELLS))
    environ = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, mask))}
    assert match(environ, f"cuda:{index}", tuple(order), tells).index == order.index(mask[index])


def test_the_reason_names_the_evidence() -> None:
    assert match({}).reason == "it is the session's GPU by uuid and PCI bus and CUDA number"
    assert match({}, tells={"cuda"}).reason.endswith("by CUDA number")


def test_a_driver_that_numbers_all_gpus_whatever_the_mask() -> None:
    """The uuid or the PCI bus decides against such numbers, and says so; alone they are not believed."""
    gpu, environ = machine(3)[2], {"CUDA_VISIBLE_DEVICES": "2"}
    whole = [EglDevice(NVIDIA, cuda=k, bus=g.bus) for k, g in enumerate(machine(3))]
    choice = session(gpu, *whole, environ=environ)
    assert choice.index == 2
    assert "against its CUDA number" in choice.reason
    numbers = session(gpu, *(EglDevice(NVIDIA, cuda=k) for k in range(3)), environ=environ)
    assert numbers.index is None
    assert "none of EGL's devices is known to be cuda:0" in numbers.reason


def test_mesa_lists_the_same_gpu_first() -> None:
    """An entry on the same PCI bus that is not NVIDIA's driver is passed over."""
    gpu = machine(1)[0]
    mesa = EglDevice(frozenset({"EGL_EXT_device_drm"}), bus=gpu.bus)
    assert session(gpu, mesa, SOFTWARE, EglDevice(NVIDIA, bus=gpu.bus)).index == 2
    alone = session(gpu, mesa, SOFTWARE)
    assert alone.index is None
    assert "NVIDIA_DRIVER_CAPABILITIES" in alone.reason


def test_never_another_gpu() -> None:
    ours, other = machine(2)
    choice = session(ours, EglDevice(NVIDIA, uuid=other.uuid, cuda=0))
    assert choice.index is None
    assert str(choice) == "EGL none"
    assert ours.uuid in choice.reason
    assert other.uuid in choice.reason
    assert session(ours, EglDevice(NVIDIA)).index is None


@pytest.mark.parametrize(
    ("egl", "words"),
    [
        (FakeEgl(missing="the library libEGL is not installed"), "libEGL is not installed"),
        (FakeEgl(), "lists no device"),
        (FakeEgl((SOFTWARE, SOFTWARE)), "software devices only: 2 devices"),
    ],
)
def test_machines_without(egl: FakeEgl, words: str) -> None:
    choice = match_egl({}, egl, machine(1)[0], 0)
    assert choice.index is None
    assert words in choice.reason
    assert not choice.warnings


def test_an_override_without_egl_is_told() -> None:
    choice = match_egl({"EGL_DEVICE_ID": "0"}, FakeEgl(missing="it lacks EGL_EXT_device_query"))
    assert choice.index is None
    assert "EGL_DEVICE_ID='0' has no effect: it lacks EGL_EXT_device_query" in choice.warnings[0]


@pytest.mark.parametrize(
    ("name", "environ"),
    [("NVIDIA A100-SXM4-40GB MIG 1g.5gb", {}), ("NVIDIA A100", {"CUDA_VISIBLE_DEVICES": "MIG-abcdef01"})],
)
def test_mig_draws_nothing(name: str, environ: dict[str, str]) -> None:
    parent = machine(1)[0]
    instance = Gpu("GPU-abcdef01-0000-0000-0000-000000000000", name, parent.bus)
    device = EglDevice(NVIDIA, uuid=parent.uuid, bus=parent.bus, cuda=0)
    choice = session(instance, device, environ=environ)
    assert choice.index is None
    assert "MIG" in choice.reason
    forced = session(instance, device, environ={**environ, "EGL_DEVICE_ID": "0"})
    assert (forced.index, forced.warnings) == (0, ())  # the card of the instance: the user's word is enough


def test_override_that_is_the_same_gpu() -> None:
    index = SEVEN.index(3)
    choice = match({"CUDA_VISIBLE_DEVICES": "3", "EGL_DEVICE_ID": str(index)})
    assert choice == EglChoice(index, f"EGL_DEVICE_ID='{index}'")


@pytest.mark.parametrize("tells", TELLS)
def test_override_that_is_another_gpu(tells: set[str]) -> None:
    choice = match({"EGL_DEVICE_ID": "0"}, "cuda:4", tells=tells)
    assert choice.index == 0
    (warning,) = choice.warnings
    ours = machine(7)[4]
    for words in ("EGL_DEVICE_ID='0'", "EGL 0 (Fake", "is not the GPU", "cuda:4", ours.uuid, ours.bus, "EGL 6"):
        assert words in warning
    if "uuid" in tells:
        assert machine(7)[2].uuid in warning


def test_override_that_is_software_or_unknown() -> None:
    assert "EGL 7 (software) is not the GPU" in match({"EGL_DEVICE_ID": "7"}).warnings[0]
    unknown = session(machine(1)[0], EglDevice(NVIDIA), environ={"EGL_DEVICE_ID": "0"})
    assert unknown.index == 0
    assert "EGL 0 (unknown) is not known to be the GPU" in unknown.warnings[0]


@pytest.mark.parametrize("value", ["8", "-1", "cuda:0", "0,1", machine(7)[0].uuid])
@pytest.mark.parametrize("device", ["cuda:0", "cpu"])
def test_override_that_is_no_index(value: str, device: str) -> None:
    with pytest.raises(gs.GenesisException) as error:
        match({"EGL_DEVICE_ID": value}, device)
    for words in (f"EGL_DEVICE_ID='{value}'", "8 devices", f"0: Fake {machine(7)[2].uuid}", "7: software"):
        assert words in str(error.value)


def test_cpu_session() -> None:
    """A session without GPU draws in software where it can, and asks nothing that would start CUDA."""
    nvidia = EglDevice(NVIDIA, name="NVIDIA H200")
    egl = FakeEgl((nvidia, SOFTWARE))
    assert match_egl({}, egl).index == 1
    first = match_egl({}, FakeEgl((nvidia,)))
    assert first.index == 0
    assert "NVIDIA H200" in first.reason
    assert match_egl({"EGL_DEVICE_ID": "0"}, egl) == EglChoice(0, "EGL_DEVICE_ID='0'")
    assert egl.asked == [False, False]
    match_egl({}, egl, machine(1)[0], 0)
    assert egl.asked[-1]


def test_bus_in_the_forms_of_cuda_nvml_and_linux() -> None:
    assert {plain_bus(text) for text in ("0000:0A:00.0", "00000000:0A:00.0", "0000:0a:00.0")} == {"0000:0a:00.0"}
    assert plain_bus("00010000:E1:00.0") == "10000:e1:00.0"
    assert [plain_bus(text) for text in ("", "card1", "gpu.0", "0000:0A:00")] == [""] * 4


def test_what_counts_as_the_gpu() -> None:
    gpu = Gpu("GPU-AA", bus="0000:0A:00.0")
    assert is_gpu(EglDevice(uuid="GPU-aa", bus="0000:0a:00.0"), gpu, 0) is True
    assert is_gpu(EglDevice(uuid="GPU-bb", bus="0000:0a:00.0"), gpu, 0) is True  # the card of a MIG instance
    assert is_gpu(EglDevice(uuid="GPU-bb", bus="0000:0b:00.0", cuda=0), gpu, 0) is False
    assert is_gpu(EglDevice(cuda=1), gpu, 0) is False
    assert is_gpu(EglDevice(), gpu, 0) is None
    assert is_gpu(EglDevice(cuda=0), gpu, None) is None
