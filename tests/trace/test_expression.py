"""Folding and common-subexpression elimination of traced scalars."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pluriverse.trace.expression import LaneConstant
from pluriverse.trace.functions import clamp, logical_not, maximum, power, select, sin
from pluriverse.trace.program import Program


@pytest.fixture
def run() -> Program:
    return Program()


@pytest.fixture
def x(run: Program) -> Any:
    return run.buffer("x").read(0)


@pytest.fixture
def y(run: Program) -> Any:
    return run.buffer("y").read(0)


SAME = [
    lambda x: x + 0.0,
    lambda x: 0.0 + x,
    lambda x: x - 0.0,
    lambda x: x * 1.0,
    lambda x: 1.0 * x,
    lambda x: x / 1.0,
]
SAME += [lambda x: 0.0 - (0.0 - x), lambda x: x * -1.0 * -1.0, lambda x: power(x, 1.0)]


@pytest.mark.parametrize("identity", SAME)
def test_identities_leave_no_trace(identity: Callable, x: Any) -> None:
    assert identity(x) is x


@pytest.mark.parametrize("zero", [lambda x: x * 0.0, lambda x: 0.0 * x, lambda x: x - x, lambda x: 0.0 / x])
def test_zeros_are_known(zero: Callable, x: Any) -> None:
    assert zero(x) == 0.0


def test_signs_move_outwards(x: Any, y: Any) -> None:
    assert (x + (-y)).op == "-"
    assert x - (-y) is x + y
    assert (-x) * (-y) is x * y
    assert ((-x) * y).op == "neg"
    assert 0.0 - x is -x


def test_constant_factors_join(x: Any) -> None:
    assert ((x * 2.0) * 3.0).args == (x, 6.0)
    assert (x / 4.0).args == (x, 0.25)


def test_equal_expressions_are_one(x: Any, y: Any) -> None:
    assert x * y is y * x
    assert x + y is y + x
    assert sin(x + y) is sin(y + x)
    assert x - y is not y - x
    assert (x < y) is (y > x)


def test_reads_are_not_merged(run: Program) -> None:
    buffer = run.buffer("z")
    assert buffer.read(0) is not buffer.read(0)


def test_blocks_use_what_enclosing_blocks_know(run: Program, x: Any, y: Any) -> None:
    outer = x * y
    for _ in run.when(x < y):
        assert x * y is outer
        one = x + y
        for _ in run.when(y < 0.0):
            assert x + y is one
    for _ in run.when(x < 1.0):
        assert x + y is not one  # a sibling's values are out of scope
    assert x + y is not one


def test_constant_conditions_decide_now(run: Program, x: Any, y: Any) -> None:
    assert select(True, x, y) is x
    assert select(False, x, y) is y
    assert select(x < y, x, x) is x
    assert select(x < y, 2.0, 2.0) == 2.0
    assert ((x < y) & True) is (x < y)
    assert ((x < y) & False) is False
    assert ((x < y) | True) is True
    assert run.choose(False, lambda: [x], [y]) == [y]
    assert [1 for _ in run.when(False)] == []


def test_values_of_different_kinds_are_different(x: Any, y: Any) -> None:
    """True == 1.0 in Python, but a mask is no float."""
    truth, number = select(x < y, True, False), select(x < y, 1.0, 0.0)
    assert truth is not number
    assert (truth.kind, number.kind) == ("bool", "float")


def test_no_truth_value(x: Any) -> None:
    with pytest.raises(TypeError, match="no truth value"):
        bool(x < 1.0)
    with pytest.raises(TypeError, match="no truth value"):
        max(x, 1.0)


def test_lane_constants_fold_lane_by_lane() -> None:
    run = Program(lanes=2)
    a, b = run.constant([1.0, 2.0]), run.constant([3.0, -2.0])
    assert isinstance(a, LaneConstant)
    assert (a + b).args == (4.0, 0.0)
    assert (a * b).args == (3.0, -4.0)
    assert (-a).args == (-1.0, -2.0)
    assert (a - a) == 0.0
    assert (a / b).args == (1 / 3, -1.0)
    assert (a * run.constant([2.0, 1.0])) == 2.0  # equal on all lanes: a plain number
    assert run.constant([1.0, 2.0]) is a


def test_plain_numbers_stay_plain() -> None:
    assert (clamp(3.0, 0.0, 1.0), maximum(-1.0, 2.0), logical_not(True)) == (1.0, 2.0, False)
