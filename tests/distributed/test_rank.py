"""Ranks from the variables of launchers, and what follows from a rank."""

from __future__ import annotations

import pytest

import pluriverse as gs
from pluriverse.distributed.rank import Rank, export, read_rank

TORCHRUN = {
    "RANK": "5",
    "WORLD_SIZE": "8",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "4",
    "MASTER_ADDR": "node0",
    "MASTER_PORT": "29500",
}


def test_nobody_launched() -> None:
    rank = read_rank({})
    assert (rank.rank, rank.world_size, rank.local_rank, rank.local_world_size, rank.master) == (0, 1, 0, 1, None)


def test_torchrun() -> None:
    rank = read_rank({**TORCHRUN, "TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RESTART_COUNT": "2"})
    assert (rank.rank, rank.world_size, rank.local_rank, rank.local_world_size) == (5, 8, 1, 4)
    assert (rank.master, rank.agent_store, rank.restarts) == (("node0", 29500), True, 2)
    assert export(rank) == TORCHRUN


def test_torchrun_inside_slurm_counts() -> None:
    slurm = {"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "1"}
    assert read_rank({**slurm, **TORCHRUN}).rank == 5


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"WORLD_SIZE": None}, "WORLD_SIZE is not set"),
        ({"RANK": None}, "RANK is not set"),
        ({"RANK": "first"}, "RANK='first' is no number"),
        ({"RANK": "8"}, "RANK=8 must be below WORLD_SIZE=8"),
        ({"LOCAL_RANK": "4"}, "LOCAL_RANK=4 must be below LOCAL_WORLD_SIZE=4"),
        ({"MASTER_ADDR": None}, "without MASTER_ADDR and MASTER_PORT"),
        ({"MASTER_PORT": None}, "without MASTER_ADDR and MASTER_PORT"),
        ({"MASTER_PORT": "http"}, "MASTER_PORT='http' is no number"),
    ],
)
def test_incomplete_variables_are_refused(change: dict[str, str | None], says: str) -> None:
    environ = {name: value for name, value in {**TORCHRUN, **change}.items() if value is not None}
    with pytest.raises(gs.GenesisException, match=says):
        read_rank(environ)


@pytest.mark.parametrize(("total", "ranks"), [(256, 2), (17, 3), (3, 3), (100, 7)])
def test_ranks_share_all_environments(total: int, ranks: int) -> None:
    shares = [Rank(rank=rank, world_size=ranks).envs(total) for rank in range(ranks)]
    assert [env for share in shares for env in share] == list(range(total))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@pytest.mark.parametrize("total", [1, 0, -4, 2.0, True])
def test_too_few_environments_are_refused(total: object) -> None:
    with pytest.raises(gs.GenesisException, match="cannot be shared among 2 ranks"):
        Rank(world_size=2).envs(total)  # type: ignore[arg-type]
