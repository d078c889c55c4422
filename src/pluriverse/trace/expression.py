"""Scalar expressions: the nodes of a traced program, with constant folding and common-subexpression elimination.

An `Expr` stands for one scalar of one environment: a float, a bool or an int. Arithmetic on it is recorded in its
program; arithmetic that constants decide (a zero of an inertia, a unit axis) is done now and leaves no trace.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .program import Program

FLOAT, BOOL, INT = "float", "bool", "int"


class Expr:
    """A scalar of the traced program: operation, operands, kind, and the block of code that it belongs to."""

    __slots__ = ("args", "block", "kind", "number", "op", "program")

    def __init__(self, program: Program, number: int, op: str, args: tuple[Any, ...], kind: str, block: Any) -> None:
        self.program = program
        self.number = number
        self.op = op
        self.args = args
        self.kind = kind
        self.block = block

    def __add__(self, other: Any) -> Any:
        return add(self, other)

    def __radd__(self, other: Any) -> Any:
        return add(other, self)

    def __sub__(self, other: Any) -> Any:
        return subtract(self, other)

    def __rsub__(self, other: Any) -> Any:
        return subtract(other, self)

    def __mul__(self, other: Any) -> Any:
        return multiply(self, other)

    def __rmul__(self, other: Any) -> Any:
        return multiply(other, self)

    def __truediv__(self, other: Any) -> Any:
        return divide(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return divide(other, self)

    def __neg__(self) -> Any:
        return negate(self)

    def __lt__(self, other: Any) -> Any:
        return self.program.node("<", self, other, kind=BOOL)

    def __le__(self, other: Any) -> Any:
        return self.program.node("<=", self, other, kind=BOOL)

    def __gt__(self, other: Any) -> Any:
        return self.program.node("<", other, self, kind=BOOL)

    def __ge__(self, other: Any) -> Any:
        return self.program.node("<=", other, self, kind=BOOL)

    def __and__(self, other: Any) -> Any:
        if isinstance(other, bool):
            return self if other else False
        return self.program.node("&", self, other, kind=BOOL)

    __rand__ = __and__

    def __or__(self, other: Any) -> Any:
        if isinstance(other, bool):
            return True if other else self
        return self.program.node("|", self, other, kind=BOOL)

    __ror__ = __or__

    def __bool__(self) -> bool:
        raise TypeError("a traced value has no truth value in Python: use run.when(...) or select(...) to branch on it")


class LaneConstant(Expr):
    """A constant that differs between the lanes of one environment (`args` holds one float per lane)."""

    __slots__ = ()


def is_zero(x: Any) -> bool:
    return not isinstance(x, Expr) and x == 0.0


def _fold(operation: Callable[..., float], *operands: Any) -> Any | None:
    """The result where all operands are constants, per lane if need be; None where one is not."""
    if any(isinstance(x, Expr) and not isinstance(x, LaneConstant) for x in operands):
        return None
    program = next(x.program for x in operands if isinstance(x, Expr))
    lanes = range(program.lanes)
    return program.constant([operation(*(x.args[k] if isinstance(x, Expr) else x for x in operands)) for k in lanes])


def add(a: Any, b: Any) -> Any:
    if is_zero(b):
        return a
    if is_zero(a):
        return b
    folded = _fold(lambda x, y: x + y, a, b)
    if folded is not None:
        return folded
    if isinstance(b, Expr) and b.op == "neg":
        return subtract(a, b.args[0])
    if isinstance(a, Expr) and a.op == "neg":
        return subtract(b, a.args[0])
    return _program(a, b).node("+", *_ordered(a, b), kind=_kind(a, b))


def subtract(a: Any, b: Any) -> Any:
    if not isinstance(b, Expr):
        return add(a, -b)
    if is_zero(a):
        return negate(b)
    folded = _fold(lambda x, y: x - y, a, b)
    if folded is not None:
        return folded
    if b.op == "neg":
        return add(a, b.args[0])
    if a is b:
        return 0.0
    return b.program.node("-", a, b, kind=_kind(a, b))


def negate(a: Expr) -> Any:
    folded = _fold(lambda x: -x, a)
    if folded is not None:
        return folded
    return a.args[0] if a.op == "neg" else a.program.node("neg", a, kind=a.kind)


def multiply(a: Any, b: Any) -> Any:
    if not isinstance(a, Expr):
        a, b = b, a
    if not isinstance(b, Expr):
        if b == 0.0:
            return 0 if a.kind == INT else 0.0
        if b == 1.0:
            return a
        if b == -1.0:
            return -a
    folded = _fold(lambda x, y: x * y, a, b)
    if folded is not None:
        return folded
    if a.op == "neg":
        return a.args[0] * -b
    if isinstance(b, Expr) and b.op == "neg":
        return -(a * b.args[0])
    if not isinstance(b, Expr) and a.op == "*" and not isinstance(a.args[1], Expr):
        return a.args[0] * (a.args[1] * b)
    return a.program.node("*", *_ordered(a, b), kind=_kind(a, b))


def divide(a: Any, b: Any) -> Any:
    if not isinstance(b, Expr):
        return a * (1.0 / b)
    if is_zero(a):
        return 0.0
    folded = _fold(lambda x, y: x / y, a, b)
    if folded is not None:
        return folded
    return b.program.node("/", a, b)


def _ordered(a: Any, b: Any) -> tuple[Any, Any]:
    """Operands of a commutative operation in one order: expressions by age, then a constant."""
    if isinstance(a, Expr) and isinstance(b, Expr):
        return (a, b) if a.number < b.number else (b, a)
    return (a, b) if isinstance(a, Expr) else (b, a)


def _program(*operands: Any) -> Program:
    return next(x.program for x in operands if isinstance(x, Expr))


def _kind(*operands: Any) -> str:
    return INT if all(x.kind == INT if isinstance(x, Expr) else isinstance(x, int) for x in operands) else FLOAT
