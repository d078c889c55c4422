"""The `run` object of plain floats: what `Program` records, `Numbers` does at once, for the float64 reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any


class Cell:
    """A scalar that changes."""

    def __init__(self, value: Any) -> None:
        self.value = value


class NumberRecords:
    """A list of records, of `capacity` at most where it is bounded."""

    def __init__(self, fields: dict[str, str], capacity: int, bounded: bool) -> None:
        self.fields: dict[str, list[Any]] = {name: [] for name in fields}
        self.capacity, self.bounded, self.wanted = max(capacity, 1), bounded, 0

    def __getattr__(self, name: str) -> list[Any]:
        if name == "fields" or name not in self.fields:
            raise AttributeError(name)
        return self.fields[name]

    def __len__(self) -> int:
        return len(next(iter(self.fields.values())))

    def append(self, **values: Any) -> None:
        self.wanted += 1
        if self.lost:
            return
        for name, column in self.fields.items():
            column.append(values.get(name))

    @property
    def lost(self) -> bool:
        return self.bounded and self.wanted > self.capacity

    @property
    def any(self) -> bool:
        return len(self) > 0

    def clear(self) -> None:
        self.wanted = 0
        for column in self.fields.values():
            column.clear()


class NumberBuffer:
    """One environment's column of a global array."""

    def __init__(self, values: list[float]) -> None:
        self.values = values

    def read(self, row: int) -> float:
        return self.values[row]

    def write(self, row: int, value: float) -> None:
        self.values[row] = value


class NumberFlags:
    """One environment's status word."""

    def __init__(self) -> None:
        self.word = 0

    def test(self, bit: int) -> bool:
        return bool(self.word & bit)

    def raise_where(self, condition: bool, bit: int, number: int, value: int = 1) -> None:
        if condition:
            self.word |= bit


class Numbers:
    """Runs the maths on Python floats, one environment, one lane."""

    lanes = together = 1
    rounding = 2.0**-53  # the largest relative error of one rounding

    def __init__(self, buffers: dict[str, list[float]] | None = None, counts: dict[str, int] | None = None) -> None:
        self.buffers = buffers or {}
        self.counts = counts or {}
        self.status = NumberFlags()

    def constant(self, values: Sequence[float]) -> float:
        return values[0]

    def lane_sum(self, x: float) -> float:
        return x

    def lane_any(self, x: bool) -> bool:
        return x

    def lane_pick(self, values: Sequence[Any]) -> Any:
        return values[0]

    def lane_rows(self, rows: Sequence[int]) -> int:
        return rows[0]

    def same(self, a: int, b: int) -> bool:
        return a == b

    def variable(self, value: Any, *, scratch: bool = False, kind: str = "") -> Cell:
        return Cell(value)

    def array(self, size: int, *, scratch: bool = False, kind: str = "") -> list[float]:
        return [0.0] * size

    def resize(self, array: list[float], size: int) -> None:
        array.extend([0.0] * (size - len(array)))

    def records(self, name: str, fields: dict[str, str], capacity: int, *, bounded: bool = False) -> NumberRecords:
        return NumberRecords(fields, capacity, bounded)

    def buffer(self, name: str) -> NumberBuffer:
        return NumberBuffer(self.buffers[name])

    def flag_row(self, name: str) -> NumberFlags:
        return self.status

    def count(self, name: str) -> int:
        return self.counts[name]

    def table(self, values: Sequence[float]) -> Sequence[float]:
        return values

    def gather(self, table: Sequence[float], number: float) -> float:
        return table[int(number)]

    def when(self, condition: bool, *, together: bool = False) -> Iterator[None]:
        if condition:
            yield None

    def range(self, *bounds: int, unroll: int = 1) -> Iterator[int]:
        yield from range(*bounds)

    def each(self, records: NumberRecords) -> Iterator[int]:
        yield from range(len(records))

    def repeat(self, limit: int, running: Cell) -> Iterator[None]:
        for _ in range(limit):
            if not running.value:
                return
            yield None

    def choose(self, condition: bool, then: Callable[[], Sequence[Any]], otherwise: Sequence[Any]) -> list[Any]:
        return list(then() if condition else otherwise)
