"""Contacts of boxes (and of a sphere with a cylinder) in poses that chance does not meet, against MuJoCo."""

from __future__ import annotations

from itertools import product
from typing import Any

import mujoco
import numpy as np
import pytest

from collision.test_narrow_phase import (
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


def beside(world: Any, apart: Any, q: Any) -> list[tuple[Any, Any]]:
    """The poses of two geoms: the first at a place with the quaternion `world`, the second in its frame."""
    position, offset, turned = np.array([0.1, 0.2, 0.3]), np.zeros(3), np.zeros(4)
    mujoco.mju_rotVecQuat(offset, np.array(apart, dtype=float), np.array(world, dtype=float))
    mujoco.mju_mulQuat(turned, np.array(world, dtype=float), np.array(q, dtype=float))
    return [(position, world), (position + offset, turned)]


def count(kinds: tuple[str, str], sizes: Any, poses: Any, margin: float = 0.0) -> int:
    """How many contacts there are, once they are found to be MuJoCo's."""
    return len(compare(two_geoms(kinds, np.random.default_rng(0), margin, sizes=sizes), poses, margin))


@NEEDS_MUJOCO_4
@pytest.mark.parametrize("depth", [1e-5, 1e-3, 0.05, -0.01])
@pytest.mark.parametrize("sizes", [(CUBE, CUBE), (CUBE, BLOCK), (PLATE, CUBE), (CUBE, PLATE), (SHEET, SHEET)])
def test_one_box_on_another(sizes: Any, depth: float) -> None:
    """Aligned, turned on the spot, hanging over, and slightly tilted; `depth` < 0 is inside the margin."""
    rng = np.random.default_rng(1)
    upper = sizes[1]
    height = sizes[0][2] + upper[2] - min(depth, 0.5 * min(sizes[0][2], upper[2]))
    overhang = [sizes[0][0] + upper[0] - 0.03, 0.01]
    for x, y in ([0.0, 0.0], [0.05, 0.0], [0.02, 0.03], overhang):
        assert count(("box", "box"), sizes, beside(UPRIGHT, [x, y, height], UPRIGHT), 0.02) == 4
        for angle in (np.pi / 4, rng.uniform(0.1, 1.4)):
            assert count(("box", "box"), sizes, beside(quaternion(rng), [x, y, height], turn([0, 0, 1], angle)), 0.02)
        tilt = turn(rng.normal(size=3), 10.0 ** rng.uniform(-5.0, -2.0))
        count(("box", "box"), sizes, beside(quaternion(rng), [x, y, height], tilt), 0.02)


@NEEDS_MUJOCO_4
def test_a_box_stands_on_an_edge_or_a_corner() -> None:
    rng = np.random.default_rng(2)
    on_edge, on_corner = turn([1, 0, 0], np.pi / 4), turn([1, -1, 0], np.arctan(2.0**0.5))
    for world, yaw in product([UPRIGHT, quaternion(rng)], [0.0, 0.3]):
        for q, height, expected in ((on_edge, 0.2**0.5 * 0.1**0.5, 2), (on_corner, 0.1 * 3.0**0.5, 1)):
            turned = np.zeros(4)
            mujoco.mju_mulQuat(turned, turn([0, 0, 1], yaw), q)
            assert count(("box", "box"), (PLATE, CUBE), beside(world, [0.1, 0.2, height + 0.009], turned)) == expected


@NEEDS_MUJOCO_4
def test_two_edges_cross() -> None:
    """Above each other, apart within the margin, and almost parallel."""
    rng = np.random.default_rng(3)
    height = 0.2 * 2.0**0.5
    edge = turn([0, 1, 0], np.pi / 4)
    for angle, depth in product([np.pi / 2, 0.7, 0.02, 1e-3], [0.02, 1e-4, -0.01]):
        for _ in range(3):
            upper, world = np.zeros(4), np.zeros(4)
            mujoco.mju_mulQuat(upper, turn([0, 0, 1], angle), turn([1, 0, 0], np.pi / 4))
            mujoco.mju_mulQuat(upper, edge * [1, -1, -1, -1], upper)
            mujoco.mju_mulQuat(world, quaternion(rng), edge)
            down = np.zeros(3)
            mujoco.mju_rotVecQuat(down, np.array([0.01, 0.02, height - depth]), edge * [1, -1, -1, -1])
            count(("box", "box"), (CUBE, CUBE), beside(world, down, upper), 0.02)
    ours = compare(two_geoms(("box", "box"), rng, sizes=(CUBE, CUBE)), crossed(height - 0.01))
    assert [c[0] for c in ours] == pytest.approx([-0.01])


def crossed(height: float) -> list[tuple[Any, Any]]:
    """Two boxes that stand on edges, across each other."""
    return [([0.0] * 3, turn([0, 1, 0], np.pi / 4)), ([0.0, 0.0, height], turn([1, 0, 0], np.pi / 4))]


@NEEDS_MUJOCO_4
def test_edges_of_a_box_deep_in_another() -> None:
    rng = np.random.default_rng(4)
    for _ in range(100):
        apart = rng.normal(size=3) * 10.0 ** rng.uniform(-6.0, -1.0)
        assert count(("box", "box"), (BLOCK, CUBE), beside(quaternion(rng), apart, quaternion(rng)))


def test_swapped_boxes_touch_with_the_normal_turned_round() -> None:
    rng = np.random.default_rng(5)
    seen = set()
    for _ in range(150):
        model = two_geoms(("box", "box"), rng)
        data = place(model, [(np.zeros(3), quaternion(rng)), (rng.normal(size=3) * 0.2, quaternion(rng))])
        boxes = [placed(model, data, geom, np.zeros(3)) for geom in (0, 1)]
        ours, swapped = contacts(*boxes, 0.02), contacts(*reversed(boxes), 0.02)
        assert_same(*(normals(c, sign) for c, sign in ((ours, 1.0), (swapped, -1.0))))
        seen.add(len(ours))
    assert {0, 1, 4, 6} <= seen


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
        for _ in range(10):
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
    """On a face, across an edge, at a corner, and inside; parallel to the box, almost so, and at angles."""
    rng = np.random.default_rng(7)
    radius = capsule[0]
    places = [
        [0.0, 0.0, box[2] + radius - 1e-3], [0.7 * box[0], 0.5 * box[1], box[2] + radius - 1e-3],
        [box[0] + 0.5 * radius, 0.1 * box[1], box[2] + 0.5 * radius], [box[0] + 0.6 * radius, box[1] + 0.6 * radius, 0.0],
        [*box], [0.0, 0.0, 0.0],
    ]  # fmt: skip
    counts = set()
    for where, axis in product(places, ([1, 0, 0], [0, 1, 0], [1, 2, 3])):
        for angle in (0.0, 1e-5, 1e-3, 0.1, 0.7, np.pi / 2):
            q = turn(axis, angle) * [1.0, -1.0, -1.0, -1.0]  # of the box as the capsule sees it
            apart = np.zeros(3)
            mujoco.mju_rotVecQuat(apart, -np.array(where) + 1e-3 * rng.normal(size=3), q)
            counts.add(count(("capsule", "box"), (capsule, box), beside(quaternion(rng), apart, q), 0.01))
    assert counts == {0, 1, 2}


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
