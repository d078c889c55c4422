"""Systems whose entries lie where the mass matrix has some, symmetric or not, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from pluriverse.dynamics import chain_solve
from pluriverse.trace.numbers import Numbers

PARENTS = [-1, 0, 1, 1, 3, -1, 5, 5, 7, 8, 7]  # of each dof


def system(seed: int) -> dict[tuple[int, int], float]:
    """A well-conditioned system with entries between each dof and those below it."""
    rng = np.random.default_rng(seed)
    A = {}
    for k, parent in enumerate(PARENTS):
        A[k, k] = 8.0 + rng.random()
        while parent >= 0:
            A[k, parent], A[parent, k] = rng.normal(size=2)
            parent = PARENTS[parent]
    return A


@pytest.mark.parametrize("limit", [chain_solve.UNROLLED, 0], ids=["unrolled", "loops"])
@pytest.mark.parametrize("one_sided", [False, True])
def test_solve(limit: int, one_sided: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain_solve, "UNROLLED", limit)
    n = len(PARENTS)
    for seed in range(3):
        A = {(i, j): x for (i, j), x in system(seed).items() if not one_sided or i >= j or (i, j) == (1, 4)}
        full, f = np.zeros((n, n)), np.random.default_rng(seed).normal(size=n)
        for place, value in A.items():
            full[place] = value
        found = chain_solve.solve_in_chains(Numbers(), n, A, f.tolist())
        np.testing.assert_allclose(found, np.linalg.solve(full, f), rtol=1e-12, atol=1e-12)
