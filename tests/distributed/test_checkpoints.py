"""Checkpoints of one rank, and worlds dealt out by their global numbers."""

from __future__ import annotations

import random
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import pluriverse as gs
from pluriverse.distributed.dealing import deal
from pluriverse.distributed.rank import Rank

CPU = torch.device("cpu")


def scene(n_envs: int = 3) -> gs.Scene:
    made = gs.Scene(show_FPS=False)
    made.add_entity(gs.morphs.Box(size=(0.1, 0.1, 0.1), pos=(0.0, 0.0, 1.0)))
    made.build(n_envs=n_envs)
    return made


def draw() -> tuple[Any, ...]:
    return torch.rand(3).tolist(), np.random.rand(3).tolist(), random.random()


def test_everything_comes_back(gs_cpu: ModuleType, tmp_path: Path) -> None:
    made, policy = scene(), nn.Linear(2, 2)
    optimizer = torch.optim.Adam(policy.parameters())
    policy(torch.ones(2)).sum().backward()
    optimizer.step()
    checkpoints = gs.distributed.Checkpoints(tmp_path, Rank())
    assert checkpoints.load(made, policy=policy, optimizer=optimizer) is None
    made.step()
    checkpoints.save(7, made, per_env=[torch.arange(3)], policy=policy, optimizer=optimizer)
    weights, drawn = policy.weight.clone(), draw()
    made.step()
    qpos = made.rigid_solver.get_qpos()

    other, fresh = scene(), nn.Linear(2, 2)
    adam = torch.optim.Adam(fresh.parameters())
    resumed = gs.distributed.Checkpoints(tmp_path, Rank()).load(other, policy=fresh, optimizer=adam)
    assert resumed is not None
    assert resumed.step == 7
    assert torch.equal(resumed.per_env[0], torch.arange(3))
    assert torch.equal(fresh.weight, weights)
    assert adam.state_dict()["state"][0]["step"] == 1
    assert draw() == drawn
    other.step()
    assert torch.equal(other.rigid_solver.get_qpos(), qpos)


def test_the_newest_stay_and_incomplete_ones_do_not_count(gs_cpu: ModuleType, tmp_path: Path) -> None:
    made = scene()
    checkpoints = gs.distributed.Checkpoints(tmp_path, Rank(), keep=2)
    for step in (1, 2, 3):
        checkpoints.save(step, made)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-0000000002", "step-0000000003"]
    whole = tmp_path / "step-0000000003" / "rank-00000-of-00001.pt"
    whole.rename(whole.with_name("rank-00000-of-00002.pt"))  # the other rank died before it wrote
    resumed = checkpoints.load(made)
    assert resumed is not None
    assert resumed.step == 2
    assert [path.name for path in tmp_path.iterdir()] == ["step-0000000002"]


def test_a_checkpoint_that_does_not_fit_is_refused(gs_cpu: ModuleType, tmp_path: Path) -> None:
    made = scene()
    checkpoints = gs.distributed.Checkpoints(tmp_path, Rank())
    checkpoints.save(1, made, policy=nn.Linear(2, 2))
    with pytest.raises(gs.GenesisException, match=r"holds \['policy'\], and load was given \['actor'\]"):
        checkpoints.load(made, actor=nn.Linear(2, 2))
    with pytest.raises(gs.GenesisException, match="Environments 0 to 3 are wanted here, and .* hold 0 to 2"):
        checkpoints.load(scene(4), policy=nn.Linear(2, 2))
    with pytest.raises(gs.GenesisException, match="keep=0 checkpoints"):
        gs.distributed.Checkpoints(tmp_path, Rank(), keep=0)


def test_two_runs_do_not_mix_in_a_folder(gs_cpu: ModuleType, tmp_path: Path) -> None:
    made = scene()
    gs.distributed.Checkpoints(tmp_path, Rank()).save(30, made)
    other = gs.distributed.Checkpoints(tmp_path, Rank())
    with pytest.raises(gs.GenesisException, match="holds a checkpoint of step 30, later than this one of step 10"):
        other.save(10, made)
    stale = tmp_path / "step-0000000030" / "rank-00000-of-00002.pt"
    stale.touch()
    stale.with_name("rank-00001-of-00002.pt").touch()
    other.save(30, made)
    assert [path.name for path in stale.parent.iterdir()] == ["rank-00000-of-00001.pt"]


def saved(first: int, stop: int, **facts: Any) -> dict[str, Any]:
    shared = {"format": 1, "model": "m", "dt": 0.01, "seed": 3, "steps": 9, "holders": [0], "step_of_reset": 0}
    return {**shared, "first_env": first, "envs": {"motion": torch.arange(first, stop)[:, None] * 1.0}, **facts}


@pytest.mark.parametrize("wanted", [range(10), range(3, 5), range(4, 9), range(9, 10)])
def test_worlds_are_cut_and_joined(wanted: range) -> None:
    states = [saved(4, 7), saved(0, 4), saved(7, 10)]  # in any order
    extras = [{"age": state["envs"]["motion"] + 100} for state in states]
    worlds, per_env = deal(states, extras, wanted, CPU)
    assert worlds["first_env"] == wanted.start
    assert worlds["envs"]["motion"][:, 0].tolist() == list(wanted)
    assert per_env["age"][:, 0].tolist() == [env + 100 for env in wanted]


@pytest.mark.parametrize(
    ("states", "says"),
    [
        (
            [saved(0, 4), saved(5, 8)],
            "Environments 0 to 7 are wanted here, and the checkpoint's ranks hold 0 to 3, 5 to 7",
        ),
        ([saved(0, 4), saved(3, 8)], "hold 0 to 3, 3 to 7"),
        ([saved(0, 4), saved(4, 7)], "hold 0 to 3, 4 to 6"),
        ([saved(0, 4), saved(4, 8, steps=8)], r"differ in 'steps': \[9, 8\]"),
        ([saved(0, 4), saved(4, 8, envs={"motion": torch.zeros(4, 1), "draws/a": torch.zeros(4)})], r"\['draws/a'\]"),
    ],
)
def test_worlds_that_do_not_fit_together_are_refused(states: list[dict[str, Any]], says: str) -> None:
    with pytest.raises(gs.GenesisException, match=says):
        deal(states, [None] * len(states), range(8), CPU)
