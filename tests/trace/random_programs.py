"""Random programs: scripts of nested tuples from hypothesis, and what carries them out on any `run` object.

All values are whole numbers small enough to be exact, so that rounding and the order of sums make no difference.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from pluriverse.trace.functions import absolute, clamp, logical_not, maximum, minimum, select

INPUTS, VARIABLES, CELLS = 3, 3, 4
OUTPUTS = VARIABLES + CELLS + 1
LARGEST = 1000.0

leaves = (
    st.tuples(st.just("input"), st.integers(0, INPUTS - 1))
    | st.tuples(st.just("constant"), st.integers(-3, 3))
    | st.tuples(st.just("variable"), st.integers(0, VARIABLES - 1))
    | st.tuples(st.just("cell"), st.integers(0, CELLS - 1))
    | st.tuples(st.just("records"))
)


def _operations(inner: st.SearchStrategy) -> st.SearchStrategy:
    binary = st.tuples(st.sampled_from(["+", "-", "*", "min", "max"]), inner, inner)
    return inner | binary | st.tuples(st.sampled_from(["neg", "abs"]), inner) | st.tuples(
        st.just("select"), st.tuples(st.sampled_from(["<", "<="]), leaves, leaves), inner, inner
    )  # fmt: skip


numbers = _operations(_operations(leaves))
comparisons = st.tuples(st.sampled_from(["<", "<="]), _operations(leaves), _operations(leaves))
conditions = comparisons | st.tuples(st.sampled_from(["&", "|"]), comparisons, comparisons) | st.tuples(
    st.just("not"), comparisons
)  # fmt: skip

statements: st.SearchStrategy = st.deferred(
    lambda: (
        st.tuples(st.just("set"), st.integers(0, VARIABLES - 1), numbers)
        | st.tuples(st.just("put"), st.integers(0, CELLS - 1), numbers)
        | st.tuples(st.just("append"), numbers, numbers)
        | st.tuples(st.just("when"), conditions, scripts)
        | st.tuples(st.just("range"), st.integers(0, 2), scripts)
        | st.tuples(st.just("repeat"), st.integers(0, 3), conditions, scripts)
        | st.tuples(st.just("choose"), conditions, st.integers(0, VARIABLES - 1), numbers)
    )
)
scripts: st.SearchStrategy = st.lists(statements, min_size=1, max_size=4)


def most_appends(script: list) -> int:
    """How many records a script can append."""
    total = 0
    for kind, *rest in script:
        if kind == "append":
            total += 1
        elif kind in ("when", "range", "repeat"):
            times = rest[0] if kind in ("range", "repeat") else 1
            total += times * most_appends(rest[-1])
    return total


class Machine:
    """Carries out a script: the same text for `Numbers`, which computes, and for `Program`, which records.

    `values` are what is left of it in the end, `OUTPUTS` numbers.
    """

    def __init__(self, run: Any, inputs: list, script: list) -> None:
        self.run, self.inputs = run, inputs
        self.variables = [run.variable(float(k)) for k in range(VARIABLES)]
        self.cells = run.array(CELLS)
        for k in run.range(CELLS):
            self.cells[k] = 1.0
        self.records = run.records("records", {"x": "float", "y": "float"}, most_appends(script))
        self.total = run.variable(0.0)
        self.carry_out(script)
        self.values = (
            [v.value for v in self.variables] + [self.cells[k] for k in range(CELLS)] + [self.sum_of_records()]
        )

    def carry_out(self, script: list) -> None:
        run = self.run
        for kind, *rest in script:
            if kind == "set":
                self.variables[rest[0]].value = clamp(self.number(rest[1]), -LARGEST, LARGEST)
            elif kind == "put":
                self.cells[rest[0]] = clamp(self.number(rest[1]), -LARGEST, LARGEST)
            elif kind == "append":
                x, y = (clamp(self.number(n), -LARGEST, LARGEST) for n in rest)
                self.records.append(x=x, y=y)
            elif kind == "when":
                for _ in run.when(self.condition(rest[0])):
                    self.carry_out(rest[1])
            elif kind == "range":
                for _ in run.range(rest[0]):
                    self.carry_out(rest[1])
            elif kind == "repeat":
                running = run.variable(True)
                for _ in run.repeat(rest[0], running):
                    self.carry_out(rest[2])
                    running.value = self.condition(rest[1])
            else:
                variable = self.variables[rest[1]]
                then = lambda number=rest[2]: [clamp(self.number(number), -LARGEST, LARGEST)]  # noqa: E731
                (variable.value,) = run.choose(self.condition(rest[0]), then, [variable.value])

    def sum_of_records(self) -> Any:
        """Of x y over the records: one that an environment did not append adds nothing to it."""
        self.total.value = 0.0
        for k in self.run.each(self.records):
            self.total.value = clamp(self.total.value + self.records.x[k] * self.records.y[k], -LARGEST, LARGEST)
        return self.total.value

    def number(self, expression: tuple) -> Any:
        kind, *rest = expression
        if kind in ("input", "variable", "cell", "constant", "records"):
            return {
                "input": lambda: self.inputs[rest[0]],
                "variable": lambda: self.variables[rest[0]].value,
                "cell": lambda: self.cells[rest[0]],
                "constant": lambda: float(rest[0]),
                "records": self.sum_of_records,
            }[kind]()
        if kind == "select":
            return select(self.condition(rest[0]), self.number(rest[1]), self.number(rest[2]))
        a, *b = (self.number(x) for x in rest)
        return {
            "+": lambda: a + b[0], "-": lambda: a - b[0], "*": lambda: a * b[0], "neg": lambda: -a,
            "abs": lambda: absolute(a), "min": lambda: minimum(a, b[0]), "max": lambda: maximum(a, b[0]),
        }[kind]()  # fmt: skip

    def condition(self, expression: tuple) -> Any:
        kind, *rest = expression
        if kind in ("&", "|"):
            a, b = (self.condition(x) for x in rest)
            return a & b if kind == "&" else a | b
        if kind == "not":
            return logical_not(self.condition(rest[0]))
        a, b = (self.number(x) for x in rest)
        return a < b if kind == "<" else a <= b
