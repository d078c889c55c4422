"""The Model is a frozen copy of MuJoCo's fields, and its fingerprint follows what kernels are made from."""

from __future__ import annotations

import dataclasses

import mujoco
import numpy as np
import pytest

from pluriverse import model as model_module
from pluriverse.importers.model_files import ASSETS
from pluriverse.model import CONSTANT, HOST, INPUT, Model, ModelOptions, array_fields
from robot_files import FILES, robot_file

OWN = {path.stem: str(path) for path in ASSETS.rglob("*.xml")}


def load(name: str) -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_path(OWN[name] if name in OWN else robot_file(name))


@pytest.fixture
def panda() -> mujoco.MjModel:
    return load("panda")


@pytest.mark.parametrize("name", [*OWN, *FILES])
def test_fields_equal_mujocos(name: str) -> None:
    mj_model = load(name)
    model = Model.from_mujoco(mj_model)
    for field in array_fields():
        ours, theirs = getattr(model, field.name), getattr(mj_model, field.name)
        assert ours.dtype in (np.float64, np.int32, np.bool_), field.name
        np.testing.assert_array_equal(ours, theirs, err_msg=field.name)
    for field in dataclasses.fields(ModelOptions):
        np.testing.assert_array_equal(getattr(model.opt, field.name), getattr(mj_model.opt, field.name))
    for size in ("nq", "nv", "nu", "nbody", "njnt", "ngeom", "neq", "nmesh", "npair", "nexclude", "nkey", "ntree"):
        assert getattr(model, size) == getattr(mj_model, size)
    assert model.stat_meaninertia == mj_model.stat.meaninertia
    assert model.body_names == tuple(mj_model.body(i).name for i in range(mj_model.nbody))
    assert model.joint_names == tuple(mj_model.joint(i).name for i in range(mj_model.njnt))
    assert model.actuator_names == tuple(mj_model.actuator(i).name for i in range(mj_model.nu))


def test_arrays_are_copies_and_read_only(panda: mujoco.MjModel) -> None:
    model = Model.from_mujoco(panda)
    for field in array_fields():
        with pytest.raises(ValueError, match="read-only"):
            getattr(model, field.name)[...] = 0
    with pytest.raises(ValueError, match="read-only"):
        model.opt.gravity[2] = 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.nq = 3  # type: ignore[misc]
    panda.body_mass[1] = 77
    assert model.body_mass[1] != 77


def test_every_field_has_meaning_and_role() -> None:
    for field in dataclasses.fields(Model):
        assert field.metadata["meaning"]
        assert field.metadata["role"] in (CONSTANT, INPUT, HOST)


def test_fingerprint_is_stable(panda: mujoco.MjModel) -> None:
    assert Model.from_mujoco(panda).fingerprint() == Model.from_mujoco(load("panda")).fingerprint()


def test_fingerprint_follows_constants_only(panda: mujoco.MjModel) -> None:
    reference = Model.from_mujoco(panda)
    for field in array_fields():
        value = getattr(reference, field.name)
        if not value.size:
            continue
        changed = ~value if value.dtype == np.bool_ else value + 1
        follows = dataclasses.replace(reference, **{field.name: changed}).fingerprint() != reference.fingerprint()
        assert follows == (field.metadata["role"] == CONSTANT), field.name
    assert dataclasses.replace(reference, body_names=()).fingerprint() == reference.fingerprint()
    opt = dataclasses.replace(reference.opt, gravity=np.zeros(3))
    assert dataclasses.replace(reference, opt=opt).fingerprint() == reference.fingerprint()
    opt = dataclasses.replace(reference.opt, impratio=2.0)
    assert dataclasses.replace(reference, opt=opt).fingerprint() != reference.fingerprint()


def test_margin_of_earlier_mujoco_is_translated(monkeypatch: pytest.MonkeyPatch) -> None:
    xml = '<mujoco><worldbody><geom size=".1" margin=".3" gap=".1"/></worldbody></mujoco>'
    mj_model = mujoco.MjModel.from_xml_string(xml)
    monkeypatch.setattr(mujoco, "__version__", "3.9.0")
    assert Model.from_mujoco(mj_model).geom_margin.tolist() == [0.3]
    monkeypatch.setattr(mujoco, "__version__", "3.8.1")
    np.testing.assert_allclose(Model.from_mujoco(mj_model).geom_margin, [0.2])
    assert model_module.Model.from_mujoco(mj_model).geom_gap.tolist() == [0.1]


def test_actuators_with_several_controls_and_forces() -> None:
    xml = """<mujoco><worldbody><body><joint name="b" type="ball"/><geom size=".1"/></body></worldbody>
      <actuator><orientation joint="b" kp="1" input="quat"/><motor joint="b"/></actuator></mujoco>"""
    model = Model.from_mujoco(mujoco.MjModel.from_xml_string(xml))
    assert (model.nactuator, model.nu, model.nout) == (2, 5, 4)
    assert model.actuator_ctrladr.tolist() == [0, 4]
    assert model.actuator_outadr.tolist() == [0, 3]


def test_damping_and_armature_of_actuators_belong_to_what_they_drive() -> None:
    xml = """<mujoco><worldbody><body><joint name="j" damping="1" armature=".5"/><joint name="b" type="ball"/>
      <geom size=".1"/></body></worldbody>
      <tendon><fixed name="t" damping=".1"><joint joint="j" coef="1"/></fixed></tendon>
      <actuator><motor joint="j" gear="2" damping="3 .1 .2" armature=".7"/><motor joint="b" damping=".5"/>
        <motor tendon="t" gear="3" damping="2" armature=".2"/><motor joint="j"/></actuator></mujoco>"""
    mj_model = mujoco.MjModel.from_xml_string(xml)
    model = Model.from_mujoco(mj_model)
    np.testing.assert_allclose(model.dof_damping, [13, 0.5, 0.5, 0.5])
    np.testing.assert_allclose(model.dof_dampingpoly[0], [0.4, 0.8])
    np.testing.assert_allclose(model.dof_armature, [3.3, 0, 0, 0])
    np.testing.assert_allclose([model.tendon_damping[0], model.tendon_armature[0]], [18.1, 1.8])
    assert mj_model.dof_damping[0] == 1
