"""Contacts of boxes (and of a sphere with a cylinder) in poses that chance does not meet, against MuJoCo."""

from __future__ import annotations

from itertools import product
from typing import Any

import mujoco
import numpy as np
import pytest

from collision.geom_pairs import (
    NEEDS_MUJOCO_4,
    UPRIGHT,
    Contact,
    assert_same,
    compare,
    contacts,
    place,
    placed,
    quaternion,
    two_geoms,
)

CUBE, BLOCK, PLATE, SHEET = [0.1, 0.1, 0.1], [0.1, 0.2, 0.15], [1.0, 0.8, 0.01], [0.5, 0.5, 0.002]


def turn(axis: Any, angle: float) -> np.ndarray:
    """The quaternion of a rotation about an axis of any length."""
    q = np.zeros(4)
    mujoco.mju_axisAngle2Quat(q, np.array(axis, dtype=float) / np.linalg.norm(axis), angle)
    return q


def times(*quaternions: Any) -> np.ndarray:
    """The product of quaternions."""
    product = np.array(UPRIGHT)
    for q in quaternions:
        mujoco.mju_mulQuat(product, product.copy(), np.array(q, dtype=float))
    return product


def turned(vector: Any, q: Any) -> np.ndarray:
    """A vector, rotated."""
    result = np.zeros(3)
    mujoco.mju_rotVecQuat(result, np.array(vector, dtype=float), np.array(q, dtype=float))
    return result


def back(q: Any) -> np.ndarray:
    """The quaternion of the opposite rotation."""
    return np.array(q) * [1.0, -1.0, -1.0, -1.0]


def beside(world: Any, apart: Any, q: Any) -> list[tuple[Any, Any]]:
    """The poses of two geoms: the first at a place with the quaternion `world`, the second in its frame."""
    position = np.array([0.1, 0.2, 0.3])
    return [(position, world), (position + turned(apart, world), times(world, q))]


@NEEDS_MUJOCO_4
@pytest.mark.parametrize("depth", [1e-5, 1e-3, 0.05, -0.01])
@pytest.mark.parametrize("sizes", [(CUBE, CUBE), (CUBE, BLOCK), (PLATE, CUBE), (CUBE, PLATE), (SHEET, SHEET)])
def test_one_box_on_another(sizes: Any, depth: float) -> None:
    """Aligned, turned on the spot, hanging over, and slightly tilted; `depth` < 0 is inside the margin."""
    rng = np.random.default_rng(1)
    model = two_geoms(("box", "box"), rng, 0.02, sizes=sizes)
    lower, upper = sizes
    height = lower[2] + upper[2] - min(depth, 0.5 * min(lower[2], upper[2]))
    for x, y in ([0.0, 0.0], [0.02, 0.03], [lower[0] + upper[0] - 0.03, 0.01]):
        apart = [x, y, height]
        assert len(compare(model, beside(UPRIGHT, apart, UPRIGHT), 0.02)) == 4
        for angle in (np.pi / 4, rng.uniform(0.1, 1.4)):
            compare(model, beside(quaternion(rng), apart, turn([0, 0, 1], angle)), 0.02)
        tilt = turn(rng.normal(size=3), 10.0 ** rng.uniform(-5.0, -2.0))
        compare(model, beside(quaternion(rng), apart, tilt), 0.02)


@NEEDS_MUJOCO_4
def test_a_box_stands_on_an_edge_or_a_corner() -> None:
    rng = np.random.default_rng(2)
    model = two_geoms(("box", "box"), rng, sizes=(PLATE, CUBE))
    on_edge, on_corner = turn([1, 0, 0], np.pi / 4), turn([1, -1, 0], np.arctan(2.0**0.5))
    for world, yaw in product([UPRIGHT, quaternion(rng)], [0.0, 0.3]):
        for q, height, count in ((on_edge, 0.1 * 2.0**0.5, 2), (on_corner, 0.1 * 3.0**0.5, 1)):
            poses = beside(world, [0.1, 0.2, 0.009 + height], times(turn([0, 0, 1], yaw), q))
            assert len(compare(model, poses)) == count


@NEEDS_MUJOCO_4
@pytest.mark.parametrize("angle", [np.pi / 2, 0.7, 0.02, 1e-3])
def test_two_edges_cross(angle: float) -> None:
    """Two boxes that stand on edges, one on the other: at this angle, deep, touching, and apart within the margin."""
    rng = np.random.default_rng(3)
    model = two_geoms(("box", "box"), rng, 0.02, sizes=(CUBE, CUBE))
    lower, upper = turn([0, 1, 0], np.pi / 4), times(turn([0, 0, 1], np.pi / 2 - angle), turn([1, 0, 0], np.pi / 4))
    for depth in (0.02, 1e-4, -0.01):
        apart = turned([0.01, 0.02, 0.2 * 2.0**0.5 - depth], back(lower))
        for _ in range(3):
            ours = compare(model, beside(quaternion(rng), apart, times(back(lower), upper)), 0.02)
            if angle > 0.1:
                assert [c[0] for c in ours] == pytest.approx([-depth])


@NEEDS_MUJOCO_4
def test_a_box_deep_in_another() -> None:
    rng = np.random.default_rng(4)
    model = two_geoms(("box", "box"), rng, sizes=(BLOCK, CUBE))
    for _ in range(30):
        apart = rng.normal(size=3) * 10.0 ** rng.uniform(-6.0, -1.0)
        assert compare(model, beside(quaternion(rng), apart, quaternion(rng)))


def test_swapped_boxes_touch_with_the_normal_turned_round() -> None:
    rng = np.random.default_rng(5)
    model, seen = two_geoms(("box", "box"), rng), set()
    for _ in range(60):
        data = place(model, [(np.zeros(3), quaternion(rng)), (rng.normal(size=3) * 0.2, quaternion(rng))])
        boxes = [placed(model, data, geom, np.zeros(3)) for geom in (0, 1)]
        ours, swapped = contacts(*boxes, 0.02), contacts(*reversed(boxes), 0.02)
        assert_same(*(normals(c, sign) for c, sign in ((ours, 1.0), (swapped, -1.0))))
        seen.add(len(ours))
    assert {0, 1, 4} <= seen


def normals(found: list[Contact], sign: float) -> list[Contact]:
    """The contacts with their normals times a sign, without tangents."""
    return [(distance, position, sign * frame[:3]) for distance, position, frame in found]


@NEEDS_MUJOCO_4
def test_edges_that_coincide_have_no_contacts_between_their_ends() -> None:
    """Equal boxes on each other, turned anywhere: where MuJoCo lists rounding's points too, there are four corners."""
    rng = np.random.default_rng(6)
    model = two_geoms(("box", "box"), rng, sizes=(CUBE, CUBE))
    listed = set()
    for quarter in range(4):
        for _ in range(4):
            data = place(model, beside(quaternion(rng), [0.0, 0.0, 0.199], turn([0, 0, 1], quarter * np.pi / 2)))
            ours = contacts(*(placed(model, data, geom, np.zeros(3)) for geom in (0, 1)), 0.0)
            assert len(ours) == 4
            for distance, position, frame in ours:
                nearest = min(data.contact, key=lambda c, p=position: np.linalg.norm(c.pos - p))  # type: ignore[misc]
                np.testing.assert_allclose(position, nearest.pos, atol=1e-9)
                np.testing.assert_allclose(distance, nearest.dist, atol=1e-9)
                np.testing.assert_allclose(frame[:3], nearest.frame[:3], atol=1e-9)
            listed.add(data.ncon)
    assert max(listed) > 4


@pytest.mark.parametrize("box", [CUBE, BLOCK, PLATE])
@pytest.mark.parametrize("capsule", [[0.05, 0.2], [0.2, 0.1], [0.02, 0.02]])
def test_a_capsule_at_a_box(capsule: list[float], box: list[float]) -> None:
    """On a face, across an edge, at a corner, and inside; almost parallel to the box, and at angles."""
    rng = np.random.default_rng(7)
    radius = capsule[0]
    places = [
        [0.0, 0.0, box[2] + radius - 1e-3], [0.7 * box[0], 0.5 * box[1], box[2] + radius - 1e-3],
        [box[0] + 0.5 * radius, 0.1 * box[1], box[2] + 0.5 * radius],
        [box[0] + 0.6 * radius, box[1] + 0.6 * radius, 0.0], [*box], [0.0, 0.0, 0.0],
    ]  # fmt: skip
    model, counts = two_geoms(("capsule", "box"), rng, 0.01, sizes=(capsule, box)), set()
    for where, axis in product(places, ([1, 2, 3], [2, -1, 0.5], [3, 1, -2])):
        for angle in (1e-5, 0.1, 0.7, 1.5):
            q = turn(axis, -angle)  # of the box as the capsule sees it
            apart = turned(1e-3 * rng.normal(size=3) - where, q)
            counts.add(len(compare(model, beside(quaternion(rng), apart, q), 0.01)))
    assert {1, 2} <= counts


@pytest.mark.parametrize("axis", range(3))
def test_a_capsule_across_a_box(axis: int) -> None:
    """Parallel to a face, it hangs over at both ends: there are two contacts, while MuJoCo may miss one."""
    rng = np.random.default_rng(10)
    size = np.array([0.1, 0.12, 0.15])
    model = two_geoms(("capsule", "box"), rng, sizes=([0.05, 0.2], size.tolist()))
    along = (turn([0, 1, 0], np.pi / 2), turn([1, 0, 0], np.pi / 2), np.array(UPRIGHT))[axis]
    listed = set()
    for face, sign in product({0, 1, 2} - {axis}, (1.0, -1.0)):
        where = np.full(3, 0.02)
        where[face] = sign * (size[face] + 0.04)
        for world in [UPRIGHT, *(quaternion(rng) for _ in range(5))]:
            data = place(model, [(turned(where, world), times(world, along)), ([0.0] * 3, world)])
            ours = contacts(*(placed(model, data, geom, np.zeros(3)) for geom in (0, 1)), 0.0)
            assert [c[0] for c in ours] == pytest.approx([-0.01, -0.01])
            places = np.array([turned(c[1], back(world)) for c in ours])
            np.testing.assert_allclose(np.sort(places[:, axis]), [-size[axis], size[axis]], atol=1e-9)
            for contact in data.contact:
                assert np.linalg.norm([c[1] - contact.pos for c in ours], axis=1).min() < 1e-9
            listed.add(data.ncon)
    assert listed == {1, 2}


def test_a_capsule_along_an_edge() -> None:
    """Outside both faces of an edge, and parallel to it, between its ends: there are two contacts, as above."""
    rng = np.random.default_rng(11)
    model, listed = two_geoms(("capsule", "box"), rng, sizes=([0.05, 0.1], CUBE)), set()
    for x, y in product((0.13, -0.13), repeat=2):
        for world in [UPRIGHT, *(quaternion(rng) for _ in range(5))]:
            data = place(model, [(turned([x, y, -0.01], world), world), ([0.0] * 3, world)])
            ours = contacts(*(placed(model, data, geom, np.zeros(3)) for geom in (0, 1)), 0.0)
            assert [c[0] for c in ours] == pytest.approx([0.03 * 2.0**0.5 - 0.05] * 2)
            assert np.linalg.norm(ours[0][1] - ours[1][1]) > 0.18
            listed.add(data.ncon)
    assert listed <= {1, 2}


def test_a_sphere_inside_a_box_or_a_cylinder() -> None:
    """Its centre is pushed out through the nearer surface; also from the very middle and from a surface."""
    rng = np.random.default_rng(8)
    for shape, size in (("box", [0.1, 0.2, 0.3]), ("cylinder", [0.2, 0.3]), ("cylinder", [0.3, 0.1])):
        model = two_geoms(("sphere", shape), rng, sizes=([0.05], size))
        for world in (UPRIGHT, quaternion(rng)):
            for apart in ([0.0] * 3, [0.0, 0.0, 0.05], *rng.uniform(-0.1, 0.1, (20, 3))):
                assert len(compare(model, beside(world, apart, UPRIGHT))) == 1
    for size in (0.1, 0.2):
        model = two_geoms(("sphere", "box"), rng, sizes=([0.05], [size] * 3))
        assert len(compare(model, [([0.0, 0.0, size], UPRIGHT), ([0.0] * 3, UPRIGHT)])) == 1


def test_a_sphere_around_a_cylinder() -> None:
    """At the side, over a cap, and at the rim."""
    rng = np.random.default_rng(9)
    model = two_geoms(("sphere", "cylinder"), rng, 0.02, sizes=([0.05], [0.2, 0.3]))
    for _ in range(20):
        angle, inner = rng.uniform(-np.pi, np.pi), rng.uniform(0.0, 0.2)
        out = np.array([np.cos(angle), np.sin(angle), 0.0])
        for sign, gap in product((1.0, -1.0), (-0.01, 0.01)):
            reach, rim = 0.05 + gap, (0.05 + gap) * 0.5**0.5
            for apart in (
                out * (0.2 + reach) + [0.0, 0.0, sign * inner], out * inner + [0.0, 0.0, sign * (0.3 + reach)],
                out * (0.2 + rim) + [0.0, 0.0, sign * (0.3 + rim)],
            ):  # fmt: skip
                ours = compare(model, [(np.array([0.1, 0.2, 0.3]) + apart, UPRIGHT), ([0.1, 0.2, 0.3], UPRIGHT)], 0.02)
                assert [c[0] for c in ours] == pytest.approx([gap])
