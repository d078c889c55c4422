"""Jobs of two nodes, as two torchrun agents on loopback that meet by a c10d rendezvous; and nodes that do not come."""

from __future__ import annotations

import re
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

import pluriverse as gs
from distributed.torchrun import Ended, leftovers, torchrun, worlds

LONGEST = 30  # seconds that a job may go on after a fault
START = 25  # seconds that a busy machine may take until the fault


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def node(port: int, *arguments: object, options: tuple[str, ...] = ()) -> Ended:
    """One torchrun agent with one rank, of two."""
    rendezvous = ("--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=two_nodes")
    return torchrun(1, *arguments, options=("--nnodes=2", "--local-addr=127.0.0.1", *rendezvous, *options))


def two_nodes(*arguments: object) -> list[Ended]:
    port = free_port()
    with ThreadPoolExecutor() as threads:
        agents = [threads.submit(node, port, *arguments) for _ in range(2)]
    return [agent.result() for agent in agents]


def test_two_nodes_hold_the_worlds_of_one(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    ended = torchrun(1, "--total", 17, "--out", tmp_path / "one")
    assert ended.code == 0, ended.output
    for ended in two_nodes("--total", 17, "--out", tmp_path / "two"):
        assert ended.code == 0, ended.output
    one, two = worlds(tmp_path / "one", 1), worlds(tmp_path / "two", 2)
    assert one["qpos"].shape == (17, 9)
    for name in ("qpos", "dofs_vel", "ages"):
        assert torch.equal(one[name], two[name]), name


def test_a_fault_on_one_node_ends_both(tmp_path: Path) -> None:
    agents = two_nodes("--fault", "step", "--fault_rank", 1, "--out", tmp_path)
    for ended in agents:
        assert ended.code != 0, ended.output
        assert ended.seconds < START + LONGEST
        assert "ValueError: planted in step" in ended.output, ended.output
    (told,) = [ended.output for ended in agents if "rank 0 of 2: the job ends:" in ended.output]
    says = r"rank 1 \(pid \d+ on .*\) failed in phase 'step': ValueError: planted in step"
    assert re.search(says, told), told
    assert not leftovers(tmp_path)


def test_torchrun_gives_up_on_a_node_that_does_not_come(tmp_path: Path) -> None:
    ended = node(free_port(), "--out", tmp_path, options=("--rdzv-conf=join_timeout=3",))
    assert ended.code != 0
    assert "RendezvousTimeoutError" in ended.output
    assert not leftovers(tmp_path)


def test_preflight_names_the_rank_that_has_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {"RANK": 0, "WORLD_SIZE": 2, "LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 1, "MASTER_ADDR": "127.0.0.1"}
    for name, value in {**variables, "MASTER_PORT": free_port()}.items():
        monkeypatch.setenv(name, str(value))
    rank = gs.distributed.setup(backend=gs.cpu, logging_level="warning")
    try:
        with pytest.raises(gs.GenesisException, match="preflight: rank 1 of 2 has not come within 1 s"):
            gs.distributed.preflight(rank, timeout=1)
    finally:
        gs.destroy()
