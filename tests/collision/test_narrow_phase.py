"""Contacts of every kind of pair against MuJoCo in float64, and what must hold of them without it."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collision.geom_pairs import NEEDS_MUJOCO_4, UPRIGHT, compare, contacts, place, placed, quaternion, two_geoms
from pluriverse.collision.narrow_phase import CONVEX, KINDS, contact_sites
from pluriverse.collision.placed import Placed
from pluriverse.collision_pairs import GEOM_TYPE_NAMES, SDF, SPHERE
from pluriverse.errors import GenesisException

KIND_NAMES = [(GEOM_TYPE_NAMES[a], GEOM_TYPE_NAMES[b]) for a, b in KINDS if (a, b) not in CONVEX]


@pytest.mark.parametrize("kinds", KIND_NAMES, ids="-".join)
@pytest.mark.parametrize("margin", [0.0, 0.08])
def test_contacts_are_mujocos(kinds: tuple[str, str], margin: float) -> None:
    rng = np.random.default_rng(len(kinds[0]) * 100 + len(kinds[1]))
    counts = []
    for _ in range(6):
        model = two_geoms(kinds, rng, margin)
        plane = kinds[0] == "plane"
        reach = (0.0 if plane else model.geom_rbound[0]) + model.geom_rbound[1]
        for _ in range(40):
            position, q = rng.normal(size=3), quaternion(rng)
            if plane:
                direction = np.zeros(3)
                mujoco.mju_rotVecQuat(direction, np.array([0.0, 0.0, 1.0]), q)
                apart = direction * reach * rng.uniform(-0.6, 1.5) + np.cross(direction, rng.normal(size=3))
            else:
                apart = rng.normal(size=3)
                apart *= rng.uniform(0.0, 1.5) * reach / np.linalg.norm(apart)
            counts.append(len(compare(model, [(position, q), (position + apart, quaternion(rng))], margin)))
    assert 0 in counts
    # At random, without parallel capsules, square faces, and faces that overlap in eight corners.
    fewer = {("capsule", "capsule"): 1, ("plane", "mesh"): 3, ("box", "box"): 7}
    assert max(counts) == fewer.get(kinds, contact_sites(*map(GEOM_TYPE_NAMES.index, kinds)))


def test_geoms_on_a_level_plane() -> None:
    """Poses at rest, where the lowest points tie."""
    rng = np.random.default_rng(1)
    lying = [0.5**0.5, 0.0, 0.5**0.5, 0.0]
    for kind, pose, height, count in [
        ("cylinder", UPRIGHT, 0.3, 3), ("cylinder", [0.0, 1.0, 0.0, 0.0], 0.3, 3), ("cylinder", lying, 0.2, 2),
        ("capsule", UPRIGHT, 0.5, 1), ("capsule", lying, 0.2, 2), ("box", UPRIGHT, 0.3, 4), ("box", lying, 0.2, 4),
    ]:  # fmt: skip
        model = two_geoms(("plane", kind), rng, sizes=(None, {"box": [0.2, 0.2, 0.3]}.get(kind, [0.2, 0.3])))
        assert len(compare(model, [([0.0] * 3, UPRIGHT), ([0.1, 0.2, height - 1e-3], pose)])) == count


@NEEDS_MUJOCO_4
@pytest.mark.parametrize("flip", [UPRIGHT, [0.0, 1.0, 0.0, 0.0]])
def test_parallel_capsules(flip: list[float]) -> None:
    rng = np.random.default_rng(2)
    model = two_geoms(("capsule", "capsule"), rng, 0.01, sizes=([0.1, 0.3], [0.12, 0.2]))
    counts = set()
    for along in (0.0, 0.05, 0.1, 0.3, 0.45, 0.5, 0.6, 0.7, 0.8):
        for aside in (0.0, 0.15, 0.2, 0.225, 0.25):
            counts.add(len(compare(model, [([0.0] * 3, UPRIGHT), ([aside, 0.0, along], flip)], 0.01)))
    assert counts == {0, 2}


@NEEDS_MUJOCO_4
@pytest.mark.parametrize(("angle", "count"), [(1e-7, 2), (0.99e-4, 2), (1.01e-4, 1), (1e-3, 1)])
def test_almost_parallel_capsules(angle: float, count: int) -> None:
    """Oriented at random, where cosines are rounded."""
    rng = np.random.default_rng(3)
    model = two_geoms(("capsule", "capsule"), rng, 0.01, sizes=([0.1, 0.3], [0.12, 0.2]))
    for _ in range(10):
        q, tilt, tilted, offset = quaternion(rng), np.zeros(4), np.zeros(4), np.zeros(3)
        mujoco.mju_axisAngle2Quat(tilt, np.array([1.0, 0.0, 0.0]), angle)
        mujoco.mju_mulQuat(tilted, q, tilt)
        mujoco.mju_rotVecQuat(offset, np.array([0.1, 0.12, rng.uniform(-0.4, 0.4)]), q)
        assert len(compare(model, [([0.0] * 3, q), (offset, tilted)], 0.01)) == count


@pytest.mark.parametrize("kinds", [("sphere", "sphere"), ("sphere", "capsule"), ("capsule", "capsule")], ids="-".join)
def test_coincident_centres(kinds: tuple[str, str]) -> None:
    rng = np.random.default_rng(3)
    model = two_geoms(kinds, rng)
    for q in (UPRIGHT, quaternion(rng)):
        assert compare(model, [([0.0] * 3, UPRIGHT), ([0.0] * 3, q)])


@NEEDS_MUJOCO_4
@pytest.mark.parametrize("count", [5, 9, 10, 40])
def test_meshes_of_any_size(count: int) -> None:
    """MuJoCo searches meshes below and from 10 vertices in two ways."""
    rng = np.random.default_rng(count)
    for _ in range(5):
        vertices = rng.normal(size=(count, 3))
        vertices[0] = vertices[1:5].mean(axis=0)  # not on the hull
        model = two_geoms(("plane", "mesh"), rng, vertices=vertices)
        for _ in range(20):
            compare(model, [([0.0] * 3, UPRIGHT), ([0.0, 0.0, rng.uniform(0.0, 1.0)], quaternion(rng))])


@NEEDS_MUJOCO_4
@pytest.mark.parametrize("count", [3, 4, 5, 7, 12])
def test_prisms_stand_on_faces_of_many_corners(count: int) -> None:
    """Of a face with more than four corners, four are chosen."""
    rng = np.random.default_rng(count)
    for _ in range(2):
        angles = np.sort(rng.uniform(0.0, 2.0 * np.pi, count))
        base = np.stack([0.2 * np.cos(angles), 0.2 * np.sin(angles)], axis=1)
        vertices = np.concatenate([np.column_stack([base, np.full(count, z)]) for z in (-0.03, 0.03)])
        model = two_geoms(("plane", "mesh"), rng, vertices=vertices)
        for face in np.flatnonzero(model.mesh_polyvertnum == count):
            down = np.zeros(4)
            mujoco.mju_quatZ2Vec(down, -model.mesh_polynormal[face])
            for _ in range(10):
                tilt, q = np.array([1.0, *rng.normal(size=3) * 0.01]), np.zeros(4)
                mujoco.mju_mulQuat(q, tilt / np.linalg.norm(tilt), down * [1.0, -1.0, -1.0, -1.0])
                compare(model, [([0.0] * 3, UPRIGHT), ([0.0, 0.0, 0.02], q)])


def test_mesh_flat_on_a_plane() -> None:
    cube = np.array([[x, y, z] for x in (-0.1, 0.1) for y in (-0.1, 0.1) for z in (-0.1, 0.1)])
    model = two_geoms(("plane", "mesh"), np.random.default_rng(4), vertices=cube)
    assert len(compare(model, [([0.0] * 3, UPRIGHT), ([0.0, 0.0, 0.0999], UPRIGHT)])) == 4


@settings(max_examples=60, deadline=None)
@given(
    kinds=st.sampled_from(KIND_NAMES),
    seed=st.integers(0, 50),
    motion=st.lists(st.floats(-1.0, 1.0), min_size=6, max_size=6),
)
def test_contacts_move_with_the_geoms(kinds: tuple[str, str], seed: int, motion: list[float]) -> None:
    rng = np.random.default_rng(seed)
    model = two_geoms(kinds, rng)
    poses = [(np.zeros(3), quaternion(rng)), (rng.normal(size=3) * 0.15, quaternion(rng))]
    turn = np.array([1.0, *motion[3:]]) / np.linalg.norm([1.0, *motion[3:]])
    rotation = np.zeros(9)
    mujoco.mju_quat2Mat(rotation, turn)
    R = rotation.reshape(3, 3)

    data = place(model, poses)
    before = [placed(model, data, geom, np.zeros(3)) for geom in (0, 1)]
    after = [
        replace(
            geom,
            position=(R @ geom.position + motion[:3]).tolist(),
            rotation=(R @ np.reshape(geom.rotation, (3, 3))).ravel().tolist(),
        )
        for geom in before
    ]
    ours, moved = contacts(*before, 0.05), contacts(*after, 0.05)
    assert len(ours) == len(moved)
    for (distance, position, frame), (distance2, position2, frame2) in zip(ours, moved, strict=True):
        np.testing.assert_allclose(distance2, distance, atol=1e-12)
        np.testing.assert_allclose(position2, R @ position + motion[:3], atol=1e-11)
        np.testing.assert_allclose(frame2[:3], R @ frame[:3], atol=1e-9)


def test_kinds_are_those_that_pairs_are_made_of() -> None:
    solid = range(SPHERE, SDF)
    assert set(KINDS) == {(one, other) for one in range(SDF) for other in solid if one <= other}
    box = GEOM_TYPE_NAMES.index("box")
    assert contact_sites(0, box) == 4
    assert contact_sites(box, SDF) == 0


def test_other_kinds_are_refused() -> None:
    sdf = Placed(SDF, [0.0] * 3, np.eye(3).ravel().tolist(), [1.0] * 3, 2.0)
    with pytest.raises(GenesisException, match="sdf and sdf"):
        contacts(sdf, sdf, 0.0)
