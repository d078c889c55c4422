"""Two geoms in MuJoCo and in our narrow phase, and their contacts in both."""

from __future__ import annotations

from typing import Any, cast

import mujoco
import numpy as np
import pytest

from pluriverse.collision.hulls import Hulls
from pluriverse.collision.narrow_phase import collide, contact_sites
from pluriverse.collision.placed import Placed
from pluriverse.collision_pairs import MESH
from pluriverse.trace.numbers import Numbers

N_SIZE = {"sphere": 1, "capsule": 2, "ellipsoid": 3, "cylinder": 2, "box": 3}
NEEDS_MUJOCO_4 = pytest.mark.skipif(int(mujoco.__version__.split(".")[0]) < 4, reason="MuJoCo 4 changed these contacts")
UPRIGHT = [1.0, 0.0, 0.0, 0.0]
Contact = tuple[float, np.ndarray, np.ndarray]  # distance, position, frame


def geom_text(kind: str, rng: np.random.Generator, size: list[float] | None = None) -> str:
    if kind == "plane":
        return '<geom type="plane" size="1 1 1"/>'
    if kind == "mesh":
        return '<geom type="mesh" mesh="mesh"/>'
    numbers = size or rng.uniform(0.05, 0.4, N_SIZE[kind]).tolist()
    return f'<geom type="{kind}" size="{" ".join(map(str, numbers))}"/>'


def two_geoms(
    kinds: tuple[str, str],
    rng: np.random.Generator,
    margin: float = 0.0,
    sizes: Any = (None, None),
    vertices: Any = None,
) -> mujoco.MjModel:
    """Two geoms, a plane fixed, others on free bodies; a mesh is the second of two. The margin is that of the pair."""
    points = rng.normal(size=(20, 3)) * [0.3, 0.2, 0.1] if vertices is None else np.asarray(vertices)
    numbers = " ".join(map(str, points.ravel()))
    mesh = f'<mesh name="first" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/><mesh name="mesh" vertex="{numbers}"/>'
    bodies = "".join(
        f"<body>{'' if kind == 'plane' else '<freejoint/>'}{geom_text(kind, rng, size)}</body>"
        for kind, size in zip(kinds, sizes, strict=True)
    )
    default = f'<default><geom margin="{margin / 2}"/></default>'
    return mujoco.MjModel.from_xml_string(
        f"<mujoco><asset>{mesh}</asset>{default}<worldbody>{bodies}</worldbody></mujoco>"
    )


def place(model: mujoco.MjModel, poses: list[tuple[Any, Any]]) -> mujoco.MjData:
    """Puts the two geoms themselves (not their bodies) at (position, quaternion)."""
    for geom, (position, quaternion) in enumerate(poses):
        model.geom_pos[geom], model.geom_quat[geom] = position, quaternion
        model.geom_sameframe[geom] = 0
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    mujoco.mj_collision(model, data)
    return data


def mujoco_contacts(data: mujoco.MjData) -> list[Contact]:
    return [(float(c.dist), c.pos.copy(), c.frame.copy()) for c in data.contact]


def placed(model: mujoco.MjModel, data: mujoco.MjData, geom: int, origin: np.ndarray) -> Placed:
    kind = int(model.geom_type[geom])
    return Placed(
        type=kind,
        position=(data.geom_xpos[geom] - origin).tolist(),
        rotation=data.geom_xmat[geom].tolist(),
        size=model.geom_size[geom].tolist(),
        rbound=float(model.geom_rbound[geom]),
        hull=Hulls.of(Numbers(), cast(Any, model), [geom]).view(0) if kind == MESH else None,
    )


def contact_frame(normal: np.ndarray, tangent: np.ndarray | None) -> np.ndarray:
    """Rows of the contact frame as `mju_makeFrame` makes them of a normal and a tangent."""
    if tangent is None:
        tangent = np.array([0.0, 1.0, 0.0]) if abs(normal[1]) < 0.5 else np.array([0.0, 0.0, 1.0])
    y = tangent - normal * (normal @ tangent)
    length = np.linalg.norm(y)
    y = np.array([1.0, 0.0, 0.0]) if length < 1e-15 else y / length
    return np.concatenate([normal, y, np.cross(normal, y)])


def contacts(geom1: Placed, geom2: Placed, margin: float, origin: Any = 0.0) -> list[Contact]:
    found: list[Contact] = []

    def emit(distance: float, position: list[float], normal: list[float], tangent: list[float] | None) -> None:
        frame = contact_frame(np.array(normal), None if tangent is None else np.array(tangent))
        found.append((distance, np.array(position) + origin, frame))

    collide(Numbers(), geom1, geom2, margin, emit)
    return found


def assert_same(ours: list[Contact], theirs: list[Contact], tolerance: float = 1e-9) -> None:
    """The same contacts; those of a box may come in another order."""
    assert len(ours) == len(theirs)
    left = list(theirs)
    for distance, position, frame in ours:
        other = left.pop(int(np.argmin([np.linalg.norm(c[1] - position) for c in left])))
        np.testing.assert_allclose(distance, other[0], rtol=0, atol=tolerance)
        np.testing.assert_allclose(position, other[1], rtol=0, atol=tolerance)
        np.testing.assert_allclose(frame, other[2], rtol=0, atol=tolerance)


def compare(model: mujoco.MjModel, poses: list[tuple[Any, Any]], margin: float = 0.0) -> list[Contact]:
    """Our contacts of two geoms, checked against MuJoCo's."""
    data = place(model, poses)
    origin = np.array([0.3, -0.7, 0.2])
    first, second = np.argsort(model.geom_type, kind="stable")
    ours = contacts(placed(model, data, first, origin), placed(model, data, second, origin), margin, origin)
    assert_same(ours, mujoco_contacts(data))
    assert len(ours) <= contact_sites(int(model.geom_type[first]), int(model.geom_type[second]))
    return ours


def quaternion(rng: np.random.Generator) -> np.ndarray:
    q = rng.normal(size=4)
    return q / np.linalg.norm(q)
