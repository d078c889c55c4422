"""What preflight finds wrong in the facts of the ranks, and that setup takes what the launcher says."""

from __future__ import annotations

import os
from types import ModuleType
from typing import Any

import pytest
import torch

import pluriverse as gs
from pluriverse.distributed.preflight import faults, line
from pluriverse.distributed.rank import Rank


def note(rank: int, **facts: Any) -> dict[str, Any]:
    defaults = {
        "rank": rank,
        "world_size": 2,
        "host": "node",
        "device": f"cuda:{rank}",
        "uuid": f"GPU-{rank}",
        "bus": f"0000:0{rank}:00.0",
        "name": "Fake",
        "egl": "EGL none",
        "cores": 8,
        "strays": [],
        "precision": 32,
        "versions": {"torch": "2.13"},
        "model": "abc",
    }
    return {**defaults, **facts}


def test_ranks_that_fit_pass() -> None:
    assert faults([note(0), note(1)], share_device=False) is None
    on_cpu = {"uuid": None, "device": "cpu"}
    assert faults([note(0, **on_cpu), note(1, **on_cpu)], share_device=False) is None


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        ({"uuid": "GPU-0"}, "ranks 0, 1 compute on one GPU, GPU-0"),
        (
            {"strays": ["GPU-0", "GPU-7"]},
            "rank 1 holds a CUDA context, and with it memory, on GPU-0, GPU-7 beside its own GPU-1",
        ),
        ({"uuid": None}, "rank 1 computes on the CPU, the others on GPUs"),
        ({"precision": 64}, "the ranks differ in the precision of gs.init: rank 0: 32; rank 1: 64"),
        (
            {"versions": {"torch": "2.12"}},
            "the ranks differ in versions: rank 0: {'torch': '2.13'}; rank 1: {'torch': '2.12'}",
        ),
        ({"model": "abd"}, "the ranks differ in their scene's model"),
        ({"world_size": 4}, "the ranks differ in what they take for the number of ranks"),
    ],
)
def test_each_fault_is_named(facts: dict[str, Any], says: str) -> None:
    assert says in str(faults([note(0), note(1, **facts)], share_device=False))


def test_all_faults_are_named_at_once() -> None:
    text = str(faults([note(0), note(1, uuid="GPU-0", model="abd")], share_device=False))
    assert "compute on one GPU" in text
    assert "scene's model" in text


def test_sharing_is_allowed_when_asked_for() -> None:
    assert faults([note(0), note(1, uuid="GPU-0")], share_device=True) is None


def test_a_line_says_where_a_rank_is() -> None:
    assert line(note(1)) == "rank 1 of 2 on node: cuda:1, Fake GPU-1, PCI 0000:01:00.0, EGL none"
    assert line(note(1, uuid=None, device="cpu")) == "rank 1 of 2 on node: cpu, 8 cores"


@pytest.fixture
def unseeded(monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
        monkeypatch.setenv(name, "")  # restored after the test, whatever setup writes
        monkeypatch.delenv(name)
    yield
    gs.destroy()


def test_setup_alone_is_rank_0_of_1(unseeded: None) -> None:
    rank = gs.distributed.setup(seed=4, backend=gs.cpu)
    assert (rank.rank, rank.world_size, rank.device, rank.gpu, rank.seed) == (0, 1, "cpu", None, 4)
    assert gs.SEED == 4
    assert "RANK" not in os.environ  # trainers would take this process for one of several
    assert not torch.distributed.is_initialized()
    gs.distributed.preflight(rank)


def test_generators_differ_from_rank_to_rank_and_streams_do_not(
    unseeded: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []
    for number in ("0", "1"):
        values = {"RANK": number, "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}  # two machines
        for name, value in {**values, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}.items():
            monkeypatch.setenv(name, value)
        rank = gs.distributed.setup(seed=4, backend=gs.cpu)
        assert rank.seed == gs.SEED == 4
        drawn.append(torch.rand(4))
        gs.destroy()
    assert not torch.equal(*drawn)


def test_a_running_session_is_kept(gs_cpu: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    assert gs.distributed.setup().device == "cpu"
    first = torch.rand(3)
    gs.destroy()
    gs.init(backend=gs.cpu, seed=9, logging_level="warning")
    assert gs.distributed.setup(seed=1).seed == 9
    assert not torch.equal(first, torch.rand(3))
    gs.destroy()
    gs.init(backend=gs.cpu, logging_level="warning")
    values = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    for name, value in {**values, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(gs.GenesisException, match="was given no seed"):
        gs.distributed.setup()
    for name in values:
        monkeypatch.delenv(name)
    with pytest.raises(gs.GenesisException, match="setup was given precision for gs.init"):
        gs.distributed.setup(precision="64")


def test_wrong_groups_are_refused(unseeded: None) -> None:
    with pytest.raises(gs.GenesisException, match="process_group='mpi'; give one of None, 'auto', 'nccl', 'gloo'"):
        gs.distributed.setup("mpi")
    with pytest.raises(gs.GenesisException, match="some ranks compute on the CPU, and NCCL needs a GPU for each rank"):
        gs.distributed.setup("nccl", backend=gs.cpu)


def test_preflight_wants_the_rank_of_setup() -> None:
    with pytest.raises(gs.GenesisException, match="needs the rank that gs.distributed.setup"):
        gs.distributed.preflight(Rank())
