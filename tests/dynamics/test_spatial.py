"""Identities of spatial algebra on random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pluriverse.dynamics import spatial
from pluriverse.dynamics.inertia import shift_inertia
from pluriverse.dynamics.tree import rotation

seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)


def vector(rng: np.random.Generator, size: int) -> list[float]:
    return rng.normal(size=size).tolist()


def close(a: Any, b: Any) -> bool:
    return bool(np.allclose(a, b, rtol=1e-10, atol=1e-10))


def inertia(rng: np.random.Generator) -> list[float]:
    A = rng.normal(size=(3, 3))
    moments = A @ A.T
    return spatial.rigid_inertia(rng.uniform(0.1, 2), vector(rng, 3), [moments[i, j] for i, j in spatial.SYMMETRIC])


def matrix(P: spatial.Articulated) -> np.ndarray:
    """The (6, 6) matrix of an articulated inertia."""
    A, B, C = P[0], np.reshape(P[1], (3, 3)), P[2]
    full = [np.reshape(spatial.symmetric_matrix(S), (3, 3)) for S in (A, C)]
    return np.block([[full[0], B], [B.T, full[1]]])


@given(seeds)
def test_power_does_not_depend_on_the_reference_point(rng: np.random.Generator) -> None:
    v, f, r = vector(rng, 6), vector(rng, 6), vector(rng, 3)
    there = spatial.shift_motion(v, r)  # v is about the parent's point
    assert close(spatial.dot(there, f), spatial.dot(v, spatial.shift_force(f, r)))


@given(seeds)
def test_motion_and_force_products_are_dual(rng: np.random.Generator) -> None:
    v, s, f = vector(rng, 6), vector(rng, 6), vector(rng, 6)
    assert close(spatial.dot(spatial.cross_motion(v, s), f), -spatial.dot(s, spatial.cross_force(v, f)))
    assert close(spatial.cross_motion(v, v), np.zeros(6))


@given(seeds)
def test_inertias_shift_like_their_quadratic_form(rng: np.random.Generator) -> None:
    I, v, r = inertia(rng), vector(rng, 6), vector(rng, 3)
    there = spatial.shift_motion(v, r)
    expected = spatial.shift_force(spatial.rigid_times(I, there), r)
    assert close(spatial.rigid_times(shift_inertia(I, r), v), expected)
    P = spatial.articulated_shift(spatial.articulated(I), r)
    assert close(spatial.articulated_times(P, v), expected)
    assert close(matrix(P) @ v, expected)


@given(seeds)
def test_articulated_sums_and_outer_products(rng: np.random.Generator) -> None:
    P, Q, u = spatial.articulated(inertia(rng)), spatial.articulated(inertia(rng)), vector(rng, 6)
    assert close(matrix(spatial.articulated_sum(P, Q)), matrix(P) + matrix(Q))
    g = spatial.scale(u, 0.3)
    assert close(matrix(spatial.articulated_minus_outer(P, u, g)), matrix(P) - np.outer(u, g))
    assert spatial.articulated_numbers(spatial.articulated_from(spatial.articulated_numbers(P))) == (
        spatial.articulated_numbers(P)
    )


@given(seeds)
def test_rotations(rng: np.random.Generator) -> None:
    axis, angle, q = vector(rng, 3), rng.uniform(-3, 3), vector(rng, 4)
    unit = np.array(axis) / np.linalg.norm(axis)
    turn = [np.cos(angle / 2), *(np.sin(angle / 2) * unit)]
    R = np.reshape(spatial.axis_angle_matrix(unit.tolist(), np.cos(angle), np.sin(angle)), (3, 3))
    assert close(R, rotation(np.array(turn)))
    q = (np.array(q) / np.linalg.norm(q)).tolist()
    Q = np.reshape(spatial.quaternion_matrix(q), (3, 3))
    assert close(Q, rotation(np.array(q)))
    assert close(np.reshape(spatial.quaternion_matrix(spatial.quaternion_product(turn, q)), (3, 3)), R @ Q)
    S = vector(rng, 6)
    turned = spatial.rotate_symmetric(R.ravel().tolist(), S)
    assert close(
        np.reshape(spatial.symmetric_matrix(turned), (3, 3)), R @ np.reshape(spatial.symmetric_matrix(S), (3, 3)) @ R.T
    )


def test_a_zero_quaternion_is_no_rotation() -> None:
    """As in MuJoCo, so that a cleared qpos makes no NaN."""
    assert spatial.quaternion_matrix([0.0, 0.0, 0.0, 0.0]) == [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]


@given(seeds, st.sampled_from([None, 0, 1, 2, 3]))
def test_quaternion_of_a_matrix(rng: np.random.Generator, largest: int | None) -> None:
    """Half turns about an axis included, where three of its numbers nearly vanish."""
    q = rng.normal(size=4) if largest is None else rng.normal(size=4) * 1e-9 + np.eye(4)[largest]
    q /= np.linalg.norm(q)
    found = np.array(spatial.matrix_quaternion(spatial.quaternion_matrix(q.tolist())))
    assert found[0] >= 0
    assert close(found * np.sign(found @ q), q)
