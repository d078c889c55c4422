"""The step in loops over alike trees: it is the step, for any mixture of trees, and MuJoCo's."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch

from physics_models import FLOOR, load, world
from physics_reference import (
    DOUBLE,
    SINGLE,
    FloatStep,
    Result,
    kernel_of,
    mujoco_step,
    results,
    samples,
    settings_of,
    state_of,
)
from pluriverse.dynamics.replicas import tree_groups
from pluriverse.looped_step import loops_pay, step_in_loops

ARM = """
<body name="arm{k}" pos="{k} 0 .5" euler="{k}0 0 0"><joint name="a{k}" axis="0 1 0" range="-20 30" limited="true"
  damping=".1" armature=".0{k}1"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".04" mass="{m}"/>
  <body pos=".3 0 0"><joint name="b{k}" axis="0 0 1" frictionloss=".2" stiffness="{k}"/><geom size=".06"/>
  <body pos=".1 0 0"><joint type="ball"/><geom type="box" size=".03 .02 .05" pos="0 0 .08"/></body></body></body>
"""
BALL = '<body pos="{x} .05 {z}"><freejoint/><geom size=".1" condim="{d}"/></body>'
BOX = '<body pos="{x} 0 {z}"><freejoint/><geom type="box" size=".1 .08 .05" pos=".01 .02 0"/></body>'
WELD = '<equality><weld body1="w"/></equality>'


def zoo() -> str:
    """Arms of equal structure that hang on the world, balls, boxes, and trees of which there is one."""
    arms = "".join(ARM.format(k=k, m=1 + k) for k in range(1, 4))
    balls = "".join(BALL.format(x=1.1 + 0.3 * k, z=0.7 + 0.1 * k, d=(3, 1)[k % 2]) for k in range(4))
    boxes = "".join(BOX.format(x=1.0 + 0.15 * k, z=0.1 + 0.1 * k) for k in range(3))
    lone = (
        '<body pos="0 1 1"><joint type="ball" range="0 20" limited="true"/><geom type="capsule" size=".1 .2"/></body>'
    )
    motors = "".join(f'<position joint="a{k}" kp="{k}0" kv="1"/>' for k in range(1, 4))
    return world(FLOOR + arms + balls + boxes + lone, after=f"<actuator>{motors}</actuator>")


def in_loops(floats: FloatStep) -> Result:
    qpos, qvel, qacc = list(floats.qpos), list(floats.qvel), list(floats.warmstart)
    new_qpos, new_qvel, unconverged = step_in_loops(floats.tree, qpos, qvel, qacc, floats.inputs, floats.settings)
    assert not unconverged
    return Result(*(np.array(x) for x in (qacc, new_qvel, new_qpos, [])))


@pytest.mark.parametrize(
    "name", [zoo(), "round", "torsion", "elliptic", "four_legs", "frictionloss", "springs", "damped"]
)
def test_step(name: str) -> None:
    mj_model = load(name)
    for sample in samples(mj_model, 6):
        floats = FloatStep(mj_model, sample, settings_of(mj_model, tolerance=0.0, iterations=100))
        assert max(in_loops(floats).errors(mujoco_step(mj_model, sample))) <= DOUBLE


def test_trees_of_equal_structure_share_a_loop() -> None:
    tree = FloatStep(load(zoo()), samples(load(zoo()), 1)[0]).tree
    assert sorted(group.count for group in tree_groups(tree)) == [1, 2, 2, 3, 3]  # condims tell balls apart


@pytest.mark.parametrize(
    ("bodies", "after", "pays"),
    [
        (8 * BOX.format(x=0, z=1), "", True),
        (5 * BOX.format(x=0, z=1), "", False),  # 30 dofs
        (3 * BOX.format(x=0, z=1) + 3 * BALL.format(x=0, z=2, d=1) + 3 * BALL.format(x=0, z=2, d=3), "", False),
        (8 * BOX.format(x=0, z=1) + '<body name="w"><freejoint/><geom size=".1"/></body>', WELD, False),
    ],
)  # fmt: skip
def test_loops_are_for_many_alike_trees(bodies: str, after: str, pays: bool) -> None:
    mj_model = load(world(bodies, after=after))
    floats = FloatStep(mj_model, samples(mj_model, 1)[0])
    assert loops_pay(floats.tree, floats.settings) == pays


@pytest.mark.usefixtures("gs_cpu")
def test_compiled_pile() -> None:
    boxes = "".join(BOX.format(x=0.02 * k, z=0.1 + 0.11 * k) for k in range(7))
    mj_model = load(world(FLOOR + boxes))
    batch = samples(mj_model, 16)
    state = state_of(mj_model, batch, torch.float32)
    kernel_of(mj_model, torch.float32).launch(state, 1)
    assert not state.status.any()
    exact = [mujoco_step(mj_model, sample) for sample in batch]
    rounded = np.max([mujoco_step(mj_model, s.rounded()).errors(e) for s, e in zip(batch, exact)], axis=0)
    found = np.max([r.errors(e) for r, e in zip(results(state), exact)], axis=0)
    assert (found <= np.maximum(SINGLE, 2 * rounded)).all()
    assert any(mujoco_contacts(mj_model, sample) > 8 for sample in batch)


def mujoco_contacts(mj_model: mujoco.MjModel, sample: object) -> int:
    data = mujoco.MjData(mj_model)
    data.qpos[:] = sample.qpos  # type: ignore[attr-defined]
    mujoco.mj_forward(mj_model, data)
    return int(data.ncon)
