"""Each dof has a law; further actuators on a dof have their own."""

from __future__ import annotations

import mujoco

from pluriverse.control_laws import ControlLaw, control_laws
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
