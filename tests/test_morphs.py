"""What a user may say about an entity: morph, material, surface, texture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pluriverse import materials, morphs, surfaces, textures
from pluriverse.errors import GenesisException
from pluriverse.morphs.base import quaternion_from_euler


def rotation_matrix(axis: int, degrees: float) -> np.ndarray:
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    i, j = [(1, 2), (2, 0), (0, 1)][axis]
    matrix = np.eye(3)
    matrix[i, i] = matrix[j, j] = c
    matrix[i, j], matrix[j, i] = -s, s
    return matrix


angles = st.floats(-360, 360)


@given(st.tuples(angles, angles, angles))
def test_euler_angles_are_about_fixed_axes(euler: tuple[float, float, float]) -> None:
    import mujoco

    matrix = np.zeros(9)
    mujoco.mju_quat2Mat(matrix, np.array(quaternion_from_euler(euler)))
    x, y, z = (rotation_matrix(axis, angle) for axis, angle in enumerate(euler))
    np.testing.assert_allclose(matrix.reshape(3, 3), z @ y @ x, atol=1e-12)


def test_rotation() -> None:
    assert morphs.Sphere().rotation == (1, 0, 0, 0)
    assert morphs.Sphere(quat=(0, 0, 0, 2)).rotation == (0, 0, 0, 1)


def test_a_box_by_its_corners() -> None:
    box = morphs.Box(lower=(0, 0, 0), upper=(1, 2, 4))
    assert (box.pos, box.size) == ((0.5, 1, 2), (1, 2, 4))


def test_genesis_defaults() -> None:
    assert (morphs.Sphere().radius, morphs.Cylinder().height, morphs.Cylinder().radius) == (0.5, 1, 0.5)
    assert (morphs.Box(size=(1, 1, 1)).contype, morphs.Box(size=(1, 1, 1)).fixed) == (0xFFFF, False)
    assert morphs.Plane().fixed
    assert morphs.MJCF(file="a.xml").default_armature is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: morphs.Sphere(radius=0), "Sphere: radius=0.0: expected lengths > 0"),
        (lambda: morphs.Sphere(raduis=1), "Did you mean 'radius'"),
        (lambda: morphs.Cylinder(height=-1), "Cylinder: height=-1.0"),
        (lambda: morphs.Capsule(radius=float("inf")), "Capsule: radius=inf"),
        (lambda: morphs.Ellipsoid(radii=(1, 0, 1)), "Ellipsoid: radii"),
        (lambda: morphs.Box(), "Box: give either 'size' or both 'lower' and 'upper'"),
        (lambda: morphs.Box(lower=(0, 0, 0)), "'lower' and 'upper' belong together"),
        (lambda: morphs.Box(size=(1, 1, 1), lower=(0, 0, 0), upper=(1, 1, 1)), "give either 'size'"),
        (lambda: morphs.Box(lower=(0, 0, 0), upper=(1, 0, 1)), "must be below"),
        (lambda: morphs.Box(size=(1, 1, 1), contype=1 << 32), "contype=4294967296 does not fit 32 bits"),
        (lambda: morphs.Plane(fixed=False), "a plane is infinite and cannot move"),
        (lambda: morphs.Plane(normal=(0, 0, 0)), "normal=.* has no direction"),
        (lambda: morphs.Sphere(euler=(0, 0, 1), quat=(1, 0, 0, 0)), "give either 'euler' or 'quat'"),
        (lambda: morphs.Sphere(quat=(0, 0, 0, 0)), "quat=.* has no direction"),
        (lambda: morphs.Sphere(pos=(0, 0, float("inf"))), "pos=.* is not finite"),
        (lambda: morphs.Sphere(pos=None), "Sphere.pos: got None"),
        (lambda: morphs.Sphere(visualization=False, collision=False), "nothing would be left"),
        (lambda: morphs.Sphere(offset_pos=(0, 0, 1)), "'offset_pos' is not supported yet"),
        (lambda: morphs.MJCF(), "MJCF needs 'file'"),
        (lambda: morphs.MJCF(flie="a.xml"), "MJCF has no option 'flie'. Did you mean 'file'"),
        (lambda: morphs.MJCF(file=" "), "'file' is empty"),
        (lambda: morphs.MJCF(file=3), "MJCF.file: got 3"),
        (lambda: morphs.MJCF(file="a.xml", scale=2), "scale=2.0 is not supported yet"),
        (lambda: morphs.MJCF(file="a.xml", scale=(1, 1, 2)), "MJCF.scale"),
        (lambda: morphs.MJCF(file="a.xml", default_armature=-1), "default_armature=-1.0"),
        (lambda: morphs.MJCF(file="a.xml", convexify=False), "convexify=False is not supported yet"),
        (lambda: morphs.MJCF(file="a.xml", recompute_inertia=True), "recompute_inertia=True"),
        (lambda: morphs.MJCF(file="a.xml", align=True), "align=True"),
        (lambda: morphs.MJCF(file="a.xml", decompose_robot_error_threshold=0.1), "decompose_robot_error_threshold=0.1"),
        (lambda: morphs.URDF(file="a.urdf"), "morphs.URDF: not supported yet"),
        (lambda: morphs.Mesh(file="a.obj"), "morphs.Mesh: not supported yet"),
        (lambda: morphs.Terrain(), "morphs.Terrain: not supported yet"),
        (lambda: morphs.Drone(file="a.urdf"), "morphs.Drone: not supported yet"),
        (lambda: materials.Rigid(rho=0), "Rigid.rho: got 0.0"),
        (lambda: materials.Rigid(friction=0), "Rigid.friction: got 0.0, expected a number from 0.01 to 5"),
        (lambda: materials.Rigid(friction_rolling=-1), "Rigid.friction_rolling"),
        (lambda: materials.Kinematic(), "materials.Kinematic: not supported yet"),
        (lambda: materials.MPM.Elastic(E=1e5), "materials.MPM.Elastic: soft bodies"),
        (lambda: materials.SF.Smoke(), "materials.SF.Smoke"),
        (lambda: surfaces.Rough(color=(1, 1)), "Rough.color: got \\(1.0, 1.0\\), expected 3 or 4"),
        (lambda: surfaces.Default(roughness=1, roughness_texture=textures.ColorTexture()), "either 'roughness' or"),
        (lambda: surfaces.Metal(metal_type="tin"), "Metal.metal_type: got 'tin'"),
        (lambda: textures.ColorTexture(color=()), "got 0 channels"),
        (lambda: textures.ImageTexture(), "needs either 'image_path' or 'image_array'"),
        (lambda: textures.ImageTexture(image_array=np.zeros(3)), "got shape \\(3,\\)"),
        (lambda: textures.BatchTexture(), "textures.BatchTexture: textures per environment"),
    ],
)
def test_wrong_input(make, message: str) -> None:
    with pytest.raises(GenesisException, match=message):
        make()


def test_surfaces_and_textures_are_data() -> None:
    assert surfaces.Gold().metal_type == "gold"
    assert surfaces.Reflective(color=(1, 0, 0)).color == (1, 0, 0)
    assert textures.as_texture((1, 0, 0)).color == (1, 0, 0)
    texture = textures.ImageTexture(image_array=np.zeros((4, 4, 3), np.uint8))
    assert textures.as_texture(texture) is texture
    assert textures.ImageTexture(image_path=Path("a.png")).image_path == Path("a.png")
    assert surfaces.Default(diffuse_texture=texture).diffuse_texture is texture
