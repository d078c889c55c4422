"""Muscles: activation dynamics, and the curves of active and passive force (MuJoCo, Modeling, "Muscles")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pluriverse.trace.functions import clamp, maximum, select

MINIMUM = 1e-15  # mjMINVAL


@dataclass(frozen=True)
class Muscle:
    """A muscle's constants: peak force [N], optimum length [m] and the shape of its curves."""

    force: float
    optimum: float
    shortest: float  # length of the muscle at which the actuator's length is `start`, in optimum lengths
    start: float
    lmin: float  # the curves' lengths, in optimum lengths
    lmax: float
    vmax: float  # shortening velocity at zero force, in optimum lengths per second
    fpmax: float  # passive force at lmax, in peak forces
    fvmax: float  # active force at saturating lengthening velocity, in peak forces

    @classmethod
    def of(cls, prm: np.ndarray, lengthrange: np.ndarray, acc0: float) -> Muscle:
        """From MuJoCo's gainprm or biasprm, and from the actuator's lengthrange and acc0."""
        low, high, force, scale, lmin, lmax, vmax, fpmax, fvmax = (float(x) for x in prm[:9])
        start, stop = (float(x) for x in lengthrange)
        optimum = max((stop - start) / max(high - low, MINIMUM), MINIMUM)
        peak = scale / max(float(acc0), MINIMUM) if force < 0 else force
        return cls(peak, optimum, low, start, lmin, lmax, vmax, fpmax, fvmax)

    def gain(self, length: Any, velocity: Any) -> Any:
        """Active force at full activation, negative: it pulls."""
        V, y = self._normal_velocity(velocity), self.fvmax - 1.0
        rising = (V + 1.0) * (V + 1.0)
        falling = self.fvmax - (y - V) * (y - V) / max(y, MINIMUM)
        curve = select(V <= -1.0, 0.0, select(V <= 0.0, rising, select(y >= V, falling, self.fvmax)))
        return self._length_curve(length) * curve * -self.force

    def gain_slope(self, length: Any, velocity: Any) -> Any:
        """d gain / d velocity."""
        V, y = self._normal_velocity(velocity), self.fvmax - 1.0
        rising, falling = V * 2.0 + 2.0, (y - V) * (2.0 / max(y, MINIMUM))
        slope = select(V <= -1.0, 0.0, select(V <= 0.0, rising, select(y >= V, falling, 0.0)))
        return self._length_curve(length) * slope * (-self.force / max(self.optimum * self.vmax, MINIMUM))

    def bias(self, length: Any) -> Any:
        """Passive force beyond the optimum length, negative."""
        L, half = self._normal_length(length), max(0.5 * (self.lmax - 1.0), MINIMUM)
        bend = 0.5 * (1.0 + self.lmax)
        square = (L - 1.0) * (L - 1.0) * (0.5 / (half * half))
        straight = (L - bend) * (1.0 / half) + 0.5
        return select(L <= 1.0, 0.0, select(bend >= L, square, straight)) * (-self.force * self.fpmax)

    def _normal_length(self, length: Any) -> Any:
        return (length - self.start) * (1.0 / self.optimum) + self.shortest

    def _normal_velocity(self, velocity: Any) -> Any:
        return velocity * (1.0 / max(self.optimum * self.vmax, MINIMUM))

    def _length_curve(self, length: Any) -> Any:
        """Four parabolas between lmin and lmax, 1 at the optimum."""
        L = self._normal_length(length)
        a, b = 0.5 * (self.lmin + 1.0), 0.5 * (1.0 + self.lmax)

        def square(distance: Any, width: float) -> Any:
            x = distance * (1.0 / max(width, MINIMUM))
            return x * x * 0.5

        pieces = select(L <= 1.0, 1.0 - square(1.0 - L, 1.0 - a), 1.0 - square(L - 1.0, b - 1.0))
        pieces = select(a >= L, square(L - self.lmin, a - self.lmin), pieces)
        pieces = select(b >= L, pieces, square(self.lmax - L, self.lmax - b))
        return select((self.lmin <= L) & (self.lmax >= L), pieces, 0.0)


def activation_rate(control: Any, activation: Any, prm: np.ndarray) -> Any:
    """d activation / dt of a muscle (Millard et al. 2013). prm: time constants of activation and of deactivation [s],
    width over which one turns into the other."""
    rise, fall, width = (float(x) for x in prm[:3])
    share = clamp(activation, 0.0, 1.0) * 1.5 + 0.5
    excess = clamp(control, 0.0, 1.0) - activation
    activating, deactivating = share * rise, fall / share
    if width < MINIMUM:
        tau = select(excess > 0.0, activating, deactivating)
    else:
        x = clamp(excess * (1.0 / width) + 0.5, 0.0, 1.0)
        smooth = x * x * x * (3.0 * x * (2.0 * x - 5.0) + 10.0)
        tau = deactivating + (activating - deactivating) * smooth
    return excess / maximum(tau, MINIMUM)
