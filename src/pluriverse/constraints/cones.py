"""Friction cones: what a contact's rows cost, as a function of x = J a - reference in the contact frame.

x has `width` parts: along the normal, along the two tangents, then (condim 4, 6) the turning about the normal and about
the tangents. Both cones' costs are homogeneous of degree 2, so that with their curvature W(x) the gradient is W(x) x
and the cost x' W(x) x / 2: one function says everything (MuJoCo, "Computation / Friction cones").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pluriverse.dynamics.spatial import Vector, dot
from pluriverse.trace.functions import absolute, logical_not, reciprocal, select, sqrt

TINY = 1e-30
CLOSE = 1e-6  # change of a sliding contact, relative to its x, from which the next step is exact

Curvature = list[list[Any]]
"""Lower triangle of a symmetric matrix, row by row; zeros by structure are plain 0.0."""


@dataclass(frozen=True)
class Pyramid:
    """Rows J_n +- mu_i J_i, each of them one-sided. frictions: mu_i by axis; weights: D of the two rows by axis."""

    frictions: list[Any]
    weights: list[Any]

    def rows(self, x: Vector) -> list[tuple[Any, Any]]:
        """Value and weight of each row."""
        edges = [(mu * x_i, D) for mu, x_i, D in zip(self.frictions, x[1:], self.weights, strict=True)]
        return [(x[0] + side * edge, D) for edge, D in edges for side in (1.0, -1.0)]

    def curvature(self, x: Vector) -> Curvature:
        active = [select(value < 0.0, D, 0.0) for value, D in self.rows(x)]
        both = [active[2 * i] + active[2 * i + 1] for i in range(len(self.frictions))]
        total: Any = both[0]
        for w in both[1:]:
            total = total + w
        W: Curvature = [[total]]
        for i, mu in enumerate(self.frictions):
            side = (active[2 * i] - active[2 * i + 1]) * mu
            W.append([side, *[0.0] * i, both[i] * (mu * mu)])
        return W

    def changes(self, x: Vector, y: Vector) -> Any:
        """Whether a row changes sign between x and y."""
        changed: Any = False
        for (before, D), (after, _) in zip(self.rows(x), self.rows(y), strict=True):
            changed = changed | (before * after * D < 0.0)
        return changed


@dataclass(frozen=True)
class Ellipse:
    """One cone: N = mu x_0 against T = |(f_i x_i)|. Without force above it (N >= mu T), quadratic below the dual cone
    (mu N + T <= 0), and a sliding contact between.

    frictions: f_i by axis; mu: the regularised coefficient; weight: D of the normal row.
    """

    frictions: list[Any]
    mu: Any
    weight: Any

    def _scaled(self, x: Vector) -> tuple[Any, Vector, Any]:
        U = [f * x_i for f, x_i in zip(self.frictions, x[1:], strict=True)]
        return self.mu * x[0], U, sqrt(dot(U, U) + TINY)

    def _zones(self, N: Any, T: Any) -> tuple[Any, Any]:
        """Whether there is a force, and whether the contact slides."""
        return self.mu * T > N, (self.mu * T > N) & (self.mu * N + T > 0.0)

    def curvature(self, x: Vector) -> Curvature:
        N, U, T = self._scaled(x)
        presses, slides = self._zones(N, T)
        # In scaled parts: D (N^2 + U^2) / 2 / mu^2 below, D (N - mu T)^2 / (2 mu^2 (1 + mu^2)) between.
        D = select(presses, self.weight * reciprocal(self.mu * self.mu), 0.0)
        Dm = D * reciprocal(1.0 + self.mu * self.mu)
        along = reciprocal(T)
        u = [a * along for a in U]
        tangential = Dm * self.mu * (self.mu - N * along)
        radial = Dm * self.mu * (N * along)
        W: Curvature = [[select(slides, Dm, D) * (self.mu * self.mu)]]
        for i, f in enumerate(self.frictions):
            row = [select(slides, -(Dm * self.mu * u[i]), 0.0) * (self.mu * f)]
            for j in range(i + 1):
                middle = radial * (u[i] * u[j]) + (tangential if i == j else 0.0)
                row.append(select(slides, middle, D if i == j else 0.0) * (f * self.frictions[j]))
            W.append(row)
        return W

    def changes(self, x: Vector, y: Vector) -> Any:
        """Whether x and y lie in different zones, or apart in the one where the curvature varies."""
        (N, _, T), (M, _, S) = self._scaled(x), self._scaled(y)
        (presses, slides), (presses_then, slides_then) = self._zones(N, T), self._zones(M, S)
        step, size = 0.0, 0.0
        for a, b in zip(x, y, strict=True):
            step, size = step + absolute(b - a), size + absolute(a)
        moves = (slides | slides_then) & (step > CLOSE * size)
        return _differ(presses, presses_then) | _differ(slides, slides_then) | moves


Cone = Pyramid | Ellipse


def _differ(a: Any, b: Any) -> Any:
    """Whether exactly one of two conditions holds."""
    return (a | b) & logical_not(a & b)


def times(W: Curvature, x: Vector) -> Vector:
    """W x of a symmetric W."""
    return [dot(row_of(W, i), x) for i in range(len(W))]


def row_of(W: Curvature, i: int) -> Vector:
    """Row i in full."""
    return [W[max(i, j)][min(i, j)] for j in range(len(W))]
