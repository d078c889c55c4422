"""A model file means what MuJoCo says it means, and the morph changes only what it says."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import mujoco
import numpy as np
import pytest

from importers.scenes import ARM, compiled, from_xml
from pluriverse.collision_pairs import PLANE
from pluriverse.errors import GenesisException
from pluriverse.importers.model_files import find_model_file
from pluriverse.model import Model, array_fields
from pluriverse.morphs import MJCF
from robot_files import FILES, robot_file


def assert_same(model: Model, reference: Model, rtol: float = 0) -> None:
    for field in array_fields():
        ours, theirs = getattr(model, field.name), getattr(reference, field.name)
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol, err_msg=field.name)
    assert model.stat_meaninertia == pytest.approx(reference.stat_meaninertia, rel=rtol or 1e-15)


@pytest.mark.parametrize("name", FILES)
def test_real_files_compile_to_what_mujoco_compiles(name: str) -> None:
    path = robot_file(name)
    reference = Model.from_mujoco(mujoco.MjModel.from_xml_path(path))
    scene = compiled(MJCF(file=path))
    if name == "gym_humanoid":  # its <size nkey="5"> makes empty keyframes
        reference = Model.from_mujoco(_without_keys(path))
    assert_same(scene.model, reference)
    assert scene.entities[0].bodies == range(1, reference.nbody)
    assert scene.entities[0].body_names == reference.body_names[1:]
    assert scene.entities[0].geoms == tuple(range(reference.ngeom))
    assert scene.entities[0].joint_names == reference.joint_names
    assert scene.entities[0].actuator_names == reference.actuator_names


def _without_keys(path: str) -> mujoco.MjModel:
    spec = mujoco.MjSpec.from_file(path)
    spec.nkey = 0
    return spec.compile()


def test_text_tree_and_path_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "arm.xml").write_text(ARM)
    monkeypatch.chdir(tmp_path)
    reference = from_xml(ARM).model.fingerprint()
    root = ElementTree.fromstring(ARM)
    for file in ("arm.xml", tmp_path / "arm.xml", root, ElementTree.ElementTree(root)):
        assert compiled(MJCF(file=file)).model.fingerprint() == reference


def test_fixture_a_the_authors_armature_wins() -> None:
    xml = """<mujoco><default><default class="f"><joint armature="2e-4"/></default></default><worldbody>
      <body childclass="f"><joint name="with"/><geom size=".1"/></body>
      <body pos="1 0 0"><joint name="without"/><geom size=".1"/></body>
      <body pos="2 0 0"><joint type="ball"/><geom size=".1"/></body>
      <body pos="3 0 0"><freejoint/><geom size=".1"/></body></worldbody></mujoco>"""
    assert from_xml(xml).model.dof_armature.tolist() == [2e-4] + [0] * 10
    assert from_xml(xml, default_armature=0.1).model.dof_armature.tolist() == [2e-4, 0.1] + [0] * 9


@pytest.mark.parametrize(
    ("joints", "types", "nq", "nv"),
    [
        ('<joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/><joint type="slide"/>'
         '<joint type="ball"/>', [2, 2, 2, 1], 7, 6),
        ('<joint/><joint axis="1 0 0"/><joint type="slide"/>', [3, 3, 2], 3, 3),
        ("<freejoint/>", [0], 7, 6),
    ],
)  # fmt: skip
def test_fixture_d_stacks_of_joints(joints: str, types: list[int], nq: int, nv: int) -> None:
    scene = from_xml(f'<mujoco><worldbody><body>{joints}<geom size=".1"/></body></worldbody></mujoco>')
    assert scene.model.jnt_type.tolist() == types
    assert (scene.model.nq, scene.model.nv, scene.entities[0].qpos, scene.entities[0].dofs) == (
        nq,
        nv,
        range(nq),
        range(nv),
    )


def test_fixture_e_defaults_of_equalities() -> None:
    xml = """<mujoco><default><equality solref="0.005 1"/></default><worldbody>
      <body name="b"><joint name="j"/><geom size=".1"/></body></worldbody><equality>{}</equality></mujoco>"""
    for equality in ('<joint joint1="j"/>', '<connect name="c" body1="b" anchor="0 0 0"/>'):
        assert from_xml(xml.format(equality)).model.eq_solref.tolist() == [[0.005, 1]]


def test_the_morph_moves_the_whole_model() -> None:
    model = from_xml(ARM, pos=(0, 0, 2), euler=(0, 0, 90)).model
    np.testing.assert_allclose(model.qpos0[:7], (0, 0, 3, np.sqrt(0.5), 0, 0, np.sqrt(0.5)), atol=1e-15)
    np.testing.assert_allclose(model.geom_pos[0], (0, 0, 2))  # the floor too
    np.testing.assert_array_equal(model.body_pos[2], (1, 0, 0))


def test_exclude_ground_plane_and_collision() -> None:
    assert PLANE in from_xml(ARM).model.geom_type
    assert PLANE not in from_xml(ARM, exclude_ground_plane=True).model.geom_type
    model = from_xml(ARM, collision=False).model
    assert not model.geom_contype.any()
    assert not model.geom_conaffinity.any()


def test_material() -> None:
    model = compiled(MJCF(file=ARM), friction=0.3, gravity_compensation=1).model
    np.testing.assert_array_equal(model.geom_friction, [(0.3, 0.005, 0.0001)] * 3)
    assert model.body_gravcomp.tolist() == [0, 1, 1]
    with pytest.raises(GenesisException, match="masses come from the file"):
        compiled(MJCF(file=ARM), rho=500)


@pytest.mark.parametrize(
    ("compiler", "rtol"),
    [
        ("settotalmass='7'", 1e-14),
        ("fusestatic='true'", 0),
        ("discardvisual='true'", 0),
        ("discardvisual='true' fusestatic='true'", 0),
        ("boundmass='3'", 0),
    ],
)
def test_compiler_flags_of_the_whole_model(
    compiler: str, rtol: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # MuJoCo logs a deprecated flag to a file there
    xml = f"""<mujoco><compiler {compiler}/><worldbody><body><freejoint/><geom size=".1"/>
      <geom size=".2" pos=".1 0 0" contype="0" conaffinity="0"/><body pos=".5 .1 0"><geom type="box" size=".1 .2 .3"/>
      <body pos="1 0 0"><inertial pos=".1 0 0" mass=".5" fullinertia="1 1.1 1.2 .1 .1 0"/><joint/>
      </body></body></body></worldbody></mujoco>"""
    assert_same(from_xml(xml).model, Model.from_mujoco(mujoco.MjModel.from_xml_string(xml)), rtol=rtol)


FITTED = """<mujoco model="m"><compiler fitaabb="{}"/><asset>
  <mesh name="rock" vertex="0 0 0 1 0 0 0 1 0 0 0 3"/></asset>
  <worldbody><geom type="capsule" mesh="rock"/></worldbody></mujoco>"""
PULLED = """<mujoco model="m"><compiler><lengthrange mode="{}"/></compiler><worldbody>
  <body><joint name="j" range="-40 50" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/></body></worldbody>
  <actuator><motor joint="j"/></actuator></mujoco>"""


@pytest.mark.parametrize("xml", [FITTED.format("true"), FITTED.format("false"), PULLED.format("all")])
def test_compiler_settings_of_which_a_scene_has_one(xml: str) -> None:
    assert_same(from_xml(xml).model, Model.from_mujoco(mujoco.MjModel.from_xml_string(xml)), rtol=1e-9)


@pytest.mark.parametrize(
    ("one", "other", "name"),
    [
        (FITTED.format("true"), FITTED.format("false"), "fitaabb"),
        (PULLED.format("all"), PULLED.format("none"), "lengthrange"),
    ],
)
def test_compiler_settings_that_conflict(one: str, other: str, name: str) -> None:
    with pytest.raises(GenesisException, match=f"'m', 'm' set {name} of <compiler> differently"):
        compiled(MJCF(file=one), MJCF(file=other))
    assert compiled(MJCF(file=one), MJCF(file=one)).model.ngeom == 2


def test_scaled_masses_are_not_bounded_again() -> None:
    xml = """<mujoco><compiler settotalmass="7" boundmass="3"/><worldbody><body><joint/><geom size=".1"/></body>
      </worldbody></mujoco>"""
    with pytest.raises(GenesisException, match="settotalmass together with boundmass"):
        from_xml(xml)


def test_lights_and_cameras_may_look_at_the_world() -> None:
    xml = """<mujoco><worldbody><light name="l" mode="targetbody" target="world"/>
      <camera name="c" mode="targetbodycom" target="world"/></worldbody></mujoco>"""
    mj_model = compiled(MJCF(file=xml), MJCF(file=xml)).mj_model
    assert [*mj_model.light_targetbodyid, *mj_model.cam_targetbodyid] == [0] * 4


def test_keyframes_without_names() -> None:
    xml = """<mujoco><worldbody><body><joint/><geom size=".1"/></body></worldbody>
      <keyframe><key qpos="1"/><key name="home" qpos="2"/><key qpos="3"/></keyframe></mujoco>"""
    scene = compiled(MJCF(file=xml), MJCF(file=xml))
    assert scene.entities[1].keyframe_names == ("keyframe_0", "home", "keyframe_2")
    assert scene.model.key_qpos[:, 0].tolist()[:3] == [1, 2, 3]


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("missing.xml", "There is no file 'missing.xml'. Looked at .*missing.xml"),
        ("<mujoco><worldbody></mujoco>", "MuJoCo cannot read the given text"),
        ("<mujoco><worldbody><geom sise='1'/></worldbody></mujoco>", "MuJoCo cannot read the given text.*sise"),
        ("<mujoco><worldbody><body><joint/></body></worldbody></mujoco>", "MuJoCo cannot compile the scene: .*mass"),
        (
            "<mujoco model='m'><compiler settotalmass='1'/><worldbody><body><joint/></body></worldbody></mujoco>",
            "MuJoCo cannot read the model 'm': .*mass",
        ),
        ("urdf/plane/plane.urdf", "the file 'urdf/plane/plane.urdf' is a URDF .*morphs.URDF is not supported yet"),
    ],
)
def test_bad_files(file: str, message: str) -> None:
    with pytest.raises(GenesisException, match=message):
        compiled(MJCF(file=file))


def test_a_malformed_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "broken.xml"
    path.write_text("<mujoco><world/></mujoco>")
    with pytest.raises(GenesisException, match="MuJoCo cannot read the file '.*broken.xml'"):
        compiled(MJCF(file=path))


URDF = '<?xml version="1.0"?><!-- <mujoco> --> <robot name="r"><link name="l"/></robot>'


@pytest.mark.parametrize("suffix", [".xml", ".mjcf", ".urdf"])
def test_a_urdf_is_refused_whatever_it_is_called(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"robot{suffix}"
    path.write_text(URDF, encoding="utf-8-sig")
    with pytest.raises(GenesisException, match=f"the file '{path}' is a URDF .*morphs.URDF is not supported yet"):
        find_model_file(path)
    with pytest.raises(GenesisException, match="is a URDF"):
        compiled(MJCF(file=path))


@pytest.mark.parametrize(
    "file", [URDF, "  \n" + URDF, ElementTree.fromstring(URDF), ElementTree.ElementTree(ElementTree.fromstring(URDF))]
)
def test_a_urdf_as_text_or_tree_is_refused(file: str | ElementTree.Element | ElementTree.ElementTree) -> None:
    with pytest.raises(GenesisException, match="the given (text|tree) is a URDF .*morphs.URDF is not supported yet"):
        MJCF(file=file)


def test_other_roots_are_refused() -> None:
    with pytest.raises(GenesisException, match="the root of the given text is <sdf>; .*MJCF model is <mujoco>"):
        MJCF(file="<sdf><model/></sdf>")
    MJCF(file='<?xml version="1.0"?>\n<!-- <robot> -->\n<!DOCTYPE mujoco [<!ELEMENT a (b)>]>\n<mujoco/>')
