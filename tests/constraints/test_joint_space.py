"""The solve in joint coordinates: elimination written out, and in loops over blocks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pluriverse.step
from physics_models import load
from physics_reference import DOUBLE, FloatStep, error, mujoco_step, samples, settings_of
from pluriverse.constraints.block_system import LONGEST, BlockSystem, dof_blocks
from pluriverse.model import Model
from pluriverse.trace.numbers import Numbers

BLOCKS = {  # where blocks start
    "chain": [0, 5, 11, 17, 22, 28, 34],
    "four_legs": [0, 6, 8, 10, 12],
    "round": [0, 3, 7, 13],
}


@pytest.mark.parametrize("name", ["equality", "round", "contact_parameters", "torsion", "elliptic", "four_legs"])
def test_loops_do_what_unrolled_code_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mj_model = load(name)
    options = settings_of(mj_model, tolerance=0.0, path="joint_space")
    batch = samples(mj_model, 4)
    unrolled = [FloatStep(mj_model, sample, options).result() for sample in batch]
    monkeypatch.setattr(pluriverse.step, "UNROLLED", 0)
    looped = [FloatStep(mj_model, sample, options).result() for sample in batch]
    assert max(max(one.errors(two)) for one, two in zip(looped, unrolled)) <= DOUBLE


def test_large_model_is_solved_in_loops() -> None:
    mj_model = load("chain")
    assert mj_model.nv > pluriverse.step.UNROLLED
    for sample in samples(mj_model, 4):
        result = FloatStep(mj_model, sample, settings_of(mj_model, tolerance=0.0)).result()
        assert max(result.errors(mujoco_step(mj_model, sample))) <= DOUBLE


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_are_runs_without_branches(name: str) -> None:
    blocks = dof_blocks(Model.from_mujoco(load(name)))
    assert [block.start for block in blocks] == BLOCKS[name]
    assert max(map(len, blocks)) <= LONGEST


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 6))
def test_block_system_solves(seed: int, contacts: int) -> None:
    """A tree's matrix, and more where random bodies touch."""
    rng = np.random.default_rng(seed)
    model = Model.from_mujoco(load("torsion"))
    n, blocks = model.nv, dof_blocks(model)
    chains = [[d, *_ancestors(model, d)] for d in range(n)]
    H = np.eye(n)
    places = {(i, j) for chain in chains for i in chain for j in chain if j <= i}
    for chain in chains:
        J = np.zeros(n)
        J[chain] = rng.normal(size=len(chain))
        H += np.outer(J, J)
    system = BlockSystem(Numbers(), model, places)
    for _ in range(contacts):
        two = rng.integers(0, n, 2)
        touched = sorted({system.block_of[d] for k in two for d in chains[k]})
        J = np.zeros(n)
        for b in touched:
            J[list(blocks[b])] = rng.normal(size=len(blocks[b]))
        H += np.outer(J, J)
        for a in touched:
            for b in touched:
                if b < a:
                    system.couple(a, b)
    system.fill_in()
    for k in range(n * n):
        system.H[k] = float("nan")
    system.clear()
    y = rng.normal(size=n)
    for i in range(n):
        system.y[i] = y[i]
        for j in range(i + 1):
            if H[i, j]:
                system.H[i * n + j] = H[i, j]
    assert error(system.solve(), np.linalg.solve(H, y)) <= DOUBLE


def _ancestors(model: Model, dof: int) -> list[int]:
    parent = int(model.dof_parentid[dof])
    return [] if parent < 0 else [parent, *_ancestors(model, parent)]
