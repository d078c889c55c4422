"""Impedance and reference acceleration of a constraint row (MuJoCo documentation, "Computation / Constraint model")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pluriverse.trace.functions import absolute, maximum, minimum, power, select

MIN_IMPEDANCE, MAX_IMPEDANCE, MINVAL = 0.0001, 0.9999, 1e-15


def clipped_solimp(solimp: Sequence[float]) -> tuple[float, float, float, float, float]:
    """solimp within the ranges that MuJoCo allows."""
    d0, d1, width, middle, exponent = (float(x) for x in solimp)

    def clip(x: float) -> float:
        return min(MAX_IMPEDANCE, max(MIN_IMPEDANCE, x))

    return clip(d0), clip(d1), max(0.0, width), clip(middle), max(1.0, exponent)


def impedance(solimp: Sequence[float], violation: Any) -> Any:
    """d(r) of a row whose position is `violation` away from its margin [m] or [rad] (MuJoCo's `getimpedance`)."""
    d0, d1, width, middle, exponent = clipped_solimp(solimp)
    if d0 == d1 or width <= MINVAL:
        return 0.5 * (d0 + d1)
    x = minimum(absolute(violation) * (1.0 / width), 1.0)
    if exponent == 1.0:
        return d0 + x * (d1 - d0)
    rising = power(x, exponent) * (1.0 / middle ** (exponent - 1.0))
    closing = 1.0 - power(1.0 - x, exponent) * (1.0 / (1.0 - middle) ** (exponent - 1.0))
    return d0 + select(x <= middle, rising, closing) * (d1 - d0)


def stiffness_and_damping(
    solref: Sequence[float], solimp: Sequence[float], dt: float, refsafe: bool
) -> tuple[float, float]:
    """k and b of the reference acceleration -b v - k d r (MuJoCo's `mj_makeImpedance`)."""
    time_constant, ratio = (float(x) for x in solref)
    d1 = clipped_solimp(solimp)[1]
    if (time_constant > 0) != (ratio > 0):
        time_constant, ratio = 0.02, 1.0  # mixed formats: MuJoCo falls back to its default
    if time_constant <= 0:  # direct: (-stiffness, -damping)
        return -time_constant / d1**2, -ratio / d1
    if refsafe:
        time_constant = max(time_constant, 2.0 * dt)
    return 1.0 / max(MINVAL, (d1 * time_constant * ratio) ** 2), 2.0 / max(MINVAL, d1 * time_constant)


def weight(d: Any, inverse_inertia: Any) -> Any:
    """D = 1 / R of a row, with R = (1 - d) / d times the row's approximate inverse inertia, or MINVAL: that of a body
    which turns about its centre of mass is 0."""
    softness = (1.0 - d) * inverse_inertia
    if not isinstance(inverse_inertia, float) or inverse_inertia * (1.0 - MAX_IMPEDANCE) < MINVAL:
        softness = maximum(softness, MINVAL * d)
    return d / softness
