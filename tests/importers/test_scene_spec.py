"""Entities are merged into one model; each knows where it lies; options come from the scene or from one file."""

from __future__ import annotations

import logging

import mujoco
import numpy as np
import pytest

from importers.scenes import ARM, compiled
from pluriverse import constants
from pluriverse.collision_pairs import collision_pairs
from pluriverse.errors import GenesisException
from pluriverse.morphs import MJCF, Box, Morph, Plane, Sphere
from pluriverse.options import RigidOptions, SimOptions

OPTION = """<option timestep="0.004" gravity="0 0 -1" integrator="Euler" iterations="7" ls_iterations="8"
  tolerance="1e-6" ls_tolerance="0.1" impratio="3"><flag limit="disable" eulerdamp="disable"/></option>"""


def with_option(option: str) -> str:
    return ARM.replace("<worldbody>", f"{option}<worldbody>")


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    logging.getLogger("pluriverse").propagate = True
    caplog.set_level("INFO", logger="pluriverse")
    return caplog


def test_layout_of_mixed_entities() -> None:
    scene = compiled(Plane(), MJCF(file=ARM), Box(size=(0.1, 0.1, 0.1)), MJCF(file=ARM), Sphere(fixed=True))
    plane, arm, box, second, ball = scene.entities
    assert [e.bodies for e in scene.entities] == [range(1, 2), range(2, 4), range(4, 5), range(5, 7), range(7, 8)]
    assert (arm.joints, arm.qpos, arm.dofs) == (range(2), range(8), range(7))
    assert (box.joints, box.qpos, box.dofs) == (range(2, 3), range(8, 15), range(7, 13))
    assert (second.joints, second.qpos, second.dofs) == (range(3, 5), range(15, 23), range(13, 20))
    assert (len(plane.dofs), len(ball.dofs)) == (0, 0)
    assert (arm.geoms, second.geoms) == ((0, 3, 4), (1, 6, 7))
    assert sorted(geom for entity in scene.entities for geom in entity.geoms) == list(range(scene.model.ngeom))
    assert (arm.actuators, second.actuators) == (range(1), range(1, 2))
    assert (arm.equalities, second.equalities) == (range(1), range(1, 2))
    assert (arm.keyframes, second.keyframes) == (range(1), range(1, 2))
    for entity in (arm, second):
        assert entity.model_name == "arm"
        assert entity.body_names == ("base", "tip")
        assert entity.joint_names == ("root", "j")
        assert entity.geom_names == ("floor", "", "g")
        assert (entity.actuator_names, entity.equality_names, entity.keyframe_names) == (("a",), ("e",), ("home",))
        key = scene.model.key_qpos[entity.keyframes[0]]
        np.testing.assert_array_equal(key[list(entity.qpos)], (1, 2, 3, 1, 0, 0, 0, 0.1))
    assert scene.model.body_names[2:4] == ("1/base", "1/tip")
    assert scene.model.actuator_trnid[:, 0].tolist() == [1, 4]


def test_the_scene_decides_the_options() -> None:
    scene = compiled(
        MJCF(file=with_option(OPTION)),
        sim=SimOptions(dt=0.02, substeps=4, gravity=(0, 0, -5)),
        rigid=RigidOptions(iterations=12, ls_iterations=13, tolerance=1e-5, ls_tolerance=0.2, impratio=2),
    )
    opt = scene.model.opt
    assert (opt.timestep, opt.gravity.tolist()) == (0.005, [0, 0, -5])
    assert opt.integrator == mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    assert (opt.iterations, opt.ls_iterations, opt.tolerance, opt.ls_tolerance, opt.impratio) == (12, 13, 1e-5, 0.2, 2)
    assert (opt.disableflags, opt.enableflags) == (0, 0)


def test_rigid_options_override_time_step_and_gravity() -> None:
    opt = compiled(Plane(), rigid=RigidOptions(dt=0.001, gravity=(1, 0, 0), integrator="Euler")).model.opt
    assert (opt.timestep, opt.gravity.tolist()) == (0.001, [1, 0, 0])
    assert opt.integrator == mujoco.mjtIntegrator.mjINT_EULER


@pytest.mark.parametrize("name", ["Euler", "RK4", "implicit", "implicitfast"])
def test_integrators_go_to_mujoco_and_come_back(name: str) -> None:
    member = getattr(mujoco.mjtIntegrator, f"mjINT_{name.upper()}")
    assert compiled(Plane(), rigid=RigidOptions(integrator=name)).model.opt.integrator == member
    xml = f'<mujoco><option integrator="{name}"/><worldbody><geom size=".1"/></worldbody></mujoco>'
    adopted = compiled(MJCF(file=xml, use_file_options=True))
    assert adopted.rigid_options.integrator is constants.integrator[name]
    assert adopted.model.opt.integrator == member


def test_switches_become_flags() -> None:
    rigid = RigidOptions(
        enable_collision=False, enable_joint_limit=False, disable_constraint=True, enable_adjacent_collision=True
    )
    bits = mujoco.mjtDisableBit
    expected = bits.mjDSBL_CONTACT | bits.mjDSBL_LIMIT | bits.mjDSBL_CONSTRAINT | bits.mjDSBL_FILTERPARENT
    assert compiled(Plane(), rigid=rigid).model.opt.disableflags == int(expected)


def test_differing_options_of_a_file_are_said_once(log: pytest.LogCaptureFixture) -> None:
    compiled(MJCF(file=with_option(OPTION)))
    (record,) = [r for r in log.records if "<option>" in r.message]
    for part in (
        "e0: ",
        "timestep 0.004 (scene: 0.01)",
        "gravity [0.0, 0.0, -1.0] (scene: [0.0, 0.0, -9.81])",
        "iterations 7 (scene: 50)",
        "disableflags limit+eulerdamp (scene: none)",
        "use_file_options=True adopts the file's",
    ):
        assert part in record.message
    log.clear()
    compiled(MJCF(file=ARM))
    assert not log.records


def test_use_file_options(log: pytest.LogCaptureFixture) -> None:
    scene = compiled(
        Plane(),
        MJCF(file=with_option(OPTION), use_file_options=True),
        sim=SimOptions(dt=0.02, substeps=2),
        rigid=RigidOptions(iterations=12, enable_collision=False),
    )
    opt = scene.model.opt
    assert (opt.timestep, opt.gravity.tolist(), opt.iterations, opt.ls_iterations) == (0.004, [0, 0, -1], 7, 8)
    assert (opt.tolerance, opt.ls_tolerance, opt.impratio) == (1e-6, 0.1, 3)
    bits = mujoco.mjtDisableBit
    assert opt.disableflags == int(bits.mjDSBL_LIMIT | bits.mjDSBL_EULERDAMP | bits.mjDSBL_CONTACT)
    assert (scene.sim_options.dt, scene.sim_options.substeps) == (0.008, 2)
    assert scene.sim_options.gravity == (0, 0, -1)
    rigid = scene.rigid_options
    assert rigid.integrator is constants.integrator.Euler
    assert (rigid.iterations, rigid.tolerance, rigid.ls_tolerance, rigid.impratio) == (7, 1e-6, 0.1, 3)
    assert (rigid.enable_joint_limit, rigid.enable_collision) == (False, False)
    assert not [r for r in log.records if "<option>" in r.message]


def test_unsupported_file_options_are_refused_only_when_adopted() -> None:
    xml = with_option('<option solver="CG" noslip_iterations="3"><flag override="enable"/></option>')
    compiled(MJCF(file=xml))
    with pytest.raises(GenesisException, match=r"mjSOL_CG(.|\n)*noslip_iterations(.|\n)*mjENBL_OVERRIDE"):
        compiled(MJCF(file=xml, use_file_options=True))


def test_friction_cones() -> None:
    ball = Sphere(radius=0.1)
    opt = compiled(ball).model.opt
    assert (opt.cone, opt.impratio) == (mujoco.mjtCone.mjCONE_PYRAMIDAL, 1)
    opt = compiled(ball, rigid=RigidOptions(friction_cone="elliptic")).model.opt
    assert (opt.cone, opt.impratio) == (mujoco.mjtCone.mjCONE_ELLIPTIC, 100)
    file = MJCF(file=with_option('<option cone="elliptic" impratio="3"/>'), use_file_options=True)
    rigid = compiled(file).rigid_options
    assert (rigid.friction_cone, rigid.impratio) == (constants.friction_cone.elliptic, 3)


def test_friction_axes() -> None:
    smooth = '<mujoco><worldbody><body><joint/><geom size=".1" condim="1"/></body></worldbody></mujoco>'
    for option, condim in (({}, 3), ({"enable_torsional_friction": True}, 4), ({"enable_rolling_friction": True}, 6)):
        model = compiled(Sphere(radius=0.1), MJCF(file=smooth), rigid=RigidOptions(**option)).model
        assert model.geom_condim.tolist() == [condim, 1]


def test_two_files_cannot_decide() -> None:
    first = MJCF(file=with_option(OPTION), use_file_options=True)
    compiled(first, MJCF(file=with_option(OPTION), use_file_options=True))
    with pytest.raises(GenesisException, match="Both e0 and e1 set use_file_options=True"):
        compiled(first, MJCF(file=ARM, use_file_options=True))


def test_refusals_name_the_entity() -> None:
    bad = ARM.replace('name="g"', 'name="g" adhesion="6"')
    with pytest.raises(GenesisException, match="e1: geom 'g': has adhesion"):
        compiled(MJCF(file=ARM), MJCF(file=bad))


def test_self_collision_can_be_switched_off() -> None:
    morphs = (MJCF(file="xml/go2/go2.xml"), Sphere())
    on, off = (compiled(*morphs, rigid=RigidOptions(enable_self_collision=flag)) for flag in (True, False))
    ball = on.entities[1].geoms[0]
    assert any(ball not in pair for pair in collision_pairs(on.model))
    assert collision_pairs(off.model) == [pair for pair in collision_pairs(on.model) if ball in pair]


def test_a_morph_without_shape() -> None:
    with pytest.raises(GenesisException, match="e0: a Morph cannot be added to a scene"):
        compiled(Morph())
