"""The derivative of bias forces by velocity. They are quadratic in it, so a difference over any step is exact."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from physics_models import load
from physics_reference import FloatStep, error, mujoco_data, samples
from pluriverse.dynamics.velocity_slopes import bias_damping, chain_columns


@pytest.mark.parametrize("name", ["joints", "gravcomp", "four_legs", "transmissions"])
def test_bias(name: str) -> None:
    mj_model = load(name)
    for sample in samples(mj_model, 2):
        floats = FloatStep(mj_model, sample)
        smooth, tree, damping = floats.smooth(), floats.tree, {}
        columns = chain_columns(tree, smooth.poses)
        bias_damping(
            tree, smooth.poses, smooth.inertias, smooth.velocities, floats.qvel, columns, damping, of=tree.nodes
        )
        found = np.zeros((mj_model.nv, mj_model.nv))
        for place, value in damping.items():
            found[place] = value
        for j, unit in enumerate(np.eye(mj_model.nv)):
            ahead, behind = (
                mujoco_data(mj_model, replace(sample, qvel=sample.qvel + sign * unit)).qfrc_bias for sign in (1, -1)
            )
            assert error(found[:, j], (ahead - behind) / 2) <= 1e-9
