"""The package's own robots: sizes, names, no interpenetration where they start, stable in MuJoCo."""

from __future__ import annotations

from xml.etree import ElementTree

import mujoco
import numpy as np
import pytest

from pluriverse.importers.model_files import ASSETS, find_model_file
from pluriverse.importers.refusals import refuse_unsupported

ROBOTS = {  # nq, nv, nu, mass [kg]
    "xml/franka_emika_panda/panda.xml": (9, 9, 9, 17.451901),
    "xml/go2/go2.xml": (19, 18, 12, 15.206408),
    "xml/humanoid/humanoid.xml": (28, 27, 21, 35.7),
    "xml/ant.xml": (15, 14, 8, 7.35),
    "xml/cartpole.xml": (2, 2, 1, 1.1),
}


def on_a_floor(file: str) -> mujoco.MjModel:
    spec = mujoco.MjSpec.from_file(str(find_model_file(file)))
    spec.worldbody.add_geom(name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 0.05])
    spec.option.timestep = 0.01
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    return spec.compile()


def names(model: mujoco.MjModel, kind: mujoco.mjtObj, count: int) -> list[str]:
    return [mujoco.mj_id2name(model, kind, i) for i in range(count)]


@pytest.mark.parametrize("file", ROBOTS)
def test_sizes(file: str) -> None:
    model = mujoco.MjModel.from_xml_path(str(find_model_file(file)))
    assert (model.nq, model.nv, model.nu) == ROBOTS[file][:3]
    assert model.body_subtreemass[0] == pytest.approx(ROBOTS[file][3], rel=2e-3)
    refuse_unsupported(model)
    for kind, count in ((mujoco.mjtObj.mjOBJ_JOINT, model.njnt), (mujoco.mjtObj.mjOBJ_GEOM, model.ngeom)):
        assert all(names(model, kind, count))


@pytest.mark.parametrize("file", ROBOTS)
def test_starts_clear_and_stays_stable(file: str) -> None:
    model = on_a_floor(file)
    data = mujoco.MjData(model)
    for key in range(-1, model.nkey):
        if key < 0:
            mujoco.mj_resetData(model, data)
        else:
            mujoco.mj_resetDataKeyframe(model, data, key)
        mujoco.mj_forward(model, data)
        for contact in data.contact:
            one, two = (model.geom(int(geom)).name for geom in contact.geom)
            assert one == "floor", f"{one} and {two} overlap"
            assert "foot" in two
            assert contact.dist > -1e-3
        for _ in range(200):
            mujoco.mj_step(model, data)
        assert not any(warning.number for warning in data.warning)
        assert np.abs(data.qvel).max() < 5


def test_panda_names_and_figures() -> None:
    model = mujoco.MjModel.from_xml_path(str(find_model_file("xml/franka_emika_panda/panda.xml")))
    bodies = names(model, mujoco.mjtObj.mjOBJ_BODY, model.nbody)
    assert bodies == ["world", *(f"link{i}" for i in range(8)), "hand", "left_finger", "right_finger"]
    joints = names(model, mujoco.mjtObj.mjOBJ_JOINT, model.njnt)
    assert joints == [*(f"joint{i}" for i in range(1, 8)), "finger_joint1", "finger_joint2"]
    kp, kv = model.actuator_gainprm[:, 0], -model.actuator_biasprm[:, 2]
    assert kp.tolist() == [4500, 4500, 3500, 3500, 2000, 2000, 2000, 100, 100]
    np.testing.assert_allclose(kv, kp / 10)
    assert model.actuator_forcerange[:, 1].tolist() == [87, 87, 87, 87, 12, 12, 12, 100, 100]
    assert model.eq_type.tolist() == [mujoco.mjtEq.mjEQ_JOINT]
    np.testing.assert_array_equal(model.key_qpos[0], [0, 0, 0, -1.57079, 0, 1.57079, -0.7853, 0.04, 0.04])
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_kinematics(model, data)
    # The hand's frame at home, by the maker's Denavit-Hartenberg table: x = .0825 + .384 + .088, z = the rest.
    np.testing.assert_allclose(data.body("hand").xpos, (0.5545, 0, 0.6245), atol=1e-4)


def test_panda_holds_its_home() -> None:
    model = on_a_floor("xml/franka_emika_panda/panda.xml")
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    for _ in range(200):
        mujoco.mj_step(model, data)
    np.testing.assert_allclose(data.qpos, model.key_qpos[0], atol=0.02)


def test_go2_legs() -> None:
    model = mujoco.MjModel.from_xml_path(str(find_model_file("xml/go2/go2.xml")))
    joints = names(model, mujoco.mjtObj.mjOBJ_JOINT, model.njnt)
    legs = [f"{leg}_{part}_joint" for leg in ("FL", "FR", "RL", "RR") for part in ("hip", "thigh", "calf")]
    assert joints == ["root_joint", *legs]
    model = on_a_floor("xml/go2/go2.xml")
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    for _ in range(300):
        mujoco.mj_step(model, data)
    assert data.qpos[2] > 0.2  # it stands


def test_plane_urdf() -> None:
    root = ElementTree.parse(ASSETS / "urdf/plane/plane.urdf").getroot()
    for kind in ("visual", "collision"):
        element = root.find(f"link/{kind}")
        assert element is not None
        assert element.find("origin").get("xyz") == "0 0 -5"  # type: ignore[union-attr]
        assert element.find("geometry/box").get("size") == "200 200 10"  # type: ignore[union-attr]
    assert mujoco.MjModel.from_xml_path(str(ASSETS / "urdf/plane/plane.urdf")).ngeom == 1
