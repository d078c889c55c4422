"""Contacts traced to a kernel and compiled for the CPU, against the same maths on plain numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pluriverse.collision.hulls import Hull, Hulls
from pluriverse.collision.narrow_phase import collide, contact_sites
from pluriverse.collision.placed import Placed
from pluriverse.collision_pairs import CAPSULE, MESH, PLANE
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
    CAPSULE: {"size": [0.1, 0.2, 0.0], "rbound": 0.3},
    MESH: {"size": [0.1, 0.1, 0.1], "rbound": 0.18},
}


def contact_maths(run: Any, type1: int, type2: int) -> None:
    """Reads two poses (position, flat rotation); writes distance, position and normal of each contact, else zeros."""
    poses, contacts = run.buffer("poses"), run.buffer("contacts")
    geoms = []
    for first, kind in ((0, type1), (12, type2)):
        pose = [poses.read(first + k) for k in range(12)]
        hull = Hulls(run, [CUBE]).view(0) if kind == MESH else None
        geoms.append(Placed(type=kind, position=pose[:3], rotation=pose[3:], hull=hull, **SHAPES[kind]))
    results: list[Any] = [run.variable(0.0) for _ in range(7 * contact_sites(type1, type2))]
    used = run.variable(0.0)
    sites = iter(range(contact_sites(type1, type2)))

    def emit(distance: Any, position: list[Any], normal: list[Any], _: Any) -> None:
        site = next(sites)
        for k, value in enumerate([distance, *position, *normal]):
            results[7 * site + k].value = value
        used.value = used.value + 1.0

    collide(run, *geoms, MARGIN, emit)
    for row, result in enumerate([used, *results]):
        contacts.write(row, result.value)


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


@pytest.mark.parametrize(("type1", "type2"), [(CAPSULE, CAPSULE), (PLANE, MESH)])
def test_compiled_contacts_are_those_of_numbers(gs_cpu: Any, tmp_path: Path, type1: int, type2: int) -> None:
    poses = random_poses(type1, np.random.default_rng(type2))
    n_rows = 1 + 7 * contact_sites(type1, type2)
    expected = np.zeros((n_rows, N_ENVS))
    for env in range(N_ENVS):
        buffers = {"poses": poses[:, env].tolist(), "contacts": [0.0] * n_rows}
        contact_maths(Numbers(buffers), type1, type2)
        used, *filled = buffers["contacts"]
        sites = np.reshape(filled, (-1, 7))
        expected[0, env] = used
        expected[1:, env] = sites[np.argsort(sites[:, 0] == 0.0, kind="stable")].ravel()
    assert expected[0].max() > 1.0

    program = Program()
    contact_maths(program, type1, type2)
    runtime.warp()
    target = Target(cuda=False, double=True)
    kernel = Kernel(print_source(program, target, f"contacts_{type1}_{type2}"), target, "cpu", tmp_path)
    found = torch.full((n_rows, N_ENVS), torch.nan, dtype=torch.float64)
    kernel.bind({"poses": torch.from_numpy(poses).contiguous(), "contacts": found}, N_ENVS, N_ENVS).launch()

    sites = found[1:].numpy().reshape(-1, 7, N_ENVS)
    order = np.argsort(sites[:, 0] == 0.0, axis=0, kind="stable")  # numbers fill the first sites, kernels their own
    sites = np.take_along_axis(sites, order[:, None], axis=0)
    np.testing.assert_array_equal(found[0].numpy(), expected[0])
    np.testing.assert_allclose(sites.reshape(-1, N_ENVS), expected[1:], atol=1e-12)
