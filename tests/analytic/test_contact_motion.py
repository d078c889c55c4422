"""Bodies that touch: sliding and sticking on a slope, rolling, colliding, dry friction in a joint."""

from __future__ import annotations

import math

import numpy as np
import pytest
from float_simulation import simulate

from physics_models import load, world

G = 9.81


def slope(degrees: float, body: str, friction: float) -> object:
    """A body on a plane that falls in the direction of x, in axes along the plane: the weight is what is tilted."""
    angle = math.radians(degrees)
    floor = f'<geom type="plane" size="5 5 1" friction="{friction}"/>'
    weight = (G * math.sin(angle), 0.0, -G * math.cos(angle))
    moving = f'<body pos="0 0 .1"><freejoint/>{body.format(friction=friction)}</body>'
    return load(world(floor + moving), gravity=weight, impratio=10.0)


BOX = '<geom type="box" size=".2 .2 .1" friction="{friction}"/>'
BALL = '<geom size=".1" friction="{friction}"/>'


@pytest.mark.parametrize(("degrees", "friction"), [(10, 0.3), (30, 0.7)])
def test_box_sticks_below_the_angle_of_friction(degrees: float, friction: float) -> None:
    assert math.tan(math.radians(degrees)) < friction
    q, v = simulate(slope(degrees, BOX, friction), 250)
    free = 0.5 * G * math.sin(math.radians(degrees)) * 0.5**2
    assert abs(q[-1, 0]) < 0.01 * free
    assert np.abs(v[-1]).max() < 0.01


@pytest.mark.parametrize(("degrees", "friction"), [(30, 0.3), (40, 0.5), (20, 0.0)])
def test_box_slides_above_the_angle_of_friction(degrees: float, friction: float) -> None:
    """At a = g (sin - friction cos), and friction times the impulse of hops across the slope."""
    angle, time = math.radians(degrees), 150 * 0.002
    _, v = simulate(slope(degrees, BOX, friction), 300)
    gained = v[300] - v[150]
    found = (gained[0] + friction * gained[2]) / time
    assert found == pytest.approx(G * (math.sin(angle) - friction * math.cos(angle)), rel=0.001)
    assert abs(gained[2]) < 0.05


def test_ball_rolls_down_a_slope() -> None:
    """a = 5/7 g sin(angle), where friction is enough to roll."""
    _, v = simulate(slope(15, BALL, 1.0), 300)
    expected = 5 / 7 * G * math.sin(math.radians(15))
    assert (v[300, 0] - v[150, 0]) / (150 * 0.002) == pytest.approx(expected, rel=0.01)
    assert v[-1, 4] * 0.1 == pytest.approx(v[-1, 0], rel=0.01)  # it rolls without slip


def test_sliding_ball_ends_rolling() -> None:
    """A ball set sliding at v0 rolls at 5/7 v0 in the end, whatever the friction."""
    for friction in (0.2, 0.5):
        _, v = simulate(slope(0, BALL, friction), 400, qvel=[1.0, 0, 0, 0, 0, 0])
        assert v[-1, 0] == pytest.approx(5 / 7, rel=0.01)
        assert v[-1, 4] * 0.1 == pytest.approx(v[-1, 0], rel=0.01)


def test_resting_ball_carries_its_weight() -> None:
    """The contact's force is the weight, so the ball rests where reference and impedance balance g."""
    q, v = simulate(slope(0, BALL, 0.5), 500)
    assert np.abs(v[-1]).max() < 1e-6
    assert -0.01 < q[-1, 2] - 0.1 < 0


@pytest.mark.parametrize(("condim", "friction"), [(1, 0.0), (3, 0.8)])
def test_collision_keeps_momentum(condim: int, friction: float) -> None:
    bodies = "".join(
        f'<body pos="{x} {y} 0"><freejoint/><geom size=".1" mass="{m}" condim="{condim}" friction="{friction}"/></body>'
        for x, y, m in ((-0.15, 0.0, 1.0), (0.1, 0.05, 3.0))
    )
    mj_model = load(world(bodies), gravity=(0.0, 0.0, 0.0))
    q, v = simulate(mj_model, 120, qvel=[2, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0])
    masses, places, speeds = np.array([1.0, 3.0]), q[:, [0, 1, 2, 7, 8, 9]], v[:, [0, 1, 2, 6, 7, 8]]
    linear = np.einsum("b,tbi->ti", masses, speeds.reshape(-1, 2, 3))
    assert np.abs(v[-1] - v[0]).max() > 0.5  # they met
    assert np.abs(linear - linear[0]).max() < 1e-9
    about_origin = np.einsum("b,tbi->ti", masses, np.cross(places.reshape(-1, 2, 3), speeds.reshape(-1, 2, 3)))
    spin = np.einsum("b,tbi->ti", masses * 0.4 * 0.1**2, v[:, [3, 4, 5, 9, 10, 11]].reshape(-1, 2, 3))
    if condim == 1:
        assert np.abs(about_origin - about_origin[0]).max() < 1e-9
        assert np.abs(spin).max() < 1e-12


@pytest.mark.parametrize(("force", "moves"), [(1.5, False), (4.0, True)])
def test_dry_friction_in_a_joint(force: float, moves: bool) -> None:
    """Holds what is below its force, and takes it away from what is above."""
    text = '<body><joint type="slide" axis="1 0 0" frictionloss="2"/><geom size=".1" mass="1"/></body>'
    _, v = simulate(load(world(text), gravity=(force, 0.0, 0.0)), 500)
    assert v[-1, 0] == pytest.approx((force - 2) * 1.0, rel=0.01) if moves else abs(v[-1, 0]) < 0.05
