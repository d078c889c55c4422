"""Constraint rows against MuJoCo in float64: weight, residual and dry friction of each, as sets."""

from __future__ import annotations

from unittest import mock

import mujoco
import numpy as np
import pytest

from physics_models import load, names
from physics_reference import DOUBLE, FloatStep, Stage, error, mujoco_data, samples, settings_of, stages
from pluriverse.constraints.cones import Ellipse
from pluriverse.constraints.contacts import Contacts
from pluriverse.constraints.tendon_rows import InertiaRow
from pluriverse.constraints.tree_problem import TreeProblem

# What must have been seen in a model, so that a test of its rows tests them.
KIND = mujoco.mjtConstraint
SHOWN = {
    "frictionloss": KIND.mjCNSTR_FRICTION_DOF,
    "equality": KIND.mjCNSTR_EQUALITY,
    "limits": KIND.mjCNSTR_LIMIT_JOINT,
    "shapes": KIND.mjCNSTR_CONTACT_FRICTIONLESS,
    "contact_parameters": KIND.mjCNSTR_CONTACT_FRICTIONLESS,
    "round": KIND.mjCNSTR_CONTACT_PYRAMIDAL,
    "torsion": KIND.mjCNSTR_CONTACT_PYRAMIDAL,
    "elliptic": KIND.mjCNSTR_CONTACT_ELLIPTIC,
    "elliptic_torsion": KIND.mjCNSTR_CONTACT_ELLIPTIC,
    "four_legs": KIND.mjCNSTR_CONTACT_PYRAMIDAL,
    "tendons": KIND.mjCNSTR_LIMIT_TENDON,
    "wrapping": KIND.mjCNSTR_FRICTION_TENDON,
}


def package_rows(floats: FloatStep, acceleration: np.ndarray) -> np.ndarray:
    """(n, 3) weight D, residual J a - aref, and dry friction of each row. A row of an equality says the same with the
    other sign."""
    problem, qacc = solver_problem(floats, acceleration), acceleration.tolist()
    rows: list[list[float]] = []
    for r in problem.joint_rows.rows if problem else ():
        if isinstance(r, InertiaRow):
            continue
        if r.weight < 0:  # the second half of dry friction: +-loss is where the halves end
            weight, first, _ = rows.pop()
            second = r.residual(qacc)
            rows.append([weight, (first + second) / 2, weight * (second - first) / 2])
        elif r.weight > 0:
            residual = r.residual(qacc)
            rows.append([r.weight, abs(residual) if r.two_sided else residual, 0.0])
    if problem and problem.contacts.capacity:
        rows += contact_rows(problem.contacts)
    return np.array(rows).reshape(-1, 3)


def contact_rows(contacts: Contacts) -> list[list[float]]:
    rows: list[list[float]] = []
    for k in range(len(contacts.records)):
        cone, x = contacts.cone(k), contacts.parts("now", k)
        if isinstance(cone, Ellipse):
            weights = [cone.weight, *[cone.weight * (f / cone.mu) ** 2 for f in cone.frictions]]
            rows += [[weight, value, 0.0] for weight, value in zip(weights, x) if weight]
            continue
        edges = cone.rows(x)
        if not any(contacts.frictions(k)):  # frictionless: equal rows for one
            edges = [(edges[0][0], sum(weight for _, weight in edges))]
        rows += [[weight, value, 0.0] for value, weight in edges if weight]
    return rows


def solver_problem(floats: FloatStep, acceleration: np.ndarray) -> TreeProblem | None:
    """What the step hands to its solver, at the start `acceleration`; None where nothing constrains the model."""
    problems: list[TreeProblem] = []

    def keep(problem: TreeProblem, options: object) -> bool:
        problems.append(problem)
        return False

    with mock.patch("pluriverse.step.minimise", keep):
        floats.start_from(acceleration).result()
    return problems[0] if problems else None


def mujoco_rows(mj_model: mujoco.MjModel, data: mujoco.MjData, acceleration: np.ndarray) -> np.ndarray:
    """The same of MuJoCo."""
    residual = np.zeros(data.nefc)
    mujoco.mj_mulJacVec(mj_model, data, residual, acceleration)
    residual -= data.efc_aref
    residual[: data.ne] = np.abs(residual[: data.ne])
    return np.stack([data.efc_D, residual, data.efc_frictionloss], axis=1)


def assert_same_rows(mj_model: mujoco.MjModel, data: mujoco.MjData, floats: FloatStep) -> None:
    acceleration = np.random.default_rng(0).normal(size=mj_model.nv) * 10
    ours, theirs = package_rows(floats, acceleration), mujoco_rows(mj_model, data, acceleration)
    assert ours.shape == theirs.shape
    ours, theirs = (x[np.argsort(x[:, 1])] for x in (ours, theirs))  # residuals at random accelerations tell rows apart
    assert error(ours[:, 0] / theirs[:, 0], np.ones(len(theirs))) <= DOUBLE
    assert error(ours[:, 1], theirs[:, 1]) <= DOUBLE
    assert error(ours[:, 2], theirs[:, 2]) <= DOUBLE


@pytest.mark.parametrize("name", names("small") + names("robots"))
def test_rows(name: str) -> None:
    for stage in stages(name, 8):
        assert_same_rows(stage.mj_model, stage.data, stage.floats)


@pytest.mark.parametrize("name", SHOWN)
def test_rows_are_tested(name: str) -> None:
    seen: set[int] = set()
    for stage in stages(name, 8):
        seen |= set(stage.data.efc_type.tolist())
    assert int(SHOWN[name]) in seen


def contact_geoms(stage: Stage) -> set[tuple[int, int]]:
    return {tuple(sorted(pair)) for pair in stage.data.contact.geom.tolist()}


def test_moving_bodies_touch_in_the_tests() -> None:
    moving = {g for g in range(load("round").ngeom) if load("round").body_weldid[load("round").geom_bodyid[g]]}
    assert any(set(pair) <= moving for stage in stages("round", 8) for pair in contact_geoms(stage))
    fixed = {1, 2}  # a sphere and a capsule of the world
    assert any(set(pair) & fixed for stage in stages("round", 8) for pair in contact_geoms(stage))


FLAGS = {
    "contacts": ("CONTACT", "four_legs"),
    "limits": ("LIMIT", "limits"),
    "equalities": ("EQUALITY", "equality"),
    "friction_loss": ("FRICTIONLOSS", "frictionloss"),
}


@pytest.mark.parametrize("setting", FLAGS)
def test_disabled_kinds_have_no_rows(setting: str) -> None:
    bit, name = FLAGS[setting]
    mj_model = load(name, disableflags=int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{bit}")))
    assert not getattr(settings_of(mj_model), setting)
    for sample in samples(mj_model, 4):
        assert_same_rows(mj_model, mujoco_data(mj_model, sample), FloatStep(mj_model, sample))


@pytest.mark.parametrize("timestep", [0.002, 0.02])
@pytest.mark.parametrize("refsafe", [True, False])
def test_time_constants_shorter_than_two_steps(timestep: float, refsafe: bool) -> None:
    flags = 0 if refsafe else int(mujoco.mjtDisableBit.mjDSBL_REFSAFE)
    mj_model = load("limits", timestep=timestep, disableflags=flags)
    for sample in samples(load("limits"), 4):
        assert_same_rows(mj_model, mujoco_data(mj_model, sample), FloatStep(mj_model, sample))
