"""Lengths and moment arms of tendons against MuJoCo in float64."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from physics_models import load
from physics_reference import DOUBLE, FloatStep, Sample, error, mujoco_data, samples, stages

WORLDS = ["tendons", "wrapping", "tendon_equality"]


def mujoco_jacobian(mj_model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    """(ntendon, nv)"""
    J = np.zeros((mj_model.ntendon, mj_model.nv))
    for t, (first, count) in enumerate(zip(mj_model.ten_J_rowadr, mj_model.ten_J_rownnz, strict=True)):
        J[t, mj_model.ten_J_colind[first : first + count]] = data.ten_J.ravel()[first : first + count]
    return J


def assert_same_tendons(mj_model: mujoco.MjModel, sample: Sample) -> mujoco.MjData:
    data, floats = mujoco_data(mj_model, sample), FloatStep(mj_model, sample)
    tendons, J = floats.smooth().tendons, np.zeros((mj_model.ntendon, mj_model.nv))
    for t, tendon in enumerate(tendons):
        J[t, list(tendon.moment)] = list(tendon.moment.values())
    assert error([tendon.length for tendon in tendons], data.ten_length) <= DOUBLE
    assert error(J, mujoco_jacobian(mj_model, data)) <= DOUBLE
    assert error([tendon.velocity(floats.qvel) for tendon in tendons], data.ten_velocity) <= DOUBLE
    return data


def near_rest(mj_model: mujoco.MjModel, displacement: np.ndarray | None = None) -> Sample:
    """A state that is a displacement away from qpos0, moving by it."""
    qpos, qvel = mj_model.qpos0.copy(), np.zeros(mj_model.nv) if displacement is None else displacement
    mujoco.mj_integratePos(mj_model, qpos, qvel, 1.0)
    return Sample(qpos, qvel, np.zeros(mj_model.nv), np.zeros(mj_model.nu))


@pytest.mark.parametrize("name", WORLDS)
def test_length_moment_and_velocity(name: str) -> None:
    for sample in samples(load(name), 8):
        assert_same_tendons(load(name), sample)


def test_tendons_leave_and_touch_what_they_wrap_in_the_tests() -> None:
    """Each tendon that can do both: a path has two more points where it touches."""
    points = np.array([stage.data.ten_wrapnum for stage in stages("wrapping", 24)])
    assert (points.max(axis=0) >= [5, 7, 4, 4, 5]).all()
    assert (np.ptp(points, axis=0)[[0, 1, 3, 4]] > 0).all()


# ---- paths round one geom --------------------------------------------------------------------------------------------


def path(kind: str, side: np.ndarray | None, rng: np.random.Generator) -> mujoco.MjModel:
    """A tendon between two moving bodies round a geom on a third one, all in random places."""

    def said(v: np.ndarray) -> str:
        return " ".join(str(x) for x in v)

    beside = 'sidesite="beside"' if side is not None else ""
    place = rng.normal(size=3) * 0.4
    across = rng.normal(size=3) * 0.4 if rng.random() < 0.6 else 0.1 * rng.normal(size=3) - place
    return mujoco.MjModel.from_xml_string(f"""
      <mujoco><worldbody><body pos="{said(0.1 * rng.normal(size=3))}"><joint axis="{said(rng.normal(size=3))}"/>
          <geom name="g" type="{kind}" size=".2 .3" euler="{said(100 * rng.normal(size=3))}"/>
          <site name="beside" pos="{said(np.zeros(3) if side is None else side)}"/>
          <body pos="{said(place)}"><joint type="ball"/><geom size=".1" pos=".1 .2 .1"/>
            <site name="a" pos=".1 0 .1"/></body></body>
        <body pos="{said(across)}"><freejoint/><geom size=".1"/><site name="b" pos="0 .05 0"/></body>
      </worldbody><tendon><spatial><site site="a"/><geom geom="g" {beside}/><site site="b"/></spatial></tendon></mujoco>
      """)


@pytest.mark.parametrize("kind", ["sphere", "cylinder"])
@pytest.mark.parametrize("side", ["none", "outside", "inside"])
def test_wrapping(kind: str, side: str) -> None:
    rng = np.random.default_rng(0)
    points = []
    for _ in range(20):
        beside = {"none": None, "outside": rng.normal(size=3) * 0.3, "inside": rng.normal(size=3) * 0.04}[side]
        mj_model = path(kind, beside, rng)
        data = assert_same_tendons(mj_model, near_rest(mj_model, 0.3 * rng.normal(size=mj_model.nv)))
        points.append(int(data.ten_wrapnum[0]))
    assert set(points) == {2, 4}  # straight, round


STRAIGHT_THROUGH = """<mujoco><worldbody><site name="a" pos="{x} 0 {z}"/><site name="o"/>
    <body pos="{x} 0 {z}" euler="0 10 0"><joint axis="0 1 0"/><geom size=".1" pos=".1 0 0" contype="0"/>
      <site name="b" pos="{tip}"/></body>
    <body euler="10 20 30"><joint type="ball"/><geom name="g" type="{kind}" size=".2 .3" contype="0"/></body>
  </worldbody><tendon><spatial><site site="a"/><geom geom="g" {side}/><site site="b"/></spatial></tendon></mujoco>
"""


@pytest.mark.parametrize("kind", ["sphere", "cylinder"])
@pytest.mark.parametrize("side", ["", 'sidesite="o"'])
@pytest.mark.parametrize(
    ("start", "tip"),
    [
        ((0.5, 0.0), (0.0, 0.0, 0.0)),  # no length
        ((0.1, 0.0), (0.5, 0.0, 0.0)),  # begins inside
        ((0.5, 0.0), (-0.45, 0.0, 0.0)),  # ends inside
        ((0.5, 0.1), (0.0, 0.0, 0.3)),  # passes
    ],
)
def test_special_places(kind: str, side: str, start: tuple[float, ...], tip: tuple[float, ...]) -> None:
    text = STRAIGHT_THROUGH.format(x=start[0], z=start[1], tip=" ".join(map(str, tip)), kind=kind, side=side)
    data = assert_same_tendons(load(text), near_rest(load(text)))
    assert np.isfinite(data.ten_length).all()


def test_through_the_centre() -> None:
    """The plane of the path is anyone's choice; its length is not."""
    text = STRAIGHT_THROUGH.format(x=0.5, z=0.0, tip="-1 0 0", kind="sphere", side="").replace('euler="0 10 0"', "")
    (tendon,) = FloatStep(load(text), near_rest(load(text))).smooth().tendons
    angle = np.pi - 2 * np.arccos(0.2 / 0.5)
    assert abs(tendon.length - (2 * np.sqrt(0.5**2 - 0.2**2) + 0.2 * angle)) <= DOUBLE
