"""Every kind of index means what numpy says it means, and what is no index is refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pluriverse.errors import GenesisException
from pluriverse.solver.indexing import EnvAxis, RowAxis

CPU = torch.device("cpu")


def axis(members: Any = range(10, 17)) -> RowAxis:
    return RowAxis(np.array(members), CPU, argument="dofs_idx_local", owner="entity 'arm' (7 dofs)")


@st.composite
def indices(draw: st.DrawFn, size: int) -> tuple[Any, list[int]]:
    """An index of some kind over 0..size-1, and the list it means."""
    if draw(st.booleans()) and size:
        mask = draw(st.lists(st.booleans(), min_size=size, max_size=size))
        chosen = [i for i, keep in enumerate(mask) if keep]
        kind = draw(st.sampled_from([list, tuple, np.array, torch.tensor]))
        return kind(mask), chosen
    form = draw(st.sampled_from(["none", "int", "slice", "range", "list"]))
    if form == "none" or not size:
        return None, list(range(size))
    if form == "int":
        i = draw(st.integers(-size, size - 1))
        return draw(st.sampled_from([int, np.int64, torch.tensor]))(i), [i % size]
    if form == "slice":
        bounds = st.none() | st.integers(-size, size)
        step = draw(st.none() | st.integers(1, 3) | st.integers(-3, -1))
        index = slice(draw(bounds), draw(bounds), step)
        return index, list(range(size))[index]
    if form == "range":
        start, stop = draw(st.integers(0, size)), draw(st.integers(0, size))
        index = range(start, stop, draw(st.integers(1, 3)))
        return index, list(index)
    chosen = draw(st.lists(st.integers(-size, size - 1), unique_by=lambda i: i % size, max_size=size))
    kind = draw(st.sampled_from([list, tuple, lambda x: np.array(x, dtype=np.int32), lambda x: torch.tensor(x).int()]))
    return kind(chosen), [i % size for i in chosen]


@given(indices(7))
def test_rows_of_every_kind(case: tuple[Any, list[int]]) -> None:
    index, chosen = case
    rows = axis().select(index)
    assert rows.indices.tolist() == [10 + i for i in chosen]
    assert torch.arange(30)[rows.where].tolist() == [10 + i for i in chosen]


@given(indices(5))
def test_environments_of_every_kind(case: tuple[Any, list[int]]) -> None:
    index, chosen = case
    envs = EnvAxis(5, CPU).select(index)
    assert torch.arange(5)[envs.where].tolist() == chosen
    assert envs.count == len(chosen)


def test_rows_need_not_follow_each_other() -> None:
    rows = axis([2, 9, 4]).select([-1, 0])
    assert rows.indices.tolist() == [4, 2]


def test_runs_become_slices() -> None:
    assert axis().select([2, 3, 4]).where == slice(12, 15)


@pytest.mark.parametrize("index", [7, -8, [0, 9], slice(0, 8), np.array([3, 7]), torch.tensor([7]), range(5, 9)])
def test_out_of_range_names_index_range_and_argument(index: Any) -> None:
    with pytest.raises(GenesisException, match=r"dofs_idx_local=.*out of range for entity 'arm' \(7 dofs\).*7"):
        axis().select(index)


@pytest.mark.parametrize(
    ("index", "problem"),
    [
        ([0.0, 1.0], "holds float64"),
        (torch.tensor([0.5]), "holds float32"),
        ([[0, 1]], "has 2 dimensions"),
        ("all", "holds"),
        ([1, [2]], "is no index"),
        ([True, 0], "mixes booleans and numbers"),
        ((1, np.True_, 0), "mixes booleans and numbers"),
        (slice(True, None), "a slice takes integers"),
        (slice(0, 1.5), "a slice takes integers"),
        (slice(0, 2, 0), "step cannot be zero"),
        (np.array([True, False]), r"shape \(2,\); its shape must be \(7,\)"),
    ],
)
def test_what_is_no_index_is_refused(index: Any, problem: str) -> None:
    with pytest.raises(GenesisException, match=problem):
        axis().select(index)


def test_a_setter_takes_each_index_once() -> None:
    assert axis().select([1, 1]).count == 2
    with pytest.raises(GenesisException, match=r"dofs_idx_local names 1 more than once"):  # not 11
        axis().select([1, 2, 1]).unique()
    envs = EnvAxis(3, CPU).select([2, 0, 2])  # a getter may
    assert torch.arange(3)[envs.where].tolist() == [2, 0, 2]
    with pytest.raises(GenesisException, match="envs_idx names 2 more than once"):
        envs.unique()
    with pytest.raises(GenesisException, match="envs_idx.* mixes booleans and numbers"):
        EnvAxis(3, CPU).select([True, 0, 2])


def test_an_index_that_changes_is_read_again() -> None:
    arm, numbers = axis(), np.array([1, 3])
    shared = torch.from_numpy(numbers)
    for index in (numbers, shared, list(numbers)):
        assert arm.select(index).indices.tolist() == [11, 13]
    numbers[1] = 5  # torch does not see it
    for index in (numbers, shared):
        assert arm.select(index).indices.tolist() == [11, 15]


def test_a_tensor_of_inference_mode_is_an_index() -> None:
    with torch.inference_mode():
        index = torch.tensor([1, 3])
    assert axis().select(index).indices.tolist() == [11, 13]


def test_true_is_a_mask_entry_and_not_one() -> None:
    arm = axis(range(2))
    assert arm.select([1, 0]).indices.tolist() == [1, 0]
    assert arm.select([True, False]).indices.tolist() == [0]


def test_no_environment_axis_no_index() -> None:
    with pytest.raises(GenesisException, match="not supported for a non-parallelized scene"):
        EnvAxis(0, CPU).select(0)
    assert not EnvAxis(0, CPU).select(None).batched
    assert EnvAxis(1, CPU).select(None).batched
