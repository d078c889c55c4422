"""Actuator forces, and the damping that implicit integrators take from them, against MuJoCo in float64."""

from __future__ import annotations

import numpy as np
import pytest

from physics_models import load, names, world
from physics_reference import DOUBLE, FloatStep, Sample, by_index, error, mujoco_data, sorted_forces, stages

ONE_JOINT = '<body><joint name="a" {joint}/><geom size=".1" pos=".2 0 0"/></body>'


@pytest.mark.parametrize("name", names("small") + names("robots"))
def test_actuator_forces(name: str) -> None:
    for stage in stages(name):
        expected = sorted_forces(stage.mj_model, stage.data)["actuation"]
        assert error(by_index(stage.smooth.actuation), expected) <= DOUBLE


def test_every_kind_is_clamped_somewhere() -> None:
    mj_model = load("actuators")
    forces = np.array([stage.data.actuator_force for stage in stages("actuators", 8)])
    clamped = np.isin(forces, mj_model.actuator_forcerange)
    assert clamped[:, mj_model.actuator_forcelimited.astype(bool)].any(axis=0).all()
    assert not clamped.all()


@pytest.mark.parametrize(
    ("joint", "actuator", "ctrl", "kept"),
    [
        ("", "", 1.0, True),
        ("", 'forcerange="-1 1"', 1.0, False),
        ("", 'forcerange="-1 1"', 0.0, True),
        ('actuatorfrcrange="-1 1"', "", 1.0, False),
        ('actuatorfrcrange="-1 1"', "", 0.0, True),
        ('actuatorfrcrange="-1 1"', 'forcerange="-50 50"', 1.0, False),
        ('actuatorfrcrange="-50 50"', 'forcerange="-1 1"', 1.0, False),
    ],
)
def test_clamped_forces_have_no_damping(joint: str, actuator: str, ctrl: float, kept: bool) -> None:
    servo = f'<actuator><position joint="a" kp="10" kv="2" {actuator}/></actuator>'
    mj_model = load(world(ONE_JOINT.format(joint=joint), after=servo))
    sample = Sample(np.zeros(1), np.zeros(1), np.zeros(1), np.array([ctrl]))
    smooth = FloatStep(mj_model, sample).smooth()
    assert smooth.damping.get((0, 0), 0.0) == (2.0 if kept else 0.0)
    assert smooth.actuation[0] == mujoco_data(mj_model, sample).qfrc_actuator[0]


@pytest.mark.parametrize("ctrl", [(0.1, 0.2), (1.0, 1.0), (-1.0, 0.2), (1.0, -1.0)])
def test_the_sum_of_several_actuators_is_clamped(ctrl: tuple[float, float]) -> None:
    both = '<actuator><position joint="a" kp="3" kv="2"/><motor joint="a" gear="2" ctrlrange="-.6 .6"/></actuator>'
    mj_model = load(world(ONE_JOINT.format(joint='actuatorfrcrange="-1 1.5"'), after=both))
    sample = Sample(np.array([0.1]), np.array([-0.05]), np.zeros(1), np.array(ctrl))
    smooth = FloatStep(mj_model, sample).smooth()
    data = mujoco_data(mj_model, sample)
    assert smooth.actuation[0] == pytest.approx(data.qfrc_actuator[0], abs=DOUBLE)
    assert smooth.damping.get((0, 0), 0.0) == (0.0 if data.qfrc_actuator[0] in (-1, 1.5) else 2.0)
