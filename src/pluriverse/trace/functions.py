"""Elementary functions on plain numbers and on traced scalars alike."""

from __future__ import annotations

import math
from typing import Any

from .expression import BOOL, FLOAT, Expr


def _apply(name: str, number: Any, *args: Any, kind: str = FLOAT) -> Any:
    for x in args:
        if isinstance(x, Expr):
            return x.program.node(name, *args, kind=kind)
    return number(*args)


def sin(x: Any) -> Any:
    return _apply("sin", math.sin, x)


def cos(x: Any) -> Any:
    return _apply("cos", math.cos, x)


def sqrt(x: Any) -> Any:
    return _apply("sqrt", math.sqrt, x)


def rsqrt(x: Any) -> Any:
    """1 / sqrt(x), for x > 0."""
    return _apply("rsqrt", lambda y: 1.0 / math.sqrt(y), x)


def reciprocal(x: Any) -> Any:
    return _apply("reciprocal", lambda y: 1.0 / y, x)


def atan2(y: Any, x: Any) -> Any:
    return _apply("atan2", math.atan2, y, x)


def exp(x: Any) -> Any:
    return _apply("exp", math.exp, x)


def floor(x: Any) -> Any:
    """The largest whole number that is not above x, as a float."""
    return _apply("floor", lambda y: float(math.floor(y)), x)


def power(x: Any, exponent: float) -> Any:
    """x ** exponent for x >= 0 and a constant exponent."""
    if exponent == 1.0:
        return x
    if exponent == 2.0:
        return x * x
    return _apply("pow", math.pow, x, exponent)


def absolute(x: Any) -> Any:
    return _apply("abs", abs, x)


def minimum(a: Any, b: Any) -> Any:
    return _apply("min", min, a, b)


def maximum(a: Any, b: Any) -> Any:
    return _apply("max", max, a, b)


def clamp(x: Any, lower: Any, upper: Any) -> Any:
    return minimum(maximum(x, lower), upper)


def select(condition: Any, a: Any, b: Any) -> Any:
    """a where the condition holds, else b. Both are evaluated."""
    if isinstance(condition, bool):
        return a if condition else b
    if not isinstance(condition, Expr):
        return a if condition else b
    if a is b or (not isinstance(a, Expr) and not isinstance(b, Expr) and a == b):
        return a
    kind = a.kind if isinstance(a, Expr) else b.kind if isinstance(b, Expr) else BOOL if isinstance(a, bool) else FLOAT
    return condition.program.node("select", condition, a, b, kind=kind)


def logical_not(x: Any) -> Any:
    return x.program.node("!", x, kind=BOOL) if isinstance(x, Expr) else not x
