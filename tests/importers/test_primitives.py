"""Primitive morphs become MuJoCo geoms with Genesis's masses and friction."""

from __future__ import annotations

import math

import numpy as np
import pytest

from importers.scenes import compiled, source
from pluriverse.collision_pairs import BOX, CAPSULE, CYLINDER, ELLIPSOID, PLANE, SPHERE
from pluriverse.importers.scene_spec import compile_scene
from pluriverse.materials import Rigid
from pluriverse.morphs import Box, Capsule, Cylinder, Ellipsoid, Plane, Primitive, Sphere
from pluriverse.options import RigidOptions, SimOptions
from pluriverse.surfaces import Rough

SHAPES = [
    (Box(size=(0.1, 0.2, 0.3)), BOX, (0.05, 0.1, 0.15), 0.006),
    (Sphere(radius=0.1), SPHERE, (0.1, 0, 0), 4 / 3 * math.pi * 1e-3),
    (Cylinder(radius=0.1, height=0.4), CYLINDER, (0.1, 0.2, 0), math.pi * 4e-3),
    (Capsule(radius=0.1, height=0.4), CAPSULE, (0.1, 0.2, 0), math.pi * (4e-3 + 4 / 3 * 1e-3)),
    (Ellipsoid(radii=(0.1, 0.2, 0.3)), ELLIPSOID, (0.1, 0.2, 0.3), 4 / 3 * math.pi * 6e-3),
]


@pytest.mark.parametrize(("morph", "kind", "size", "volume"), SHAPES, ids=lambda value: type(value).__name__)
def test_shape_and_mass(morph: Primitive, kind: int, size: tuple, volume: float) -> None:
    model = compiled(morph).model
    assert model.geom_type[0] == kind
    np.testing.assert_allclose(model.geom_size[0], size, rtol=1e-15)
    np.testing.assert_allclose(model.body_mass[1], 600 * volume, rtol=1e-12)
    np.testing.assert_array_equal(model.geom_friction[0], (1, 0.005, 0.0001))
    np.testing.assert_array_equal(model.geom_solref[0], (0.02, 1))
    np.testing.assert_array_equal(model.geom_solimp[0], (0.9, 0.95, 0.001, 0.5, 2))
    assert (model.nv, model.nq, model.geom_contype[0], model.geom_conaffinity[0]) == (6, 7, 0xFFFF, 0xFFFF)


def test_names_are_those_of_genesis() -> None:
    entity = compiled(Box(size=(1, 1, 1))).entities[0]
    assert entity.body_names == ("box_baselink",)
    assert entity.joint_names == ("box_joint",)
    assert entity.geom_names == ("box",)


def test_pose_and_fixed() -> None:
    model = compiled(Sphere(pos=(1, 2, 3), euler=(0, 0, 90)), Sphere(pos=(4, 5, 6), fixed=True)).model
    half = math.sqrt(0.5)
    np.testing.assert_allclose(model.qpos0, (1, 2, 3, half, 0, 0, half), rtol=1e-12)
    np.testing.assert_array_equal(model.body_pos[2], (4, 5, 6))
    assert model.body_weldid[2] == 0


def test_plane() -> None:
    model = compiled(Plane(pos=(0, 0, 1), normal=(0, 0, -2)), Plane(normal=(1, 0, 0))).model
    import mujoco

    assert (model.nv, model.geom_type.tolist()) == (0, [PLANE, PLANE])
    np.testing.assert_array_equal(model.geom_size[:, :2], 0)
    for geom, normal in enumerate(((0, 0, -1), (1, 0, 0))):
        turned = np.zeros(3)
        mujoco.mju_rotVecQuat(turned, np.array((0.0, 0.0, 1.0)), model.geom_quat[geom])
        np.testing.assert_allclose(turned, normal, atol=1e-12)


def test_material_and_surface() -> None:
    material = Rigid(rho=100, friction=0.3, friction_torsional=0.01, friction_rolling=0.02, gravity_compensation=0.5)
    entity = source(Sphere(radius=0.1))
    made = compile_scene(
        [type(entity)("ball", entity.morph, material, Rough(color=(1, 0, 0)))], SimOptions(), RigidOptions()
    ).model
    np.testing.assert_allclose(made.body_mass[1], 100 * 4 / 3 * math.pi * 1e-3)
    np.testing.assert_array_equal(made.geom_friction[0], (0.3, 0.01, 0.02))
    np.testing.assert_array_equal(made.geom_rgba[0], (1, 0, 0, 1))
    assert made.body_gravcomp[1] == 0.5


def test_contact_bits() -> None:
    model = compiled(
        Sphere(contype=0xFFFFFFFF, conaffinity=1 << 31), Sphere(contype=2, conaffinity=4), Sphere(collision=False)
    ).model
    assert model.geom_contype.tolist() == [-1, 2, 0]
    assert model.geom_conaffinity.tolist() == [-(1 << 31), 4, 0]
