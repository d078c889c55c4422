"""Impedance and reference of a row against MuJoCo, for any solref and solimp."""

from __future__ import annotations

import copy

import mujoco
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from physics_models import load, world
from pluriverse.constraints.impedance import impedance, stiffness_and_damping, weight

HINGE = world('<body><joint range="0 90" limited="true"/><geom size=".1" pos="1 0 0"/></body>')

positive, negative = st.floats(1e-3, 2), st.floats(-1e4, -1e-2)
solrefs = st.tuples(positive, positive) | st.tuples(negative, negative) | st.tuples(positive, negative)
solimps = st.tuples(
    st.floats(-0.1, 1.1), st.floats(-0.1, 1.1), st.floats(0, 0.5) | st.just(0.0), st.floats(0, 1), st.floats(0.5, 6)
)


@given(solrefs, solimps, st.floats(-1, -1e-6), st.floats(-3, 3))
@pytest.mark.filterwarnings("ignore")
def test_limit_row(solref: tuple, solimp: tuple, position: float, velocity: float) -> None:
    mj_model = copy.copy(load(HINGE))
    mj_model.jnt_solref[0], mj_model.jnt_solimp[0] = solref, solimp
    data = mujoco.MjData(mj_model)
    data.qpos[0], data.qvel[0] = position, velocity
    mujoco.mj_forward(mj_model, data)

    d = impedance(solimp, position)
    k, b = stiffness_and_damping(solref, solimp, mj_model.opt.timestep, True)
    assert weight(d, mj_model.dof_invweight0[0]) == pytest.approx(data.efc_D[0], rel=1e-9)
    assert -b * velocity - k * d * position == pytest.approx(data.efc_aref[0], rel=1e-9, abs=1e-9)


def test_weight_on_a_body_that_turns_about_its_centre_of_mass() -> None:
    """Its approximate inverse inertia to a push is 0: MuJoCo's row is as stiff as numbers can be."""
    text = world(
        '<body name="b"><joint/><geom size=".1"/></body>',
        after='<equality><connect body1="b" anchor=".1 0 0"/></equality>',
    )
    data = mujoco.MjData(load(text))
    mujoco.mj_forward(load(text), data)
    assert load(text).body_invweight0[1, 0] == 0
    assert weight(impedance(load(text).eq_solimp[0], 0.0), 0.0) == pytest.approx(data.efc_D[0], rel=1e-9)


def test_impedance_is_continuous_where_its_halves_meet() -> None:
    solimp = (0.1, 0.9, 0.5, 0.3, 3.0)
    middle = 0.3 * 0.5
    assert impedance(solimp, middle - 1e-9) == pytest.approx(impedance(solimp, middle + 1e-9), abs=1e-7)
    values = [impedance(solimp, x) for x in np.linspace(0, 0.6, 61)]
    assert values == sorted(values)
    assert (values[0], values[-1]) == (pytest.approx(0.1), pytest.approx(0.9))
