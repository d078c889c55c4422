"""What rows of tendons ask of the step; their values are tested with those of all rows (`test_rows`)."""

from __future__ import annotations

import numpy as np
import pytest

from physics_models import four_legs, load
from physics_reference import DOUBLE, error, settings_of, stages
from pluriverse.constraints.tendon_rows import inertia_rows
from pluriverse.dynamics.tendons import tendon_inertia
from pluriverse.model import Model
from pluriverse.step import needs_joint_space
from pluriverse.step_kernel import lane_count


@pytest.mark.parametrize(("limits", "friction_loss"), [(True, False), (False, True)])
def test_rows_couple_dofs(limits: bool, friction_loss: bool) -> None:
    mj_model = load("wrapping")
    model = Model.from_mujoco(mj_model)
    assert needs_joint_space(model, settings_of(mj_model, limits=limits, friction_loss=friction_loss))
    assert not needs_joint_space(model, settings_of(mj_model, limits=False, friction_loss=False))


def test_inertia_couples_dofs() -> None:
    mj_model = load("tendons")
    settings = settings_of(mj_model, limits=False, friction_loss=False)
    assert needs_joint_space(Model.from_mujoco(mj_model), settings)


def test_legs_with_a_tendon_share_no_lanes() -> None:
    tendon = (
        '<tendon><fixed stiffness="1"><joint joint="hip0" coef="1"/><joint joint="hip1" coef="1"/></fixed></tendon>'
    )
    mj_model = load(four_legs().replace("<actuator>", f"{tendon}<actuator>"))
    assert lane_count(Model.from_mujoco(load("four_legs")), settings_of(load("four_legs"))) > 1
    assert lane_count(Model.from_mujoco(mj_model), settings_of(mj_model)) == 1


def test_rows_of_inertia_add_what_lies_on_one_chain() -> None:
    """The tendon that leads from a free body over two branches of another tree."""
    for stage in stages("tendons"):
        model, tendons, nv = stage.floats.model, stage.smooth.tendons, stage.mj_model.nv
        total, expected = np.zeros((nv, nv)), np.zeros((nv, nv))
        for t, tendon in enumerate(tendons):
            for row in inertia_rows(model, t, tendon) if model.tendon_armature[t] else ():
                for (i, j), product in row.products():
                    total[i, j] += row.weight * product
        for (i, j), value in tendon_inertia(model, tendons).items():
            one_chain = i in _upwards(model, j) or j in _upwards(model, i)
            expected[i, j] = value if i >= j and one_chain else 0.0
        assert error(total, expected) <= DOUBLE
        assert np.abs(expected).max() > 0.01


def _upwards(model: Model, dof: int) -> list[int]:
    return [] if dof < 0 else [dof, *_upwards(model, int(model.dof_parentid[dof]))]
