"""Which device a process gets: every way to pin one, early, late and wrong, over a fake driver."""

from __future__ import annotations

import multiprocessing
import os
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import pluriverse as gs
from fake_driver import FakeDriver, machine
from pluriverse.devices import Choice, parse_mask, resolve

GPU_1 = machine(2)[1].uuid
MIG = "GPU-abcdef01-0000-0000-0000-000000000000"


def choose(environ: dict[str, str], count: int = 4, backend: Any = None, device: Any = None, **driver: Any) -> Choice:
    return resolve(environ, FakeDriver(machine(count), environ, **driver), backend, device)


def uuid(choice: Choice) -> str | None:
    return choice.gpu.uuid if choice.gpu else None


# Where nothing is wrong: environment, arguments -> torch's device and the physical GPU behind it.
@pytest.mark.parametrize(
    ("environ", "device", "index", "physical"),
    [
        ({}, None, 0, 0),
        ({}, "cuda", 0, 0),
        ({}, "cuda:1", 1, 1),
        ({}, torch.device("cuda", 3), 3, 3),
        ({"CUDA_VISIBLE_DEVICES": "2"}, None, 0, 2),
        ({"CUDA_VISIBLE_DEVICES": "2,1"}, "cuda:1", 1, 1),
        ({"CUDA_VISIBLE_DEVICES": " 1 , 0"}, None, 0, 1),
        ({"CUDA_VISIBLE_DEVICES": "3,-1,0"}, None, 0, 3),
        ({"CUDA_VISIBLE_DEVICES": GPU_1}, None, 0, 1),
        ({"CUDA_VISIBLE_DEVICES": "GPU-1111"}, None, 0, 1),
        ({"QD_VISIBLE_DEVICE": "2"}, None, 2, 2),
        ({"QD_VISIBLE_DEVICE": "2"}, "cuda:2", 2, 2),
        ({"QD_VISIBLE_DEVICE": ""}, None, 0, 0),
        ({"QD_VISIBLE_DEVICE": GPU_1}, None, 1, 1),
        ({"CUDA_VISIBLE_DEVICES": "2", "QD_VISIBLE_DEVICE": "2"}, None, 0, 2),
        ({"CUDA_VISIBLE_DEVICES": "3,1", "QD_VISIBLE_DEVICE": "1"}, None, 1, 1),
        ({"CUDA_VISIBLE_DEVICES": f"GPU-0000,{GPU_1}", "QD_VISIBLE_DEVICE": GPU_1}, None, 1, 1),
        ({"LOCAL_RANK": "3", "LOCAL_WORLD_SIZE": "4", "WORLD_SIZE": "8", "RANK": "7"}, None, 3, 3),
        ({"LOCAL_RANK": "1", "CUDA_VISIBLE_DEVICES": "3,2"}, None, 1, 2),
        ({"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "CUDA_VISIBLE_DEVICES": "3"}, None, 0, 3),
        ({"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "QD_VISIBLE_DEVICE": "3"}, None, 3, 3),
    ],
)
@pytest.mark.parametrize("listed", [True, False])
def test_selects(environ: dict[str, str], device: Any, index: int, physical: int, listed: bool) -> None:
    choice = choose(environ, device=device, listed=listed)
    assert choice.device == torch.device("cuda", index)
    assert uuid(choice) == machine(4)[physical].uuid
    assert not choice.warnings


# Where something is wrong, the message names what was given and the remedy.
@pytest.mark.parametrize(
    ("environ", "device", "words"),
    [
        ({"CUDA_VISIBLE_DEVICES": "4"}, None, ["CUDA_VISIBLE_DEVICES='4'", "out of range", "4 GPUs"]),
        ({"CUDA_VISIBLE_DEVICES": "0,9"}, None, ["device 9", "out of range"]),
        ({"CUDA_VISIBLE_DEVICES": "0,0"}, None, ["'0,0'", "twice"]),
        ({"CUDA_VISIBLE_DEVICES": "0,00"}, None, ["twice"]),
        ({"CUDA_VISIBLE_DEVICES": "0 1"}, None, ["'0 1'", "no device id"]),
        ({"CUDA_VISIBLE_DEVICES": "cuda:1"}, None, ["'cuda:1'", "no device id"]),
        ({"CUDA_VISIBLE_DEVICES": "0,GPU-ffff"}, None, ["accepts the first 1", "'GPU-ffff'"]),
        ({"CUDA_VISIBLE_DEVICES": "2"}, "cuda:1", ["device='cuda:1'", "out of range", "CUDA_VISIBLE_DEVICES='2'"]),
        ({}, "cuda:7", ["device='cuda:7'", "4 GPUs"]),
        ({"QD_VISIBLE_DEVICE": "4"}, None, ["QD_VISIBLE_DEVICE='4'", "out of range"]),
        ({"QD_VISIBLE_DEVICE": "-1"}, None, ["QD_VISIBLE_DEVICE='-1'", "no device id"]),
        ({"QD_VISIBLE_DEVICE": "0,1"}, None, ["'0,1'", "one integer"]),
        ({"QD_VISIBLE_DEVICE": "GPU-ffff"}, None, ["'GPU-ffff'"]),
        ({"QD_VISIBLE_DEVICE": "0"}, "cuda:1", ["device='cuda:1'", "QD_VISIBLE_DEVICE='0'", "contradict"]),
        (
            {"QD_VISIBLE_DEVICE": "0", "CUDA_VISIBLE_DEVICES": "1"},
            None,
            ["QD_VISIBLE_DEVICE='0'", "='1'", "contradict"],
        ),
        ({"QD_VISIBLE_DEVICE": "1", "CUDA_VISIBLE_DEVICES": "GPU-0,GPU-1"}, None, ["contradict"]),
        ({"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "8"}, None, ["8 ranks", "4 visible GPUs", "--nproc_per_node=4"]),
        ({"LOCAL_RANK": "5"}, None, ["6 ranks", "4 visible GPUs"]),
        ({"LOCAL_RANK": "x"}, None, ["LOCAL_RANK='x'"]),
    ],
)
def test_refuses(environ: dict[str, str], device: Any, words: list[str]) -> None:
    with pytest.raises(gs.GenesisException) as error:
        choose(environ, device=device)
    for word in words:
        assert word in str(error.value)


def test_out_of_range_mask_of_an_unlisted_machine() -> None:
    with pytest.raises(gs.GenesisException, match="accepts the first 1"):
        choose({"CUDA_VISIBLE_DEVICES": "0,9"}, listed=False)


@pytest.mark.parametrize("mask", ["", "-1", " ", "NoDevFiles"])
def test_mask_that_hides_every_gpu(mask: str) -> None:
    environ = {"CUDA_VISIBLE_DEVICES": mask}
    assert choose(environ).device.type == "cpu"
    choice = choose(environ, backend=gs.gpu)
    assert choice.device.type == "cpu"
    assert "hides every GPU" in choice.warnings[0]
    for request in ({"backend": gs.cuda}, {"device": "cuda"}, {"device": "cuda:0", "backend": gs.gpu}):
        with pytest.raises(gs.GenesisException, match="hides every GPU"):
            choose(environ, **request)


def test_machine_without_gpu() -> None:
    assert choose({}, count=0) == Choice(torch.device("cpu"))
    assert "finds no GPU" in choose({}, count=0, backend=gs.gpu).warnings[0]
    with pytest.raises(gs.GenesisException, match="not available on this machine"):
        choose({}, count=0, backend=gs.cuda)


@pytest.mark.parametrize("backend", [gs.amdgpu, gs.metal])
def test_backend_that_is_not_supported(backend: Any) -> None:
    with pytest.raises(gs.GenesisException, match="gs.cpu and gs.cuda"):
        choose({}, backend=backend)


def test_cpu_asks_no_driver() -> None:
    environ: dict[str, str] = {"CUDA_VISIBLE_DEVICES": "0,0", "QD_VISIBLE_DEVICE": "nonsense"}
    driver = FakeDriver(machine(2), environ)
    assert resolve(environ, driver, gs.cpu).device.type == "cpu"
    assert resolve(environ, driver, None, "cpu").device.type == "cpu"
    assert resolve(environ, driver, None, None, debug=True).device.type == "cpu"
    assert not driver.started()


@pytest.mark.parametrize(("backend", "device"), [(gs.cpu, "cuda:0"), (gs.cuda, "cpu"), (gs.gpu, "cpu")])
def test_backend_and_device_that_contradict(backend: Any, device: str) -> None:
    with pytest.raises(gs.GenesisException, match="contradict"):
        choose({}, backend=backend, device=device)


def test_mig_instances() -> None:
    mask = "MIG-abcdef01-0000-0000-0000-000000000000"
    for listed in (True, False):
        choice = choose({"CUDA_VISIBLE_DEVICES": mask}, mig=(MIG,), listed=listed)
        assert (choice.device.index, uuid(choice)) == (0, MIG)
    choice = choose({"CUDA_VISIBLE_DEVICES": mask, "QD_VISIBLE_DEVICE": "3"}, mig=(MIG,))
    assert choice.device.index == 0
    assert "ignored" in choice.notes[0]
    with pytest.raises(gs.GenesisException, match="accepts the first 0|finds no GPU"):
        choose({"CUDA_VISIBLE_DEVICES": "MIG-99999999"}, backend=gs.cuda, mig=(MIG,))


def test_old_mig_names_are_taken_on_trust() -> None:
    environ = {"CUDA_VISIBLE_DEVICES": "MIG-GPU-11111111/1/0"}
    driver = FakeDriver(machine(2), environ)
    driver.seen = (machine(2)[1],)
    assert resolve(environ, driver).device.index == 0


def test_ranks_that_share_one_gpu_are_told() -> None:
    choice = choose({"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}, count=1)
    assert choice.device.index == 0
    assert "share" in choice.notes[0]


def test_torch_current_device_is_kept() -> None:
    assert choose({}, current=2, contexts=(2,)).device.index == 2
    assert choose({"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"}, current=2).device.index == 2
    assert choose({"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"}, current=0).device.index == 1
    with pytest.raises(gs.GenesisException, match="current device cuda:2"):
        choose({"QD_VISIBLE_DEVICE": "1"}, current=2)


def test_context_elsewhere_before_the_choice() -> None:
    with pytest.raises(gs.GenesisException, match=r"too late.*context on cuda:0"):
        choose({"QD_VISIBLE_DEVICE": "1"}, contexts=(0,))
    choice = choose({}, device="cuda:1", contexts=(0,))
    assert choice.device.index == 1
    assert "context on cuda:0" in choice.warnings[0]


@pytest.mark.parametrize("at_start", [None, "0", "0,1", "2"])
@pytest.mark.parametrize("later", ["1", "1,0", GPU_1])
def test_mask_set_after_cuda_started(at_start: str | None, later: str) -> None:
    environ = {} if at_start is None else {"CUDA_VISIBLE_DEVICES": at_start}
    driver = FakeDriver(machine(4), environ)
    driver.start()  # torch.cuda.is_available(), say
    environ["CUDA_VISIBLE_DEVICES"] = later
    with pytest.raises(gs.GenesisException, match="too late"):
        resolve(environ, driver)


def test_mask_set_before_cuda_started() -> None:
    environ = {"CUDA_VISIBLE_DEVICES": "1"}
    driver = FakeDriver(machine(4), environ)
    driver.start()
    assert uuid(resolve(environ, driver)) == GPU_1


@given(st.lists(st.integers(0, 7), min_size=1, max_size=8, unique=True), st.data())
def test_mask_in_any_order(mask: list[int], data: st.DataObject) -> None:
    """The chosen GPU is the mask's entry, and QD_VISIBLE_DEVICE finds any of its entries."""
    pin = data.draw(st.sampled_from(mask))
    environ = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, mask))}
    assert uuid(choose(environ, 8)) == machine(8)[mask[0]].uuid
    choice = choose({**environ, "QD_VISIBLE_DEVICE": str(pin)}, 8)
    assert (choice.device.index, uuid(choice)) == (mask.index(pin), machine(8)[pin].uuid)


@given(st.text(max_size=12))
def test_any_mask_text_is_parsed_or_refused(text: str) -> None:
    try:
        entries = parse_mask(text)
    except gs.GenesisException as error:
        assert repr(text) in str(error)
    else:
        assert entries is not None
        assert len(set(entries)) == len(entries)


def _pin_in_child(variable: str, value: str, answer: Any) -> None:
    """Pin after the import of torch and the package, as a worker process does."""
    os.environ[variable] = value
    choice = resolve(os.environ, FakeDriver(machine(4), os.environ))
    answer.put((choice.device.index, uuid(choice), torch.cuda.is_initialized()))


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_pin_in_child_process(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system cannot {method}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    context = multiprocessing.get_context(method)
    answer = context.SimpleQueue()
    for variable, index in (("CUDA_VISIBLE_DEVICES", 0), ("QD_VISIBLE_DEVICE", 2)):
        child = context.Process(target=_pin_in_child, args=(variable, "2", answer))
        child.start()
        child.join(60)
        assert child.exitcode == 0
        assert answer.get() == (index, machine(4)[2].uuid, False)
