"""Each dof has a law; further actuators on a dof have their own."""

from __future__ import annotations

import mujoco

from pluriverse.control_laws import ControlLaw, clamped_sums, control_laws, general_actuators
from pluriverse.model import Model


def test_laws() -> None:
    xml = """<mujoco><worldbody><body><freejoint/><geom size=".1"/>
      <body><joint name="a"/><joint name="b" axis="1 0 0"/><geom size=".1"/></body></body></worldbody>
      <actuator><motor joint="b"/><position joint="b" kp="1"/><motor joint="a"/><motor joint="b"/></actuator>
      </mujoco>"""
    laws = control_laws(Model.from_mujoco(mujoco.MjModel.from_xml_string(xml)))
    assert laws[:6] == tuple(ControlLaw(dof, -1) for dof in range(6))
    assert laws[6:] == (ControlLaw(6, 2), ControlLaw(7, 0), ControlLaw(7, 1), ControlLaw(7, 3))


def test_no_dof_no_law() -> None:
    assert control_laws(Model.from_mujoco(mujoco.MjModel.from_xml_string("<mujoco/>"))) == ()


def test_general_actuators_are_no_laws() -> None:
    xml = """<mujoco><option actuatorgroupdisable="3"/><worldbody><body><joint name="a"/><geom size=".1"/>
      <site name="s"/><body><joint name="b" type="ball"/><geom size=".1"/></body></body></worldbody><actuator>
      <motor joint="a"/><motor joint="a" group="3"/><motor site="s"/><motor joint="b"/><intvelocity joint="a" kp="1"
      actrange="-1 1"/><general joint="a" gaintype="affine" gainprm="1 2"/><pid joint="a" kp="1"/></actuator>
      </mujoco>"""
    model = Model.from_mujoco(mujoco.MjModel.from_xml_string(xml))
    assert control_laws(model) == (ControlLaw(0, 0), *(ControlLaw(dof, -1) for dof in (1, 2, 3)))
    assert general_actuators(model) == (1, 2, 3, 4, 5, 6)


def test_sums_that_are_clamped_in_the_step() -> None:
    xml = """<mujoco><compiler autolimits="true"/><worldbody><body>{}<geom size=".1"/><site name="s"/>
      <body><joint name="e" actuatorfrcrange="-1 1"/><geom size=".1"/></body></body></worldbody>
      <tendon><fixed name="t"><joint joint="c" coef="1"/></fixed></tendon><actuator><motor joint="a"/><motor joint="a"/>
      <motor joint="b"/><motor tendon="t"/><motor joint="e"/><motor joint="f"/></actuator></mujoco>"""
    joints = "".join(
        f'<joint name="{name}" axis="{axis}" {rest} actuatorfrcrange="-1 1"/>'
        for name, axis, rest in (
            ("a", "1 0 0", ""), ("b", "0 1 0", ""), ("c", "0 0 1", ""), ("d", "0 1 1", ""),
            ("f", "1 1 0", 'actuatorgravcomp="true"'),
        )
    )  # fmt: skip
    assert clamped_sums(Model.from_mujoco(mujoco.MjModel.from_xml_string(xml.format(joints)))) == {0, 2, 4}
