"""Quaternions against scipy-free identities: products, rotations and Euler angles agree with MuJoCo."""

from __future__ import annotations

import mujoco
import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from pluriverse import rotations

angle = st.floats(-3.1, 3.1)
unit = (
    st.tuples(*[st.floats(-1, 1)] * 4)
    .filter(lambda q: np.linalg.norm(q) > 1e-2)
    .map(lambda q: np.array(q) / np.linalg.norm(q))
)


@given(unit, unit, st.tuples(*[st.floats(-5, 5)] * 3))
def test_product_and_rotation_are_mujocos(a: np.ndarray, b: np.ndarray, v: tuple[float, ...]) -> None:
    product, turned = np.zeros(4), np.zeros(3)
    mujoco.mju_mulQuat(product, a, b)
    mujoco.mju_rotVecQuat(turned, np.array(v), a)
    ta, tb, tv = (torch.tensor(np.array(x)) for x in (a, b, v))
    np.testing.assert_allclose(rotations.multiply(ta, tb), product, atol=1e-14)
    np.testing.assert_allclose(rotations.rotate(ta, tv), turned, atol=1e-13)


@given(angle, st.floats(-1.5, 1.5), angle)
def test_euler_angles_turn_about_fixed_x_then_y_then_z(x: float, y: float, z: float) -> None:
    quat = np.zeros(4)
    mujoco.mju_euler2Quat(quat, np.array([x, y, z]), "XYZ")  # upper case: fixed axes
    angles = torch.tensor([x, y, z], dtype=torch.float64)
    np.testing.assert_allclose(rotations.from_euler(angles), quat, atol=1e-14)
    np.testing.assert_allclose(rotations.to_euler(rotations.from_euler(angles)), angles, atol=1e-7)


def test_straight_up_is_no_nan() -> None:
    up = rotations.from_euler(torch.tensor([0.3, torch.pi / 2, 0.0]))
    assert rotations.to_euler(up * 1.0001).isfinite().all()
