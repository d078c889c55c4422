"""Contacts traced to a kernel and compiled for the CPU, against the same maths on plain numbers."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pluriverse.collision.hulls import Hull, Hulls
from pluriverse.collision.narrow_phase import collide, contact_sites
from pluriverse.collision.placed import Placed
from pluriverse.collision_pairs import BOX, CAPSULE, CYLINDER, MESH, PLANE, SPHERE
from pluriverse.runtime import runtime
from pluriverse.trace.kernel import Kernel
from pluriverse.trace.numbers import Numbers
from pluriverse.trace.program import Program
from pluriverse.trace.source import Target, print_source

N_ENVS = 64
MARGIN = 0.02
CUBE = Hull(
    0.1 * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]),
    ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)),
    np.array([[-1, 0, 0], [1, 0, 0], [0, -1, 0], [0, 1, 0], [0, 0, -1], [0, 0, 1]], dtype=float),
)
SHAPES: dict[int, dict[str, Any]] = {
    PLANE: {"size": [1.0, 1.0, 1.0], "rbound": 0.0},
    SPHERE: {"size": [0.1, 0.0, 0.0], "rbound": 0.1},
    CAPSULE: {"size": [0.1, 0.2, 0.0], "rbound": 0.3},
    CYLINDER: {"size": [0.1, 0.2, 0.0], "rbound": 0.23},
    BOX: {"size": [0.1, 0.2, 0.15], "rbound": 0.27},
    MESH: {"size": [0.1, 0.1, 0.1], "rbound": 0.18},
}
FIELDS = ("distance", "x", "y", "z", "normal_x", "normal_y", "normal_z")


def contact_maths(run: Any, type1: int, type2: int) -> None:
    """Reads two poses (position, flat rotation); writes the FIELDS of each contact in the list, else zeros."""
    poses, contacts = run.buffer("poses"), run.buffer("contacts")
    geoms = []
    for first, kind in ((0, type1), (12, type2)):
        pose = [poses.read(first + k) for k in range(12)]
        hull = Hulls(run, [CUBE]).view(0) if kind == MESH else None
        geoms.append(Placed(type=kind, position=pose[:3], rotation=pose[3:], hull=hull, **SHAPES[kind]))
    records = run.records("contacts", dict.fromkeys(FIELDS, "float"), contact_sites(type1, type2))

    def emit(distance: Any, position: list[Any], normal: list[Any], _: Any) -> None:
        records.append(**dict(zip(FIELDS, [distance, *position, *normal], strict=True)))

    collide(run, *geoms, MARGIN, emit)
    results = run.array(len(FIELDS) * contact_sites(type1, type2))
    for row in range(len(FIELDS) * contact_sites(type1, type2)):
        results[row] = 0.0
    for k in run.each(records):
        for field, name in enumerate(FIELDS):
            results[k * len(FIELDS) + field] = records.fields[name][k]
    for row in range(len(FIELDS) * contact_sites(type1, type2)):
        contacts.write(row, results[row])


def with_numbers(poses: np.ndarray, type1: int, type2: int) -> np.ndarray:
    """(contacts, fields, envs), the contacts of each environment first."""
    found = []
    for column in poses.T:
        buffers = {"poses": column.tolist(), "contacts": [0.0] * (len(FIELDS) * contact_sites(type1, type2))}
        contact_maths(Numbers(buffers), type1, type2)
        found.append(np.reshape(buffers["contacts"], (-1, len(FIELDS))))
    return np.stack(found, axis=-1)


def compiled(poses: np.ndarray, type1: int, type2: int, folder: Path, *, double: bool) -> np.ndarray:
    """The same by a kernel for the CPU. A list is that of a whole vector: an environment's contacts are moved together
    here."""
    program = Program()
    contact_maths(program, type1, type2)
    runtime.warp()
    target, dtype = Target(cuda=False, double=double), torch.float64 if double else torch.float32
    kernel = Kernel(print_source(program, target, f"contacts_{type1}_{type2}"), target, "cpu", folder)
    found = torch.full((len(FIELDS) * contact_sites(type1, type2), N_ENVS), torch.nan, dtype=dtype)
    inputs = torch.from_numpy(poses).to(dtype).contiguous()
    kernel.bind({"poses": inputs, "contacts": found}, N_ENVS, N_ENVS).launch()
    contacts = found.numpy().reshape(-1, len(FIELDS), N_ENVS)
    order = np.argsort(contacts[:, 0] == 0.0, axis=0, kind="stable")
    return np.take_along_axis(contacts, order[:, None], axis=0)


def random_rotation(rng: np.random.Generator) -> np.ndarray:
    Q, R = np.linalg.qr(rng.normal(size=(3, 3)))
    Q = Q * np.sign(np.diag(R))
    return Q * np.linalg.det(Q)


def random_poses(type1: int, rng: np.random.Generator) -> np.ndarray:
    """(24, N_ENVS); the second geom is near the first, in every third environment parallel (almost so on a plane)."""
    columns = []
    for env in range(N_ENVS):
        R = random_rotation(rng)
        tilt = 0.05 * rng.normal() if type1 == PLANE else 0.0  # which vertex is the lowest must not be a tie
        c, s = np.cos(tilt), np.sin(tilt)
        S = R @ [[c, 0.0, s], [s * s, c, -s * c], [-c * s, s, c * c]] if env % 3 == 0 else random_rotation(rng)
        position = rng.normal(size=3)
        apart = R[:, 2] * rng.uniform(0.0, 0.2) if type1 == PLANE else rng.normal(size=3) * 0.12
        columns.append(np.concatenate([position, R.ravel(), position + apart, S.ravel()]))
    return np.stack(columns, axis=1)


def boxes_beside(apart: list[float], rng: np.random.Generator) -> np.ndarray:
    """(24, N_ENVS); two boxes that lie so in the first one's frame, turned anywhere, in the second half with tilts that
    rounding makes."""
    columns = []
    for env in range(N_ENVS):
        R = random_rotation(rng)
        wobble = np.cross(np.eye(3), 1e-7 * rng.normal(size=3)) if env >= N_ENVS // 2 else np.zeros((3, 3))
        columns.append(np.concatenate([np.zeros(3), R.ravel(), R @ apart, (R @ (np.eye(3) + wobble)).ravel()]))
    return np.stack(columns, axis=1).astype(np.float32)


@pytest.mark.parametrize(("type1", "type2"), [(CAPSULE, CAPSULE), (PLANE, MESH)])
def test_compiled_contacts_are_those_of_numbers(gs_cpu: Any, tmp_path: Path, type1: int, type2: int) -> None:
    poses = random_poses(type1, np.random.default_rng(type2))
    expected = with_numbers(poses, type1, type2)
    assert (expected[1:, 0] != 0.0).any()
    np.testing.assert_allclose(compiled(poses, type1, type2, tmp_path, double=True), expected, atol=1e-12)


@pytest.mark.parametrize(("type1", "type2"), [(SPHERE, CYLINDER), (SPHERE, BOX), (CAPSULE, BOX), (BOX, BOX)])
def test_single_precision(gs_cpu: Any, tmp_path: Path, type1: int, type2: int) -> None:
    """Contacts in float32 are those of the same poses in float64, in any order."""
    poses = random_poses(type1, np.random.default_rng(type2)).astype(np.float32)
    poses[12:15] -= poses[:3]  # the geoms lie near their reference point
    poses[:3] = 0.0
    expected = with_numbers(poses.astype(float), type1, type2)
    found = compiled(poses, type1, type2, tmp_path, double=False)
    np.testing.assert_array_equal(found[:, 0] != 0.0, expected[:, 0] != 0.0)
    apart = np.abs(found[:, None] - expected[None]).max(axis=2)  # (ours, theirs, envs)
    assert apart.min(axis=1).max() < 1e-5
    assert apart.min(axis=0).max() < 1e-5
    assert (expected[-1, 0] != 0.0).any() or type1 == type2 == BOX
    assert (expected[:, 0] != 0.0).sum(axis=0).max() >= min(5, len(expected))


@pytest.mark.parametrize(("axes", "depth"), [((2,), 1e-6), ((2,), 1e-3), ((2,), -0.01), ((0, 1), 1e-3)])
def test_equal_boxes_keep_their_corners(gs_cpu: Any, tmp_path: Path, axes: tuple[int, ...], depth: float) -> None:
    """One on another, and beside each other along two axes. Rounding decides which of two edges that coincide is the
    outer one, and whether faces or edges are further apart; whatever it says, four corners touch."""
    size = np.array(SHAPES[BOX]["size"])
    apart = [2.0 * s - depth if k in axes else 0.0 for k, s in enumerate(size)]
    poses = boxes_beside(apart, np.random.default_rng(0))
    found = compiled(poses, BOX, BOX, tmp_path, double=False)
    assert (found[4:, 0] == 0.0).all()
    for env, column in enumerate(poses.T.astype(float)):
        places = found[:4, 1:4, env] @ column[3:12].reshape(3, 3)
        np.testing.assert_allclose(found[:4, 0, env], -depth, atol=5e-7)
        across = [k for k in range(3) if k not in axes]
        for signs in product((-1.0, 1.0), repeat=len(across)):
            near = np.abs(places[:, across] - signs * size[across]).max(axis=1) < 2e-6
            assert near.sum() == 4 // 2 ** len(across)
