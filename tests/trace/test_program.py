"""Programs against plain numbers: what is compiled does what Python does, on random programs and on special ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_programs import INPUTS, OUTPUTS, Machine, scripts

from pluriverse.trace import workspace
from pluriverse.trace.functions import (
    atan2,
    cos,
    exp,
    floor,
    logical_not,
    power,
    reciprocal,
    rsqrt,
    select,
    sin,
    sqrt,
)
from pluriverse.trace.numbers import Numbers
from pluriverse.trace.program import Program

N = 21  # environments: vectors of 8 doubles, the last one short


def on_numbers(body: Callable[[Any], object], arrays: dict[str, np.ndarray], **counts: int) -> dict[str, np.ndarray]:
    """What `body` does to each column of the arrays, on plain numbers."""
    result = {name: values.astype(float) for name, values in arrays.items()}
    for k in range(next(iter(arrays.values())).shape[1]):
        run = Numbers({name: values[:, k].tolist() for name, values in arrays.items()}, counts)
        body(run)
        for name, column in run.buffers.items():
            result[name][:, k] = column
    return result


def compiled(
    run_program: Callable, body: Callable[[Any], object], arrays: dict[str, np.ndarray], **counts: int
) -> dict:
    program = Program()
    body(program)
    return run_program(program, arrays, *counts.values())


@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.lists(scripts, min_size=5, max_size=5))
def test_random_programs(run_program: Callable, five: list[list]) -> None:
    inputs = np.random.default_rng(0).integers(-3, 4, size=(INPUTS, N)).astype(float)
    arrays = {"inputs": inputs, "outputs": np.zeros((len(five) * OUTPUTS, N))}

    def body(run: Any) -> None:
        buffer, outputs = run.buffer("inputs"), run.buffer("outputs")
        values = [x for script in five for x in Machine(run, [buffer.read(k) for k in range(INPUTS)], script).values]
        for row, value in enumerate(values):
            outputs.write(row, value)

    expected = on_numbers(body, arrays)
    assert np.array_equal(compiled(run_program, body, arrays)["outputs"], expected["outputs"])


def functions(run: Any) -> None:
    inputs, out = run.buffer("x"), run.buffer("out")
    x, y = inputs.read(0), inputs.read(1)
    values = [sin(x), cos(x), sqrt(y), rsqrt(y), reciprocal(y), atan2(x, y), atan2(x, -y), power(y, 2.5)]
    for row, value in enumerate([*values, x / y, 1.0 / x, y - 3.25e-7, exp(-y), floor(x)]):
        out.write(row, value)


@pytest.mark.parametrize(("double", "limit"), [(True, 1e-14), (False, 3e-7)])
def test_elementary_functions(run_program: Callable, double: bool, limit: float) -> None:
    rng = np.random.default_rng(0)
    x = np.stack([rng.uniform(-50, 50, N), rng.uniform(0.01, 20, N)]).astype(np.float32).astype(float)
    arrays = {"x": x, "out": np.zeros((13, N))}
    program = Program()
    functions(program)
    found, expected = run_program(program, arrays, double=double)["out"], on_numbers(functions, arrays)["out"]
    assert (np.abs(found - expected) <= limit * np.maximum(np.abs(expected), 1)).all()


def test_constants_keep_all_digits(run_program: Callable) -> None:
    constants = [0.1, 1 / 3, 1e-17, 123456789.123456789, 2.0**60 + 1, -7.0, 1e22]

    arrays = {"x": np.zeros((len(constants), 1)), "zero": np.zeros((1, 1))}
    found = {}
    for double in (True, False):
        program = Program()
        x, zero = program.buffer("x"), program.buffer("zero").read(0)
        for row, value in enumerate(constants):
            x.write(row, zero + value)
        found[double] = run_program(program, arrays, double=double)["x"][:, 0]
    assert found[True].tolist() == constants
    assert found[False].tolist() == np.array(constants, dtype=np.float32).tolist()


def test_tables_and_traced_indices(run_program: Callable) -> None:
    def body(run: Any) -> None:
        numbers, places = run.table([0.5, 2.5, -1.5]), run.table([2, 0, 1])
        total = run.variable(0.0)
        for k in run.range(1, 3):
            total.value = total.value * 10.0 + numbers[places[k]]
        for k in run.range(run.count("n")):
            total.value = total.value + numbers[places[k]]
        run.buffer("out").write(0, total.value + numbers[0])

    arrays = {"out": np.zeros((1, 3))}
    assert np.array_equal(compiled(run_program, body, arrays, n=2)["out"], on_numbers(body, arrays, n=2)["out"])


def test_nan_is_not_less_and_not_positive(run_program: Callable) -> None:
    """Comparisons with NaN are false, as in Python: a NaN must not look finite to the code that searches for it."""

    def body(run: Any) -> None:
        x = run.buffer("x").read(0)
        out = run.buffer("out")
        for row, condition in enumerate([x < 1.0, x <= 1.0, x > 1.0, x >= 1.0, logical_not(x < 1.0), (x - x) <= 0.0]):
            out.write(row, select(condition, 1.0, 0.0))

    arrays = {"x": np.array([[0.0, np.nan, np.inf, -np.inf]]), "out": np.zeros((6, 4))}
    found = compiled(run_program, body, arrays)["out"]
    assert found[:, 1].tolist() == [0, 0, 0, 0, 1, 1]  # x - x is 0 by algebra: that fold is known
    assert found[:5, 2].tolist() == [0, 0, 1, 1, 1]
    assert found[:5, 3].tolist() == [1, 1, 0, 0, 0]


def test_flags(run_program: Callable) -> None:
    program = Program()
    status, x = program.flag_row("status"), program.buffer("x")
    value = x.read(0)
    x.write(0, select(status.test(2), -1.0, value))
    status.raise_where(value < 0.0, 4, 0)
    arrays = {"x": np.array([[1.0, -1.0] * 10]), "status": np.array([[0, 0, 2, 2] * 5], dtype=np.int32)}
    found = run_program(program, arrays | {"status_alarm": np.zeros((1, 20), dtype=np.int32)})
    assert found["status_alarm"][0, :2].tolist() == [1, 0]
    assert found["x"][0, :4].tolist() == [1, -1, -1, -1]
    assert found["status"][0, :4].tolist() == [0, 4, 2, 6]


def test_bounded_records_lose_what_has_no_room_and_say_so(run_program: Callable) -> None:
    """Environments of one vector share the list: those that append after it is full lose theirs."""

    def body(run: Any) -> None:
        x, out = run.buffer("x").read(0), run.buffer("out")
        records = run.records("records", {"value": "float"}, 3, bounded=True)
        for _ in run.range(2):  # the second pass begins with an empty list
            records.clear()
            for limit in (1.0, 2.0, 3.0, 4.0, 5.0):
                for _ in run.when(x > limit):
                    records.append(value=limit)
        total, wanted = run.variable(0.0), run.variable(0.0)
        for k in run.each(records):
            total.value = total.value + records.value[k]
        for _ in run.range(records.wanted):
            wanted.value = wanted.value + 1.0
        for row, value in enumerate([total.value, select(records.lost, 1.0, 0.0), wanted.value]):
            out.write(row, value)

    arrays = {"x": np.array([[0.0, 1.5, 3.5, 4.5, 9.0]]), "out": np.zeros((3, 5))}
    together = compiled(run_program, body, arrays)["out"]
    assert together.tolist() == [[0, 1, 6, 6, 6], [0, 0, 0, 1, 1], [5] * 5]
    assert on_numbers(body, arrays)["out"].tolist() == [[0, 1, 6, 6, 6], [0, 0, 0, 1, 1], [0, 1, 3, 4, 5]]


def test_flags_rise_in_guarded_blocks_and_the_largest_value_is_told(run_program: Callable) -> None:
    program = Program()
    x = program.buffer("x").read(0)
    for k in program.range(3):
        for _ in program.when(x > 1.0):
            program.flag_row("status").raise_where(x < 4.0, 4, 1, k + 7)
            program.flag_row("status").raise_where(x < 4.0, 8, 1, k + 5)
    arrays = {"x": np.array([[1.0, 2.0, 3.0, 4.0]]), "status": np.array([[0, 4, 0, 0]], dtype=np.int32)}
    found = run_program(program, arrays | {"status_alarm": np.zeros((1, 4), dtype=np.int32)})
    assert found["status"][0].tolist() == [0, 12, 12, 0]
    assert found["status_alarm"][0].tolist() == [0, 7, 0, 0]


def test_large_arrays_lie_in_a_workspace(run_program: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bits do not depend on where an array lies; vectors that follow each other take the same place."""

    def body(run: Any) -> None:
        x, out = run.buffer("x").read(0), run.buffer("out")
        numbers, places, wanted = run.array(100), run.array(100, kind="int"), run.array(100, kind="bool")
        records = run.records("records", {"value": "float", "place": "int"}, 100)
        for k in run.range(100):
            places[k] = 99 - k
            numbers[k] = x * 0.1
            wanted[k] = numbers[k] < 0.5
        for k in run.range(100):
            for _ in run.when(x > 1.0):
                numbers[places[k]] = numbers[k] + x
                records.append(value=numbers[k] * 0.3, place=k)
        total = run.variable(0.0)
        for k in run.each(records):
            total.value = total.value + select(wanted[records.place[k]], records.value[k], numbers[k])
        out.write(0, total.value)

    arrays = {"x": np.linspace(0.0, 7.0, 70)[None], "out": np.zeros((1, 70))}
    expected = on_numbers(body, arrays)["out"]
    found = {}
    for budget, double in ((0, True), (0, False), (10**9, True), (10**9, False)):
        monkeypatch.setattr(workspace, "BUDGET", budget)
        program = Program()
        body(program)
        found[budget, double] = run_program(program, arrays, double=double)["out"]
        np.testing.assert_allclose(found[budget, double], expected, rtol=1e-12 if double else 1e-5)
    for double in (True, False):
        assert np.array_equal(found[0, double], found[10**9, double])


def test_repeat_stops_at_its_limit_and_for_each_environment(run_program: Callable) -> None:
    def body(run: Any) -> None:
        out = run.buffer("out")
        left, rounds = run.variable(run.buffer("x").read(0)), run.variable(0.0)
        running = run.variable(left.value > 0.0)
        for _ in run.repeat(5, running):
            left.value = left.value - 1.0
            rounds.value = rounds.value + 1.0
            running.value = left.value > 0.0
        out.write(0, rounds.value)
        out.write(1, select(running.value, 1.0, 0.0))

    arrays = {"x": np.array([[-1.0, 0.0, 1.0, 3.0, 5.0, 6.0, 99.0]]), "out": np.zeros((2, 7))}
    found = compiled(run_program, body, arrays)["out"]
    assert found.tolist() == [[0, 0, 1, 3, 5, 5, 5], [0, 0, 0, 0, 0, 1, 1]]


# ---- lanes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lanes", [2, 4])
def test_lanes(run_program: Callable, lanes: int) -> None:
    run = Program(lanes)
    x, out = run.buffer("x"), run.buffer("out")
    rows = tuple(range(lanes))
    own, shared = x.read(rows), x.read(lanes)
    guarded = run.variable(0.0)
    for _ in run.when(own > 0.0):
        guarded.value = own
    for _ in run.when(run.lane_any(own > 3.0)):
        guarded.value = guarded.value + run.lane_sum(own)
    out.write(rows, guarded.value * run.constant([float(k + 1) for k in range(lanes)]))
    out.write(lanes, run.lane_sum(own) + shared)
    values = np.random.default_rng(0).integers(-3, 5, size=(lanes + 1, 6)).astype(float)
    found = run_program(run, {"x": values, "out": np.zeros((lanes + 1, 6))})["out"]
    total = values[:lanes].sum(0)
    expected = np.maximum(values[:lanes], 0) + np.where((values[:lanes] > 3).any(0), total, 0)
    assert np.array_equal(found[:lanes], expected * np.arange(1, lanes + 1)[:, None])
    assert np.array_equal(found[lanes], total + values[lanes])


def test_lanes_are_not_summed_where_they_diverge() -> None:
    run = Program(lanes=2)
    own = run.buffer("x").read((0, 1))
    for _ in run.when(own > 0.0):
        with pytest.raises(TypeError, match="run together"):
            run.lane_sum(own)
        with pytest.raises(TypeError, match="run together"):
            run.lane_any(own > 1.0)
    for _ in run.when(run.lane_any(own > 0.0)):
        run.lane_sum(own)  # all lanes are here


# ---- misuse ----------------------------------------------------------------------------------------------------------


def test_memory_is_written_at_the_end_only() -> None:
    run = Program()
    x = run.buffer("x")
    for _ in run.when(x.read(0) < 0.0):
        with pytest.raises(TypeError, match="outermost"):
            x.write(0, 1.0)


def test_records_have_their_fields() -> None:
    run = Program()
    records = run.records("list", {"a": "float"}, 1)
    with pytest.raises(TypeError, match="has fields"):
        records.append(b=1.0)
    with pytest.raises(AttributeError):
        _ = records.b


def test_kernel_names_missing_arrays(run_program: Callable) -> None:
    run = Program()
    run.buffer("y").write(0, run.buffer("x").read(0))
    with pytest.raises(KeyError, match="y"):
        run_program(run, {"x": np.zeros((1, 1))})
