"""Solving A x = f for a matrix that has entries where two dofs lie on one chain, as the mass matrix has.

A need not be symmetric. Elimination from the last dof to the first fills no other entries in (Featherstone 2008,
section 6.5).
"""

from __future__ import annotations

from typing import Any

from pluriverse.trace.functions import reciprocal

from .transmission import Damping

UNROLLED = 8000  # operations beyond which straight-line code gives way to loops


def solve_in_chains(run: Any, n: int, A: Damping, f: list[Any]) -> list[Any]:
    """x of A x = f; entries of A that are zero by structure are left out."""
    above = [[j for j in range(k) if (k, j) in A or (j, k) in A] for k in range(n)]
    if sum(len(dofs) ** 2 for dofs in above) > UNROLLED:
        return _solve_in_loops(run, n, A, f)
    A, x, pivots = dict(A), list(f), [reciprocal(1.0)] * n
    for k in reversed(range(n)):
        pivots[k] = reciprocal(A[k, k])
        for i in above[k]:
            factor = A.get((i, k), 0.0) * pivots[k]
            for j in above[k]:
                A[i, j] = A.get((i, j), 0.0) - factor * A.get((k, j), 0.0)
            x[i] = x[i] - factor * x[k]
    for k in range(n):
        for j in above[k]:
            x[k] = x[k] - A.get((k, j), 0.0) * x[j]
        x[k] = x[k] * pivots[k]
    return x


def _solve_in_loops(run: Any, n: int, A: Damping, f: list[Any]) -> list[Any]:
    """The same elimination with traced loops over a dense array."""
    U, x, pivots = run.array(n * n, scratch=True), run.array(n, scratch=True), run.array(n, scratch=True)
    for i in run.range(n * n):
        U[i] = 0.0
    for (i, j), value in A.items():
        U[i * n + j] = value
    for i in range(n):
        x[i] = f[i]
    for down in run.range(n):
        k = (n - 1) - down
        pivots[k] = reciprocal(U[k * n + k])
        for i in run.range(k):
            factor = U[i * n + k] * pivots[k]
            for j in run.range(k):
                U[i * n + j] = U[i * n + j] - factor * U[k * n + j]
            x[i] = x[i] - factor * x[k]
    for k in run.range(n):
        total = run.variable(0.0, scratch=True)
        for j in run.range(k):
            total.value = total.value + U[k * n + j] * x[j]
        x[k] = (x[k] - total.value) * pivots[k]
    return [x[k] for k in range(n)]
