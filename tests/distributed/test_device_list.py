"""Which devices `launch` gives to its processes: every form of id, mask and order, over a fake driver."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pluriverse as gs
from fake_driver import FakeDriver, machine
from pluriverse.devices import Gpu
from pluriverse.distributed.device_list import Share, assign

UUIDS = [gpu.uuid for gpu in machine(8)]
MIG = [f"GPU-abcdef0{k}-0000-0000-0000-000000000000" for k in range(2)]  # as CUDA writes them
MIG_ENTRIES = [uuid.replace("GPU", "MIG") for uuid in MIG]


def shares(devices: Any, environ: dict[str, str] | None = None, count: int = 4, **options: Any) -> tuple[Share, ...]:
    environ = environ or {}
    cores, per_device = options.pop("cores", range(8)), options.pop("per_device", 1)
    return assign(devices, environ, FakeDriver(machine(count), environ, **options), cores, per_device)


def masks(*args: Any, **options: Any) -> list[str | None]:
    return [share.variables["CUDA_VISIBLE_DEVICES"] for share in shares(*args, **options)]


def cores(*args: Any, **options: Any) -> list[tuple[int, ...] | None]:
    return [share.cores for share in shares(*args, **options)]


# The caller's mask, devices -> the children's masks.
@pytest.mark.parametrize(
    ("mask", "devices", "expected"),
    [
        (None, "all", ["0", "1", "2", "3"]),
        (None, "0,2", ["0", "2"]),
        (None, "3, 1", ["3", "1"]),
        (None, [2, "0"], ["2", "0"]),
        (None, (1,), ["1"]),
        (None, "01", ["1"]),
        (None, UUIDS[1], ["1"]),
        (None, "GPU-2222", ["2"]),
        (None, f"3,{UUIDS[0]}", ["3", "0"]),
        ("3,1", "all", ["3", "1"]),
        ("3,1", "1", ["1"]),
        ("3,1", "0", ["3"]),
        ("3,1", UUIDS[3], ["3"]),
        (" 02 , 1", "0,1", ["2", "1"]),
        ("3,-1,0", "all", ["3"]),
        (UUIDS[2], "all", [UUIDS[2]]),
        (f"{UUIDS[2]},GPU-1111", "1,0", ["GPU-1111", UUIDS[2]]),
        (f"{UUIDS[2]},GPU-1111", UUIDS[1], ["GPU-1111"]),
        (f"{UUIDS[2]},GPU-1111", "GPU-1", ["GPU-1111"]),
        (",".join(MIG_ENTRIES), "all", MIG_ENTRIES),
        (",".join(MIG_ENTRIES), "1", [MIG_ENTRIES[1]]),
        (",".join(MIG_ENTRIES), MIG_ENTRIES[1], [MIG_ENTRIES[1]]),
        (",".join(MIG_ENTRIES), "MIG-abcdef01", [MIG_ENTRIES[1]]),
        (",".join(MIG_ENTRIES), MIG[0], [MIG_ENTRIES[0]]),  # the uuid that gs.init logs
    ],
)
@pytest.mark.parametrize("listed", [True, False])
def test_ids(mask: str | None, devices: Any, expected: list[str], listed: bool) -> None:
    environ = {} if mask is None else {"CUDA_VISIBLE_DEVICES": mask}
    assert masks(devices, environ, mig=tuple(MIG), listed=listed) == expected


@given(st.lists(st.integers(0, 7), min_size=1, max_size=8, unique=True), st.data())
def test_ids_count_in_the_callers_mask(mask: list[int], data: st.DataObject) -> None:
    """By index, uuid, or both: a child's GPU is the one that the id names among those of the caller."""
    chosen = data.draw(st.lists(st.integers(0, len(mask) - 1), min_size=1, unique=True))
    by_uuid = data.draw(st.lists(st.booleans(), min_size=len(chosen), max_size=len(chosen)))
    devices = [UUIDS[mask[k]] if uuid else k for k, uuid in zip(chosen, by_uuid, strict=True)]
    environ = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, mask))}
    found = shares(devices, environ, 8)
    assert [share.label for share in found] == [f"cuda:{k} = {UUIDS[mask[k]]}" for k in chosen]
    for share, k in zip(found, chosen, strict=True):
        child = FakeDriver(machine(8), {"CUDA_VISIBLE_DEVICES": str(share.variables["CUDA_VISIBLE_DEVICES"])})
        assert [gpu.uuid for gpu in child.visible()] == [UUIDS[mask[k]]]


@pytest.mark.parametrize(
    ("environ", "devices", "expected"),
    [
        ({"QD_VISIBLE_DEVICE": "2"}, "all", ["2"]),
        ({"QD_VISIBLE_DEVICE": "2"}, "0", ["2"]),
        ({"QD_VISIBLE_DEVICE": "2"}, UUIDS[2], ["2"]),
        ({"QD_VISIBLE_DEVICE": UUIDS[3], "EGL_DEVICE_ID": "1"}, "all", ["3"]),
        ({"QD_VISIBLE_DEVICE": "1", "CUDA_VISIBLE_DEVICES": "3,1"}, "all", ["1"]),
        ({"QD_VISIBLE_DEVICE": "", "CUDA_VISIBLE_DEVICES": "3,1"}, "all", ["3", "1"]),
        ({"QD_VISIBLE_DEVICE": "0", "CUDA_VISIBLE_DEVICES": UUIDS[3]}, "all", [UUIDS[3]]),
    ],
)
def test_qd_visible_device_narrows_and_is_not_inherited(environ: dict[str, str], devices: str, expected: list) -> None:
    assert masks(devices, environ) == expected
    for share in shares(devices, environ):
        assert share.variables["QD_VISIBLE_DEVICE"] is None
        assert share.variables["EGL_DEVICE_ID"] is None


# What is given -> words of the error.
@pytest.mark.parametrize(
    ("environ", "devices", "words"),
    [
        ({}, "4", ["devices='4'", "none", "4 GPUs", "index into that list"]),
        ({}, "GPU-ffff", ["'GPU-ffff'", "none"]),
        ({"CUDA_VISIBLE_DEVICES": "3,1"}, "3", ["'3'", "2 GPUs", "CUDA_VISIBLE_DEVICES='3,1'"]),
        ({"CUDA_VISIBLE_DEVICES": "3,1"}, UUIDS[0], ["none", "2 GPUs"]),
        ({"QD_VISIBLE_DEVICE": "2"}, "2", ["1 GPU ", "QD_VISIBLE_DEVICE='2'"]),
        ({"QD_VISIBLE_DEVICE": "2"}, UUIDS[1], ["none", "1 GPU "]),
        ({}, "GPU-", ["'GPU-' names 4"]),
        ({}, "MIG-GPU-1111/1/0", ["names none"]),
        ({}, "0,0", ["cuda:0 = GPU-0000", "twice", "per_device=2"]),
        ({}, f"1,{UUIDS[1]}", ["cuda:1", "twice"]),
        ({}, "cuda:1", ["'cuda:1' is no device id", "'0,2'"]),
        ({}, "-1", ["'-1' is no device id"]),
        ({}, "0 1", ["'0 1' is no device id"]),
        ({}, "²", ["no device id"]),
        ({}, "0,,1", ["'' is no device id"]),
        ({}, "", ["'' is no device id"]),
        ({}, [], ["devices=[]", "no list"]),
        ({}, 2, ["devices=2", "no list"]),
        ({}, [True], ["'True' is no device id"]),
        ({}, "cpu,0", ["cpu, 0", "stand alone"]),
        ({}, "cpu,cpu", ["'cpu:4'"]),
        ({}, ["all", 0], ["stand alone"]),
        ({}, "cpu:0", ["'cpu:0'", "number of processes"]),
        ({}, "cpu:x", ["'cpu:x'", "'cpu:4'"]),
        ({}, "cpu:", ["'cpu:'"]),
        ({"CUDA_VISIBLE_DEVICES": "9"}, "all", ["CUDA_VISIBLE_DEVICES='9'", "out of range"]),
        ({"CUDA_VISIBLE_DEVICES": ""}, "0", ["devices='0'", "no GPU is usable", "hides every GPU", "'cpu'"]),
        ({"QD_VISIBLE_DEVICE": "0", "CUDA_VISIBLE_DEVICES": "1"}, "all", ["contradict"]),
    ],
)
def test_refuses(environ: dict[str, str], devices: Any, words: list[str]) -> None:
    with pytest.raises(gs.GenesisException) as error:
        shares(devices, environ)
    for word in words:
        assert word in str(error.value)


def test_a_mask_entry_of_the_old_mig_form() -> None:
    entry = "MIG-GPU-11111111/1/0"
    environ = {"CUDA_VISIBLE_DEVICES": entry}
    driver = FakeDriver(machine(2), environ)
    driver.seen = (Gpu(MIG[0]),)
    for devices in ("0", "all", entry, MIG[0]):
        assert assign(devices, environ, driver, range(2))[0].variables["CUDA_VISIBLE_DEVICES"] == entry


@pytest.mark.parametrize("at_start", ["2", "1,0"])
def test_a_mask_changed_after_cuda_started(at_start: str) -> None:
    environ = {"CUDA_VISIBLE_DEVICES": at_start}
    driver = FakeDriver(machine(4), environ)
    driver.start()
    for later in ({"CUDA_VISIBLE_DEVICES": "3"}, {}):  # unset, it would show a child what its parent does not see
        with pytest.raises(gs.GenesisException, match="when CUDA started|too late"):
            assign("all", later, driver, range(2))
    assert assign("all", environ, driver, range(2))


def test_processes_that_share_devices() -> None:
    found = shares("2,0", per_device=2, cores=range(10))
    assert [share.variables["CUDA_VISIBLE_DEVICES"] for share in found] == ["2", "2", "0", "0"]
    assert {share.variables["OMP_NUM_THREADS"] for share in found} == {"2"}
    assert cores("2,0", per_device=2) == [None] * 4
    assert cores("cpu:2", per_device=2, cores=range(4)) == [(0,), (1,), (2,), (3,)]
    for wrong in (0, -1, 1.5, "2", True):
        with pytest.raises(gs.GenesisException, match="per_device"):
            shares("all", per_device=wrong)


@pytest.mark.parametrize(
    ("devices", "own", "expected"),
    [
        ("cpu", {5, 3, 4}, [(3, 4, 5)]),
        ("cpu:2", {0, 1, 2, 3}, [(0, 1), (2, 3)]),
        ("cpu:3", {9, 1, 2, 4, 8}, [(1, 2), (4, 8), (9,)]),
        ("cpu:3", {6, 7}, [(6,), (7,), (6,)]),
        (["cpu:2"], {0, 1}, [(0,), (1,)]),
    ],
)
def test_cores(devices: Any, own: set[int], expected: list[tuple[int, ...]]) -> None:
    assert cores(devices, cores=own) == expected
    for share in shares(devices, cores=own):
        assert share.cores is not None
        assert share.variables["CUDA_VISIBLE_DEVICES"] == ""
        assert share.variables["OMP_NUM_THREADS"] == str(len(share.cores))
        assert share.label.startswith(f"cpu, {len(share.cores)} core")


@given(st.integers(1, 70), st.integers(1, 70))
def test_cores_are_dealt_out_evenly(count: int, own: int) -> None:
    dealt = cores(f"cpu:{count}", cores=range(own))
    sizes = [len(share or ()) for share in dealt]
    assert len(dealt) == count
    assert {core for share in dealt for core in share or ()} == set(range(own))
    assert max(sizes) - min(sizes) <= 1
    if count <= own:
        assert sum(sizes) == own


def test_the_cpu_asks_no_driver() -> None:
    environ = {"CUDA_VISIBLE_DEVICES": "0,0", "QD_VISIBLE_DEVICE": "nonsense"}
    driver = FakeDriver(machine(2), environ)
    assert len(assign("cpu:2", environ, driver, range(2))) == 2
    assert not driver.started()


@pytest.mark.parametrize(("environ", "count"), [({}, 0), ({"CUDA_VISIBLE_DEVICES": "-1"}, 4)])
def test_all_without_a_gpu_is_the_cpu(environ: dict[str, str], count: int) -> None:
    (share,) = shares("all", environ, count, cores={0, 1, 4})
    assert share.cores == (0, 1, 4)
    assert share.variables["CUDA_VISIBLE_DEVICES"] == ""
    assert "cpu, 3 cores (no GPU: " in share.label


@pytest.mark.parametrize(("own", "expected"), [("1", "1"), ("9", "4"), ("", "4"), ("4,2", "4,2")])
def test_the_callers_number_of_threads_is_kept(own: str, expected: str) -> None:
    assert shares("cpu", {"OMP_NUM_THREADS": own}, cores=range(4))[0].variables["OMP_NUM_THREADS"] == expected
    assert shares("0", {"OMP_NUM_THREADS": own}, cores=range(4))[0].variables["OMP_NUM_THREADS"] == expected
