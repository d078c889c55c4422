"""The pairs, their order and their parameters are those of MuJoCo's contacts."""

from __future__ import annotations

import dataclasses

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pluriverse.collision_pairs import (
    ContactPair,
    collision_pairs,
    contact_pairs,
)
from pluriverse.importers.model_files import ASSETS
from pluriverse.model import Model
from robot_files import FILES, robot_file

OWN = {path.stem: str(path) for path in ASSETS.rglob("*.xml")}
MINMU = 1e-5  # mjMINMU


def load(name: str) -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_path(OWN[name] if name in OWN else robot_file(name))


def from_xml(world: str, top: str = "") -> Model:
    return Model.from_mujoco(mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{world}</worldbody>{top}</mujoco>"))


def assert_contact_of(pair: ContactPair, contact: mujoco.MjContact, model: Model) -> None:
    assert contact.dim == pair.condim
    assert contact.includemargin == pytest.approx(pair.margin, rel=1e-15)
    np.testing.assert_allclose(contact.solref, pair.solref, rtol=1e-15)
    np.testing.assert_allclose(contact.solimp, pair.solimp, rtol=1e-15)
    np.testing.assert_array_equal(contact.solreffriction, pair.solreffriction)
    if pair.friction is None:
        assert contact.friction[0] == max(MINMU, *model.geom_friction[list(pair.friction_geoms), 0])
    else:
        np.testing.assert_array_equal(contact.friction, np.maximum(MINMU, pair.friction))


@pytest.mark.parametrize("name", [*OWN, *FILES])
def test_contacts_of_mujoco(name: str) -> None:
    mj_model = load(name)
    model = Model.from_mujoco(mj_model)
    pairs = contact_pairs(model)
    place = {(pair.geom1, pair.geom2): i for i, pair in enumerate(pairs)}
    assert len(place) == len(pairs)
    data, rng = mujoco.MjData(mj_model), np.random.default_rng(0)
    for spread in (0.5, 1.0, 3.0) * 4:
        mujoco.mj_resetData(mj_model, data)
        mujoco.mj_integratePos(mj_model, data.qpos, spread * rng.normal(size=mj_model.nv), 1)
        mujoco.mj_forward(mj_model, data)
        order = [place[tuple(contact.geom)] for contact in data.contact]
        assert order == sorted(order)
        for contact, i in zip(data.contact, order, strict=True):
            assert_contact_of(pairs[i], contact, model)


def touching_pairs(mj_model: mujoco.MjModel) -> set[tuple[int, int]]:
    """All pairs for which MuJoCo reports a contact when each geom is felt from 100 m away."""
    mj_model.geom_margin[:] = mj_model.pair_margin[:] = mj_model.body_margin[:] = 100
    data = mujoco.MjData(mj_model)
    mujoco.mj_forward(mj_model, data)
    return {tuple(contact.geom.tolist()) for contact in data.contact}


@pytest.mark.parametrize("name", ["ant", "humanoid", "go2", "gym_ant", "gym_humanoid", "dm_humanoid"])
def test_no_pair_is_missing_and_none_is_too_many(name: str) -> None:
    mj_model = load(name)
    assert set(collision_pairs(Model.from_mujoco(mj_model))) == touching_pairs(mj_model)


@st.composite
def worlds(draw: st.DrawFn) -> str:
    """Trees of spheres and capsules with random contact bits, joints, excludes and explicit pairs."""
    bits = st.integers(0, 3)
    count = draw(st.integers(1, 6))
    children: dict[int, list[int]] = {}
    for body in range(1, count + 1):
        children.setdefault(draw(st.integers(0, body - 1)), []).append(body)

    def geoms(body: int) -> str:
        kinds = draw(st.lists(st.sampled_from(["sphere", "capsule"]), min_size=1, max_size=2))
        return "".join(
            f'<geom name="g{body}_{i}" type="{kind}" size=".1 .1" contype="{draw(bits)}" conaffinity="{draw(bits)}"/>'
            for i, kind in enumerate(kinds)
        )

    def body_xml(body: int) -> str:
        joint = "<joint/>" if draw(st.booleans()) else ""
        inside = "".join(map(body_xml, children.get(body, [])))
        return f'<body name="b{body}" pos=".3 0 0">{joint}{geoms(body)}{inside}</body>'

    world = geoms(0) + '<geom type="plane" size="1 1 1"/>' + "".join(map(body_xml, children.get(0, [])))
    two = st.lists(st.integers(0, count), min_size=2, max_size=2, unique=True)
    name = lambda body: f"b{body}" if body else "world"  # noqa: E731
    excludes = {tuple(sorted(pair)) for pair in draw(st.lists(two, max_size=2))}
    explicit = {tuple(sorted(pair)) for pair in draw(st.lists(two, max_size=2))}
    contact = "".join(f'<exclude body1="{name(a)}" body2="{name(b)}"/>' for a, b in excludes)
    contact += "".join(f'<pair geom1="g{a}_0" geom2="g{b}_0" condim="1"/>' for a, b in explicit)
    flag = draw(st.sampled_from(["", '<option><flag filterparent="disable"/></option>']))
    return f"<mujoco>{flag}<worldbody>{world}</worldbody><contact>{contact}</contact></mujoco>"


@settings(max_examples=150, deadline=None)
@given(worlds())
def test_filters_on_random_worlds(xml: str) -> None:
    mj_model = mujoco.MjModel.from_xml_string(xml)
    model = Model.from_mujoco(mj_model)
    weld = model.body_treeid[model.geom_bodyid]
    moving = {pair for pair in touching_pairs(mj_model) if (weld[list(pair)] >= 0).any()}
    assert set(collision_pairs(model)) == moving


PARAMETERS = """
  <geom name="floor" type="plane" size="1 1 1" {floor}/>
  <body pos="0 0 .05"><freejoint/><geom name="ball" size=".1" {ball}/></body>
"""


@pytest.mark.parametrize(
    ("floor", "ball"),
    [
        ('friction=".3"', 'friction=".8 .1 .1"'),
        ('priority="1" friction=".3" condim="1" solref=".1 .5"', 'friction=".8"'),
        ('friction=".3"', 'priority="2" condim="1" solimp=".5 .6 .1 .4 3"'),
        ('solmix="3" solref=".1 2"', 'solmix="1" solref=".3 1" solimp=".5 .6 .1 .4 3"'),
        ('solmix="0" solref=".1 2"', 'solmix="1" solref=".3 1"'),
        ('solmix="1" solref=".1 2"', 'solmix="0" solref=".3 1"'),
        ('solmix="0" solref=".1 2"', 'solmix="0" solref=".3 1"'),
        ('solref="-100 -3"', 'solref=".3 1"'),
        ('solref="-100 -3"', 'solref="-50 -9"'),
        ('margin=".01" gap=".02"', 'margin=".03" gap=".005" condim="1"'),
        ('friction="0"', 'friction="0"'),
    ],
)
def test_mixing_of_parameters(floor: str, ball: str) -> None:
    mj_model = mujoco.MjModel.from_xml_string(
        f"<mujoco><worldbody>{PARAMETERS.format(floor=floor, ball=ball)}</worldbody></mujoco>"
    )
    model, data = Model.from_mujoco(mj_model), mujoco.MjData(mj_model)
    mujoco.mj_forward(mj_model, data)
    (pair,) = contact_pairs(model)
    assert_contact_of(pair, data.contact[0], model)
    assert pair.gap == model.geom_gap.sum()


def test_explicit_pair() -> None:
    contact = """<contact><pair geom1="ball" geom2="floor" condim="1" friction="1 2 3 4 5" solref="-10 -2" margin=".01"
      gap=".02" solreffriction=".1 1" solimp=".5 .6 .1 .4 3"/></contact>"""
    world = PARAMETERS.format(floor='contype="0"', ball="")
    mj_model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{world}</worldbody>{contact}</mujoco>")
    model, data = Model.from_mujoco(mj_model), mujoco.MjData(mj_model)
    mujoco.mj_forward(mj_model, data)
    (pair,) = contact_pairs(model)
    assert (pair.geom1, pair.geom2, pair.friction_geoms, pair.gap) == (0, 1, (), 0.02)
    assert_contact_of(pair, data.contact[0], model)


def test_explicit_pairs_of_immovable_bodies_are_left_out() -> None:
    model = from_xml(
        '<geom name="a" size=".1"/><body><geom name="b" size=".1"/></body>',
        '<contact><pair geom1="a" geom2="b"/></contact>',
    )
    assert contact_pairs(model) == ()


def test_midphase_does_not_change_the_set() -> None:
    model = Model.from_mujoco(load("go2"))
    opt = dataclasses.replace(model.opt, disableflags=int(mujoco.mjtDisableBit.mjDSBL_MIDPHASE))
    assert set(collision_pairs(dataclasses.replace(model, opt=opt))) == set(collision_pairs(model))
