"""Rows of equality constraints against MuJoCo in float64, one by one: Jacobian, weight, reference."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest

from physics_models import load, world
from physics_reference import DOUBLE, FloatStep, Sample, error, mujoco_data, mujoco_step, samples, settings_of
from pluriverse.constraints.equalities import connection_stiffness, equality_rows
from pluriverse.constraints.rows import Row
from pluriverse.model import Model
from pluriverse.step import solver_path

WORLDS = ["connect", "four_bar", "sites", "mocap", "equality"]


def rows_of(floats: FloatStep) -> list[Row]:
    smooth = floats.smooth()
    state = (smooth.poses, smooth.velocities, floats.qpos, floats.qvel, smooth.tendons)
    return equality_rows(floats.tree, *state, floats.inputs.eq_active, floats.settings)


def jacobian(rows: list[Row], nv: int) -> np.ndarray:
    """(n, nv)"""
    J = np.zeros((len(rows), nv))
    for k, row in enumerate(rows):
        J[k, list(row.dofs)] = row.coefficients
    return J


def mujoco_jacobian(mj_model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    """(ne, nv)"""
    J = np.zeros((data.nefc, mj_model.nv))
    column = np.zeros(data.nefc)
    for d, unit in enumerate(np.eye(mj_model.nv)):
        mujoco.mj_mulJacVec(mj_model, data, column, unit)
        J[:, d] = column
    return J[: data.ne]


def all_switched(sample: Sample, on: bool) -> Sample:
    assert sample.eq_active is not None
    return replace(sample, eq_active=np.full_like(sample.eq_active, on))


@pytest.mark.parametrize("name", WORLDS)
def test_rows_one_by_one(name: str) -> None:
    """In MuJoCo's order. A quaternion of the other sign turns the rows that come from it round."""
    mj_model = load(name)
    for sample in [all_switched(sample, True) for sample in samples(mj_model, 6)]:
        data, rows = mujoco_data(mj_model, sample), rows_of(FloatStep(mj_model, sample))
        J, expected = jacobian(rows, mj_model.nv), mujoco_jacobian(mj_model, data)
        assert data.ne > 0
        assert J.shape == expected.shape
        sign = np.sign((J * expected).sum(axis=1))
        assert error(J, sign[:, None] * expected) <= DOUBLE
        assert error([row.reference for row in rows], sign * data.efc_aref[: data.ne]) <= DOUBLE
        assert error([row.weight for row in rows] / data.efc_D[: data.ne], np.ones(data.ne)) <= DOUBLE


@pytest.mark.parametrize("name", WORLDS)
def test_rows_that_are_switched_off_weigh_nothing(name: str) -> None:
    mj_model = load(name)
    rows = rows_of(FloatStep(mj_model, all_switched(samples(mj_model, 2)[1], False)))
    assert rows
    assert not any(row.weight for row in rows)


@pytest.mark.parametrize("name", WORLDS)
def test_switches_decide_in_each_sample(name: str) -> None:
    mj_model = load(name)
    sample = samples(mj_model, 2)[1]
    accelerations = []
    for on in (True, False):
        switched = all_switched(sample, on)
        result = FloatStep(mj_model, switched, settings_of(mj_model, tolerance=0.0, iterations=100)).result()
        assert result.errors(mujoco_step(mj_model, switched)).max() <= DOUBLE
        accelerations.append(result.qacc)
    assert error(*accelerations) > 1e-3


def test_bodies_that_cannot_move_have_no_rows() -> None:
    bodies = """<body name="a" mocap="true"/><body name="b"/><body name="c" mocap="true" pos="1 0 0"/>
      <body name="d"><joint type="slide" axis="1 0 0"/><geom size=".1"/></body>"""
    equalities = """<equality><weld body1="a" body2="b"/><connect body1="c" body2="a" anchor="0 0 0"/>
      <weld body1="a"/><connect body1="d" body2="a" anchor="0 .1 0"/></equality>"""
    mj_model = load(world(bodies, after=equalities))
    sample = samples(mj_model, 1)[0]
    rows = rows_of(FloatStep(mj_model, sample))
    assert [row.dofs for row in rows] == [(0,)]  # of the slide along x
    assert FloatStep(mj_model, sample).result().errors(mujoco_step(mj_model, sample)).max() <= DOUBLE


HANGING = '<body name="a"><joint/><geom size=".1" pos=".2 0 0" contype="0"/></body>'
OFF = '<equality><weld body1="a" active="false"/></equality>'


def test_a_constraint_that_is_off_at_first_is_in_the_code() -> None:
    mj_model = load(world(12 * HANGING.replace(' name="a"', "") + HANGING, after=OFF))
    assert solver_path(Model.from_mujoco(mj_model), settings_of(mj_model)) == "joint_space"
    assert solver_path(Model.from_mujoco(mj_model), settings_of(mj_model, equalities=False)) == "sweep"


def test_what_is_active_at_first_does_not_change_the_code() -> None:
    one, two = (Model.from_mujoco(load(world(HANGING, after=text))) for text in (OFF, OFF.replace("false", "true")))
    assert one.fingerprint() == two.fingerprint()
    assert one.digest() != two.digest()


def test_connection_stiffness() -> None:
    stiffness = {"equality": 0.0, "four_bar": 0.95 / 0.05, "sites": 0.95 / 0.05}
    for name, expected in stiffness.items():
        assert connection_stiffness(Model.from_mujoco(load(name))) == pytest.approx(expected)
