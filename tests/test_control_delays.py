"""Delayed controls against MuJoCo, over steps with changing controls."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from physics_models import load, world
from physics_reference import DOUBLE, FloatStep, Sample, control_rows, error
from pluriverse.control_delays import delay_weights, memory_size
from pluriverse.model import Model
from pluriverse.step import step

EULER, RK4, IMPLICIT, IMPLICITFAST = range(4)  # mjtIntegrator
ARM = world(
    """<body><joint name="a" axis="0 1 0"/><geom size=".1" pos=".3 0 0"/>
      <body pos=".5 0 0"><joint name="b" axis="0 1 0" damping=".1"/><geom size=".1" pos=".2 0 0"/></body></body>""",
    after="""<actuator><motor joint="a" delay=".006" nsample="3"/><motor joint="b" delay=".0045" nsample="4"/>
      <position joint="a" kp="3" kv=".2" delay=".0051" nsample="5" interp="linear" ctrlrange="-.5 .5"/>
      <intvelocity joint="b" kp="2" actrange="-1 1" delay=".0093" nsample="6" interp="cubic"/>
      <pid joint="a" kp="1" kv=".1" input="pos vel" delay=".001" nsample="2"/>
      <motor joint="b" delay=".0205" nsample="6" interp="cubic"/><motor joint="b"/></actuator>""",
)


@pytest.mark.parametrize("integrator", [EULER, RK4, IMPLICITFAST])
def test_steps(integrator: int) -> None:
    mj_model = load(ARM, integrator=integrator)
    data, rng = mujoco.MjData(mj_model), np.random.default_rng(0)
    rest = Sample(*(np.zeros(n) for n in (mj_model.nq, mj_model.nv, mj_model.nv, mj_model.nu, mj_model.na)))
    floats = FloatStep(mj_model, rest)
    qpos, qvel, act = floats.qpos, floats.qvel, floats.act
    qacc = {d: floats.run.variable(0.0) for d in range(mj_model.nv)}
    for _ in range(14):
        data.ctrl[:] = rng.normal(size=mj_model.nu)
        floats.run.buffers["ctrl"][:] = data.ctrl.tolist()
        floats.run.buffers["control"][:] = control_rows(mj_model, data.ctrl).ravel().tolist()
        mujoco.mj_step(mj_model, data)
        q, v, act, _ = step(floats.tree, qpos, qvel, act, qacc, floats.inputs, floats.settings)
        qpos, qvel = [q[k] for k in range(mj_model.nq)], [v[d] for d in range(mj_model.nv)]
        for found, expected in ((qpos, data.qpos), (qvel, data.qvel), (act[: mj_model.na], data.act)):
            assert error(found, expected) <= DOUBLE


def test_what_is_remembered() -> None:
    model = Model.from_mujoco(load(ARM))
    assert memory_size(model) == 1 + 3 + 4 + 5 + 6 + 2 * 2 + 6
    assert delay_weights(model, 0, 0.0) == {2: 1.0}  # three steps late: the newest is one step old
    assert delay_weights(model, 1, 0.0) == {2: 1.0}  # 2.25 steps late: what held then
    assert delay_weights(model, 2, 0.0) == pytest.approx({2: 0.55, 1: 0.45})
    assert sum(delay_weights(model, 3, 0.0).values()) == pytest.approx(1.0)
    assert delay_weights(model, 4, 0.0) == {0: 1.0}  # no newer one is known
    assert delay_weights(model, 5, 0.0) == {5: 1.0}  # no older one
