"""What holds of every world: the step is MuJoCo's; moved as a whole, it moves as a whole; contacts push both ways."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus_checks import contact_faults, float_contacts, mujoco_contacts, reference_step, smooth_errors, stage_of
from corpus_checks import stationarity as distance_from_solution
from physics_reference import DOUBLE, FloatStep, Sample, error, settings_of
from pluriverse.collision.narrow_phase import KINDS, collide
from pluriverse.collision.placed import Placed
from pluriverse.collision_pairs import CAPSULE, SPHERE
from pluriverse.trace.numbers import Numbers
from properties.random_worlds import World, worlds

KKT = 1e-11  # of the largest force: a solution in float64


@settings(max_examples=60)
@given(worlds() | worlds(option='cone="elliptic"'))
def test_the_step_is_mujocos(world: World) -> None:
    mj_model = world.compiled()
    sample = world.sample(mj_model)
    stage = stage_of(mj_model, sample)
    wrong = {name: value for name, value in smooth_errors(stage).items() if not value <= DOUBLE}
    assert not wrong
    contacts = float_contacts(stage.floats, stage.smooth.poses)
    assert not contact_faults(mj_model, contacts, mujoco_contacts(stage.data))
    reference, exact, data = reference_step(mj_model, sample, contacts)
    result = FloatStep(mj_model, sample, settings_of(mj_model, tolerance=0.0, iterations=100)).result()
    assert distance_from_solution(exact, data, result.qacc) <= KKT
    assert error(result.qvel - sample.qvel, reference.qvel - sample.qvel) <= DOUBLE


@settings(max_examples=30)
@given(
    worlds(option='cone="elliptic"'),
    st.tuples(*[st.integers(-180, 180)] * 3),
    st.tuples(*[st.integers(-20, 20)] * 3),
)
def test_a_world_moved_as_a_whole_moves_as_a_whole(world: World, euler: Any, place: Any) -> None:
    """Cones are round: a pyramid's sides stand along the world's axes."""
    frame = f'euler="{_spell(euler)}" pos="{_spell(place)}"'
    here, there = world.compiled(), world.compiled(frame)
    rotation = _rotation(frame)
    there.opt.gravity[:] = rotation @ here.opt.gravity
    sample = world.sample(here)
    moved = _moved(here, sample, rotation, np.array(place, dtype=float))
    exact = settings_of(here, tolerance=0.0, iterations=100)
    result = FloatStep(there, moved, exact).result()
    expected = FloatStep(here, sample, exact).result()
    assert error(result.qacc, _turned(here, expected.qacc, rotation)) <= 1e-8
    assert error(result.qvel, _turned(here, expected.qvel, rotation)) <= 1e-8


@pytest.mark.parametrize("kind", [SPHERE, CAPSULE])
@given(seed=st.integers(0, 10_000))
def test_two_alike_geoms_push_each_other_the_same_way(kind: int, seed: int) -> None:
    assert (kind, kind) in KINDS
    rng = np.random.default_rng(seed)
    one, two = (_placed(rng, kind) for _ in range(2))
    forth, back = _contacts(one, two), _contacts(two, one)
    assert len(forth) == len(back)
    for distance, position, normal in forth:
        near = min(back, key=lambda other: float(np.abs(other[1] - position).max()))
        np.testing.assert_allclose(near[0], distance, atol=1e-9)
        np.testing.assert_allclose(near[1], position, atol=1e-9)
        np.testing.assert_allclose(near[2], -normal, atol=1e-9)


def _spell(numbers: Any) -> str:
    return " ".join(map(str, numbers))


def _rotation(frame: str) -> np.ndarray:
    text = f"<mujoco><worldbody><frame {frame}><body/></frame></worldbody></mujoco>"
    matrix = np.zeros(9)
    mujoco.mju_quat2Mat(matrix, mujoco.MjModel.from_xml_string(text).body_quat[1])
    return matrix.reshape(3, 3)


def _moved(mj_model: mujoco.MjModel, sample: Sample, rotation: np.ndarray, place: np.ndarray) -> Sample:
    """The sample after the whole world has moved: that of free joints moves with it."""
    qpos, turn = sample.qpos.copy(), np.zeros(4)
    mujoco.mju_mat2Quat(turn, rotation.ravel())
    for joint in np.flatnonzero(mj_model.jnt_type == mujoco.mjtJoint.mjJNT_FREE):
        q = qpos[mj_model.jnt_qposadr[joint] :][:7]
        q[:3] = place + rotation @ q[:3]
        mujoco.mju_mulQuat(q[3:], turn, q[3:].copy())
    warmstart, qvel = (_turned(mj_model, x, rotation) for x in (sample.warmstart, sample.qvel))
    return replace(sample, qpos=qpos, qvel=qvel, warmstart=warmstart)


def _turned(mj_model: mujoco.MjModel, values: np.ndarray, rotation: np.ndarray) -> np.ndarray:
    """Values by dof, the translations of free joints turned."""
    values = values.copy()
    for joint in np.flatnonzero(mj_model.jnt_type == mujoco.mjtJoint.mjJNT_FREE):
        dof = mj_model.jnt_dofadr[joint]
        values[dof : dof + 3] = rotation @ values[dof : dof + 3]
    return values


def _placed(rng: np.random.Generator, kind: int) -> Placed:
    matrix, quaternion = np.zeros(9), rng.normal(size=4)
    mujoco.mju_quat2Mat(matrix, quaternion / np.linalg.norm(quaternion))
    size = rng.uniform(0.1, 0.4, size=3)
    place = rng.uniform(-0.3, 0.3, size=3)
    return Placed(kind, place.tolist(), matrix.tolist(), size.tolist(), float(size.sum()))


def _contacts(one: Placed, two: Placed) -> list[tuple[float, np.ndarray, np.ndarray]]:
    found: list[tuple[float, np.ndarray, np.ndarray]] = []
    collide(Numbers(), one, two, 0.1, lambda d, p, n, _: found.append((d, np.array(p), np.array(n))))
    return found
