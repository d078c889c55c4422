"""The tree of moving bodies: what is merged, what lanes share."""

from __future__ import annotations

import numpy as np
import pytest

from physics_models import load, names, world
from physics_reference import DOUBLE, error, stages
from pluriverse.dynamics.tree import Tree, lane_groups, merge_fixed_bodies, tidy
from pluriverse.model import Model
from pluriverse.trace.expression import LaneConstant
from pluriverse.trace.numbers import Numbers
from pluriverse.trace.program import Program


@pytest.mark.parametrize("name", names("small") + names("robots"))
def test_merging_loses_nothing(name: str) -> None:
    mj_model = load(name)
    merged = merge_fixed_bodies(Model.from_mujoco(mj_model))
    moving = [body for body in merged if body]
    assert sorted(moving) == sorted({int(b) for b in mj_model.body_weldid} - {0})
    assert error(sum(part.mass for part in merged.values()), mj_model.body_mass.sum()) <= DOUBLE
    assert sorted(g for part in merged.values() for g in part.geoms) == list(range(mj_model.ngeom))


def test_fixed_bodies_weigh_on_their_carrier() -> None:
    text = """<body><joint/><geom size=".1" mass="2"/>
      <body pos="1 0 0" euler="0 0 90"><body pos="0 1 0"><geom name="far" size=".1" mass="1"/></body></body></body>"""
    part = merge_fixed_bodies(Model.from_mujoco(load(world(text))))[1]
    assert part.mass == pytest.approx(3)
    np.testing.assert_allclose(part.centre, [0, 0, 0], atol=1e-12)  # the far sphere comes back to the joint
    np.testing.assert_allclose(part.geoms[1][0], [0, 0, 0], atol=1e-12)


def test_mocap_bodies_are_fixed_and_carry_trees() -> None:
    names = [load("mocap").body(k).name for k in range(load("mocap").nbody)]
    for stage in stages("mocap"):
        tree, data = stage.floats.tree, stage.data
        assert sorted(names[body] for body in tree.fixed) == ["plate", "target", "world"]
        assert {names[node.carrier] for node in tree.roots} == {"target", "world"}
        for geom in range(stage.mj_model.ngeom):
            if tree.carrier_of(stage.mj_model.geom_bodyid[geom]) in tree.fixed.values():
                position, axes = tree.fixed_geom(geom)
                assert error(position, data.geom_xpos[geom]) <= DOUBLE
                assert error(axes, data.geom_xmat[geom]) <= DOUBLE


def test_parents_come_first() -> None:
    tree = Tree(Model.from_mujoco(load("gym_humanoid")), Numbers())
    for node in tree.nodes:
        assert node.parent is None or node.parent.index < node.index
        assert all(child.parent is node for child in node.children)


@pytest.mark.parametrize(("lanes", "nodes"), [(1, 9), (2, 5), (4, 3)])
def test_equal_limbs_share_nodes(lanes: int, nodes: int) -> None:
    model = Model.from_mujoco(load("four_legs"))
    groups = lane_groups(model, merge_fixed_bodies(model), lanes)
    assert len(groups) == nodes
    assert {body for bodies in groups for body in bodies} == set(range(1, model.nbody))


def test_lane_constants_hold_each_limb_s_number() -> None:
    model = Model.from_mujoco(load("four_legs"))
    tree = Tree(model, Program(lanes=4))
    thigh = tree.nodes[1]
    assert not thigh.trunk
    assert thigh.joins_lanes
    assert isinstance(thigh.position[0], LaneConstant)
    np.testing.assert_allclose(thigh.position[0].args, model.body_pos[list(thigh.bodies), 0])
    assert all(not isinstance(x, LaneConstant) for x in tree.nodes[0].moments)


def test_limbs_of_unequal_structure_share_nothing() -> None:
    leg = '<body pos="0 {y} 0"><joint {limit}/><geom size=".1" contype="0"/></body>'
    limbs = leg.format(y=1, limit="") + leg.format(y=-1, limit='range="-10 10" limited="true"')
    model = Model.from_mujoco(load(world(f'<body><freejoint/><geom size=".2"/>{limbs}</body>')))
    assert len(lane_groups(model, merge_fixed_bodies(model), 2)) == 3


@pytest.mark.parametrize(("x", "kept"), [(1e-15, 0.0), (1 - 1e-15, 1.0), (-1 - 1e-15, -1.0), (1e-9, 1e-9), (0.3, 0.3)])
def test_tidy(x: float, kept: float) -> None:
    assert tidy(x) == kept
