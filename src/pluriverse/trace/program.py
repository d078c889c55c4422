"""A traced program: blocks of statements over scalar expressions, with variables, arrays, guards, loops, records and
lanes.

The maths calls the methods below on a `run` object. `Program` records what they do as code; `Numbers` (numbers.py)
does it at once on floats. Code is written per environment: a guarded block or a loop acts on those environments whose
condition holds, whichever target prints it.

Python's own `for` delimits blocks, so that one text serves both::

    for _ in run.when(distance < 0.0):      # "when": at most once
        ...
    for i in run.range(3):                  # a counted loop
        ...
    for _ in run.repeat(50, running):       # while `running.value`, at most 50 times
        ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .expression import BOOL, FLOAT, INT, Expr, LaneConstant

IMPURE = {"load", "element", "read", "flag", "any", "lost", "wanted"}  # values that depend on when they are read


class Block:
    """Statements that run together: the whole program, a guarded block, or the body of a loop."""

    def __init__(self, parent: Block | None, kind: str, header: dict[str, Any]) -> None:
        self.parent = parent
        self.kind = kind  # root | when | range | records | repeat
        self.header = header
        self.statements: list[tuple[Any, ...]] = []
        self.known: dict[Any, Expr] = {}


class Variable:
    """A scalar that changes: read and set through `.value`."""

    def __init__(self, program: Program, name: str, kind: str, scratch: bool) -> None:
        self.program, self.name, self.kind, self.scratch = program, name, kind, scratch
        self.block = program.block

    @property
    def value(self) -> Any:
        return self.program.impure("load", self, kind=self.kind)

    @value.setter
    def value(self, new: Any) -> None:
        self.program.state(("set", self, new))


class Array:
    """A local array of scalars, indexed by ints or traced ints."""

    def __init__(self, program: Program, name: str, size: int, kind: str, scratch: bool) -> None:
        self.program, self.name, self.size, self.kind, self.scratch = program, name, size, kind, scratch
        self.block = program.block

    def __getitem__(self, index: Any) -> Any:
        return self.program.impure("element", self, index, kind=self.kind)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.program.state(("put", self, index, value))


class Records:
    """A list of records that grows by `append`, at most once per `append` site and pass. Fields are read as
    `records.field[i]`.

    On CPU lanes a record belongs to several environments at once: where an environment did not append, its float
    fields are 0, so a record of zeros must contribute nothing to whatever is summed over the records. Int fields are
    the same for all lanes.

    A list that is not `bounded` has room for all that is ever appended. One that is stores no more than its capacity:
    `lost` says in which environments an `append` found no room, `wanted` how many records there would be.
    """

    def __init__(self, program: Program, name: str, fields: dict[str, str], capacity: int, bounded: bool) -> None:
        self.program, self.name, self.capacity, self.bounded = program, name, max(capacity, 1), bounded
        self.fields = {k: Array(program, f"{name}_{k}", self.capacity, kind, True) for k, kind in fields.items()}
        program.state(("clear", self))

    def __getattr__(self, name: str) -> Array:
        try:
            return self.fields[name]
        except KeyError:
            raise AttributeError(name) from None

    def append(self, **values: Any) -> None:
        """Adds a record. Fields not given are unset until they are assigned."""
        unknown = values.keys() - self.fields.keys()
        if unknown:
            raise TypeError(f"record {self.name} has fields {sorted(self.fields)}, got {sorted(unknown)} besides")
        self.program.state(("append", self, values))

    @property
    def any(self) -> Any:
        """Whether there is a record."""
        return self.program.impure("any", self, kind=BOOL)

    @property
    def lost(self) -> Any:
        """Whether this environment appended a record that found no room since the list was last cleared."""
        return self.program.impure("lost", self, kind=BOOL) if self.bounded else False

    @property
    def wanted(self) -> Any:
        """How many records were appended since the list was last cleared, those without room included."""
        return self.program.impure("wanted", self, kind=INT)

    def clear(self) -> None:
        self.program.state(("clear", self))


class Buffer:
    """Global memory of floats, one row per scalar, one column per environment. With lanes, a tuple names each lane's
    row."""

    def __init__(self, program: Program, name: str) -> None:
        self.program, self.name = program, name

    def read(self, row: Any) -> Any:
        return self.program.impure("read", self, row, kind=FLOAT)

    def write(self, row: int | tuple[int, ...], value: Any) -> None:
        block: Block | None = self.program.block
        while block is not None and block.kind == "range":
            block = block.parent
        if block is not self.program.root:
            raise TypeError("global memory is written at the outermost level, or in counted loops there, only")
        self.program.state(("write", self, row, value))


class Flags:
    """A row of int32 status words in global memory, one per environment. Where a bit is raised that was not up, word
    `number` of the array `<name>_alarm` becomes `value`, if it was less, so that the host need not look at every
    environment."""

    def __init__(self, program: Program, name: str) -> None:
        self.program, self.name, self.alarm = program, name, f"{name}_alarm"

    def test(self, bit: int) -> Any:
        return self.program.impure("flag", self, bit, kind=BOOL)

    def raise_where(self, condition: Any, bit: int, number: int, value: Any = 1) -> None:
        self.program.state(("raise", self, condition, value, bit, number))


class Table:
    """A table of constants, looked up by a traced int."""

    def __init__(self, program: Program, name: str, values: tuple[float, ...], kind: str) -> None:
        self.program, self.name, self.values, self.kind = program, name, values, kind

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, Expr):
            return self.values[index]
        return self.program.node("lookup", self, index, kind=self.kind)


class Program:
    """Records a computation for one environment, on `lanes` lanes. together: environments that will share lists of
    records, those of a CPU vector."""

    def __init__(self, lanes: int = 1, together: int = 1) -> None:
        self.lanes, self.together = lanes, together
        self.block = self.root = Block(None, "root", {})
        self.buffers: list[Buffer] = []
        self.flags: list[Flags] = []
        self.tables: list[Table] = []
        self.counts: list[str] = []  # int arguments of the kernel
        self._size = 0
        self._names = 0

    # ---- expressions -------------------------------------------------------------------------------------------------

    def node(self, op: str, *args: Any, kind: str = FLOAT) -> Expr:
        key = (op, kind, *((id(a),) if isinstance(a, (Expr, Table)) else (type(a), a) for a in args))
        block: Block | None = self.block
        while block is not None:
            if key in block.known:
                return block.known[key]
            block = block.parent
        if op in ("lane_sum", "lane_any") and self._divergent():
            raise TypeError("lanes can only be summed where all lanes of an environment run together")
        expr = Expr(self, self._number(), op, args, kind, self.block)
        self.block.known[key] = expr
        return expr

    def impure(self, op: str, *args: Any, kind: str) -> Expr:
        expr = Expr(self, self._number(), op, args, kind, self.block)
        self.state(("define", expr))
        return expr

    def state(self, statement: tuple[Any, ...]) -> None:
        self.block.statements.append(statement)

    def constant(self, values: Sequence[float]) -> Any:
        """A constant of which each lane has its own value; a plain float where they agree."""
        if all(v == values[0] for v in values):
            return values[0]
        key = ("lane_constant", *values)
        if key not in self.root.known:
            self.root.known[key] = LaneConstant(
                self, self._number(), "lane_constant", tuple(float(v) for v in values), FLOAT, self.root
            )
        return self.root.known[key]

    def lane_sum(self, x: Any) -> Any:
        """The sum of x over the lanes of this environment."""
        if self.lanes == 1 or not isinstance(x, Expr):
            return x * self.lanes
        return self.node("lane_sum", x)

    def lane_any(self, x: Any) -> Any:
        """Whether x holds on any lane of this environment."""
        return x if self.lanes == 1 or not isinstance(x, Expr) else self.node("lane_any", x, kind=BOOL)

    def lane_pick(self, values: Sequence[Any]) -> Any:
        """The value of this lane, from one value for each lane."""
        return values[0] if all(v is values[0] for v in values) else self.node("lane_pick", *values)

    def lane_rows(self, rows: Sequence[Any]) -> Any:
        """The row of a buffer that this lane reads, from one traced row for each lane."""
        return rows[0] if all(r is rows[0] for r in rows) else self.node("lane_rows", *rows, kind=INT)

    def same(self, a: Any, b: Any) -> Any:
        """Whether two ints are equal."""
        return self.node("same", a, b, kind=BOOL) if isinstance(a, Expr) or isinstance(b, Expr) else a == b

    # ---- storage -----------------------------------------------------------------------------------------------------

    def variable(self, value: Any, *, scratch: bool = False, kind: str = "") -> Variable:
        """A scalar with a first value. `scratch`: its value does not matter to environments outside the present
        block. An int is the same for all environments of a CPU vector."""
        kind = kind or (value.kind if isinstance(value, Expr) else BOOL if isinstance(value, bool) else FLOAT)
        variable = Variable(self, self._name("v"), kind, scratch)
        self.state(("declare", variable, value))
        return variable

    def array(self, size: int, *, scratch: bool = False, kind: str = FLOAT) -> Array:
        """A local array. Ints are the same for all environments of a CPU vector."""
        array = Array(self, self._name("a"), size, kind, scratch)
        self.state(("array", array))
        return array

    def resize(self, array: Array, size: int) -> None:
        """Sets the size of an array that was made before it was known."""
        array.size = size

    def records(self, name: str, fields: dict[str, str], capacity: int, *, bounded: bool = False) -> Records:
        return Records(self, self._name(name), fields, capacity, bounded)

    def buffer(self, name: str) -> Buffer:
        self.buffers.append(Buffer(self, name))
        return self.buffers[-1]

    def flag_row(self, name: str) -> Flags:
        """The status words of this name, which any part of the program may ask for."""
        for flags in self.flags:
            if flags.name == name:
                return flags
        self.flags.append(Flags(self, name))
        return self.flags[-1]

    def count(self, name: str) -> Expr:
        """An int argument of the kernel."""
        self.counts.append(name)
        return self.node("count", name, kind=INT)

    def table(self, values: Sequence[float]) -> Table:
        kind = INT if all(isinstance(v, int) for v in values) else FLOAT
        for table in self.tables:
            if (table.values, table.kind) == (tuple(values), kind):
                return table
        self.tables.append(Table(self, self._name("table"), tuple(values), kind))
        return self.tables[-1]

    @property
    def rounding(self) -> Any:
        """The largest relative error of one rounding, of the precision that the program is printed for."""
        return self.node("rounding")

    def gather(self, table: Table, number: Any) -> Any:
        """The entry of a table of floats at a place that differs between environments, kept as a float."""
        return self.node("gather", table, number)

    # ---- control flow ------------------------------------------------------------------------------------------------

    def when(self, condition: Any, *, together: bool = False) -> Iterator[None]:
        """The block runs for the environments (and lanes) whose condition holds.

        together: the lanes of an environment agree on the condition, so that they may be summed in the block.
        """
        if not isinstance(condition, Expr):
            if condition:
                yield None
            return
        together = together or condition.op == "lane_any"
        yield from self._nested("when", {"condition": condition, "uniform": together}, None)

    def range(self, *bounds: Any, unroll: int = 1) -> Iterator[Any]:
        """A counted loop. unroll: passes that a GPU, which waits for memory, may have under way at once."""
        start, stop = bounds if len(bounds) == 2 else (0, bounds[0])
        index = Expr(self, self._number(), "index", (), INT, None)
        header = {"start": start, "stop": stop, "index": index, "uniform": True, "unroll": unroll}
        yield from self._nested("range", header, index)

    def each(self, records: Records) -> Iterator[Any]:
        """The indices of all records."""
        index = Expr(self, self._number(), "index", (), INT, None)
        yield from self._nested("records", {"records": records, "index": index, "uniform": self.lanes == 1}, index)

    def repeat(self, limit: int, running: Variable) -> Iterator[None]:
        """The block repeats while `running.value` holds, at most `limit` times; all lanes must agree on it."""
        yield from self._nested("repeat", {"limit": limit, "running": running, "uniform": True}, None)

    def choose(self, condition: Any, then: Callable[[], Sequence[Any]], otherwise: Sequence[Any]) -> list[Any]:
        """`then()` where the condition holds, else `otherwise`; `then` is computed only where it is needed."""
        if not isinstance(condition, Expr):
            return list(then() if condition else otherwise)
        slots = [self.variable(x) for x in otherwise]
        changed = [False] * len(slots)
        for _ in self.when(condition):
            for k, (slot, new, old) in enumerate(zip(slots, then(), otherwise, strict=True)):
                if new is not old and (isinstance(new, Expr) or isinstance(old, Expr) or new != old):
                    slot.value = new
                    changed[k] = True
        return [slot.value if used else old for slot, used, old in zip(slots, changed, otherwise, strict=True)]

    def _nested(self, kind: str, header: dict[str, Any], yielded: Any) -> Iterator[Any]:
        block = Block(self.block, kind, header)
        if header.get("index") is not None:
            header["index"].block = block
        self.state(("block", block))
        parent, self.block = self.block, block
        try:
            yield yielded
        finally:  # also where the caller leaves its `for` early
            self.block = parent

    def _divergent(self) -> bool:
        block: Block | None = self.block
        while block is not None:
            if block.kind != "root" and not block.header["uniform"]:
                return True
            block = block.parent
        return False

    def _number(self) -> int:
        self._size += 1
        return self._size

    def _name(self, stem: str) -> str:
        self._names += 1
        return f"{stem}{self._names}"
