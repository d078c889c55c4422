"""Jobs of several gloo ranks: planted faults end them and are named, checkpoints bring them back, worlds do not depend
on the number of ranks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from distributed.torchrun import leftovers, torchrun, worlds

LONGEST = 30  # seconds that a job may go on after a fault
START = 25  # seconds that a busy machine may take until the fault


@pytest.mark.parametrize(
    ("fault", "rank", "says"),
    [
        ("build", 1, r"rank 1 \(pid \d+ on .*\) failed in phase 'build': ValueError: planted in build"),
        ("step", 2, r"rank 2 \(pid \d+ on .*\) failed in phase 'step': ValueError: planted in step"),
        ("kill", 1, r"rank 1 \(pid \d+ on .*\) is gone: it was killed or crashed, last seen in phase 'step'"),
        ("kill", 0, r"rank 0 \(pid \d+ on .*\) is gone: it was killed or crashed, last seen in phase 'step'"),
        ("stall", 1, r"rank 1 \(pid \d+ on .*\) stalls in phase 'step' .*; meanwhile rank 0 in 'update'"),
        ("stop", 0, r"rank 0 \(pid \d+ on .*\) has given no sign for \d+ s, since phase 'step'"),
        ("hang", 1, r"rank 1 \(pid \d+ on .*\) has given no sign for \d+ s, since phase"),
        (
            "disk",
            1,
            r"rank 1 of 2, step 20: The checkpoint .* could not be written: .* last complete one is that of step 10",
        ),
        ("model", 1, r"Preflight: the ranks differ in their scene's model .*: rank 0: \w{64}; rank 1: \w{64}"),
        ("drift", 1, r"The ranks have drifted apart: rank 1 differs from rank 0 in policy\.0\.bias"),
    ],
)
def test_a_fault_ends_the_job_and_is_named(fault: str, rank: int, says: str, tmp_path: Path) -> None:
    ranks = 4 if rank == 2 else 2
    limit = 6 if fault in ("stall", "stop", "hang") else 20  # to find these takes so long
    ended = torchrun(ranks, "--fault", fault, "--fault_rank", rank, "--checkpoints", tmp_path, "--limit", limit)
    assert ended.code != 0, ended.output
    assert re.search(says, ended.output), ended.output
    assert ended.seconds < START + LONGEST
    assert not leftovers(tmp_path)
    if fault == "disk":
        assert not list(tmp_path.rglob("*.partial"))


def test_two_ranks_hold_the_worlds_of_one(tmp_path: Path) -> None:
    for ranks in (1, 2):
        folder = tmp_path / str(ranks)
        folder.mkdir()
        ended = torchrun(ranks, "--total", 256, "--steps", 100, "--out", folder)
        assert ended.code == 0, ended.output
    one, two = worlds(tmp_path / "1", 1), worlds(tmp_path / "2", 2)
    assert one["qpos"].shape == (256, 9)
    assert one["qpos"].isfinite().all()
    assert one["qpos"].std(0).min() > 1e-3  # they differ among each other
    for name in ("qpos", "dofs_vel"):
        assert torch.equal(one[name], two[name]), name


def test_a_killed_job_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    """torchrun's restart and an uninterrupted run end in the same bits: worlds, policy, buffers, per-env tensors."""
    for name, arguments in (("whole", ()), ("killed", ("--fault", "kill", "--fault_step", 15))):
        (tmp_path / name).mkdir()
        ended = torchrun(
            2,
            *("--out", tmp_path / name, "--checkpoints", tmp_path / name / "checkpoints", *arguments),
            options=("--standalone", "--max-restarts=1"),
        )
        assert ended.code == 0, ended.output
    assert "rank 1 resumed at 10" in ended.output
    whole, killed = worlds(tmp_path / "whole", 2), worlds(tmp_path / "killed", 2)
    assert whole.keys() == killed.keys()
    for name, value in whole.items():
        assert torch.equal(value, killed[name]), name


@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 2)])
def test_worlds_are_dealt_out_to_another_number_of_ranks(before: int, after: int, tmp_path: Path) -> None:
    checkpoints = tmp_path / "checkpoints"
    ended = torchrun(before, "--checkpoints", checkpoints, "--stop_at", 20, "--total", 17)
    assert ended.code == 0, ended.output
    ended = torchrun(after, "--checkpoints", checkpoints, "--out", tmp_path, "--total", 17)
    assert ended.code == 0, ended.output
    assert "resumed at 20" in ended.output
    whole = tmp_path / "whole"
    whole.mkdir()
    assert torchrun(1, "--out", whole, "--total", 17).code == 0
    expected, found = worlds(whole, 1), worlds(tmp_path, after)
    for name in ("qpos", "dofs_vel", "ages"):
        assert torch.equal(expected[name], found[name]), name
