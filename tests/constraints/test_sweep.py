"""Articulated-body sweeps: against dense algebra, and the solver's two paths against each other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from physics_models import load
from physics_reference import DOUBLE, FloatStep, by_index, error, full_matrix, samples, settings_of, stages
from pluriverse.constraints.sweep import articulated_sweep, solve_symmetric
from pluriverse.step import solver_path

KEEPS_TREE = ["joints", "gravcomp", "frictionloss", "springs", "damped", "four_legs", "own_cartpole"]


@given(st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_solve_symmetric(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n))
    H, y = A @ A.T + np.eye(n), rng.normal(size=n)
    assert error(solve_symmetric(H.tolist(), y.tolist()), np.linalg.solve(H, y)) <= DOUBLE


@pytest.mark.parametrize("name", ["joints", "springs", "chain", "go1"])
def test_sweep_inverts_the_mass_matrix(name: str) -> None:
    for stage in stages(name):
        tree, smooth = stage.floats.tree, stage.smooth
        forces = np.random.default_rng(0).normal(size=stage.mj_model.nv)
        qacc, motions = articulated_sweep(
            tree, smooth.poses, smooth.inertias, None, smooth.armature, dict(enumerate(forces.tolist()))
        )
        assert error(full_matrix(stage) @ by_index(qacc), forces) <= DOUBLE
        assert len(motions) == len(tree.nodes)


@pytest.mark.parametrize("name", KEEPS_TREE)
def test_paths_agree(name: str) -> None:
    mj_model = load(name)
    for sample in samples(mj_model, 6):
        one, two = (
            FloatStep(mj_model, sample, settings_of(mj_model, path=path, tolerance=0.0)).result()
            for path in ("sweep", "joint_space")
        )
        assert max(one.errors(two)) <= DOUBLE


def test_rows_that_leave_the_tree_take_the_general_path() -> None:
    for name in ("equality", "limits", "round"):
        floats = stages(name)[0].floats
        assert solver_path(floats.model, floats.settings) == "joint_space"
    floats = stages("four_legs")[0].floats
    assert solver_path(floats.model, floats.settings) == "sweep"
