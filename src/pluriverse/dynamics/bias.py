"""Bias forces: what inertia, velocity and weight ask of the joints at zero joint acceleration (RNE)."""

from __future__ import annotations

from typing import Any

from pluriverse.trace.expression import is_zero

from .inertia import node_dofs
from .kinematics import Pose
from .spatial import Vector, add, cross, cross_force, dot, rigid_times, scale, shift_force, sub
from .tree import Node, Tree


def body_forces(
    tree: Tree,
    poses: dict[Node, Pose],
    inertias: dict[Node, Vector],
    velocities: dict[Node, Vector],
    accelerations: dict[Node, Vector],
    gravity: Vector,
) -> dict[Node, Vector]:
    """The force each body needs for its bias acceleration, less what gravity compensation lifts: I a + v x* I v -
    lift."""
    forces = {}
    for node in tree.nodes:
        I, v, a = inertias[node], velocities[node], accelerations[node]
        force = add(rigid_times(I, a), cross_force(v, rigid_times(I, v)))
        lifted, centre = node.compensation
        if not is_zero(lifted):
            lift = scale(gravity, lifted * -1.0)
            force = sub(force, cross(poses[node].point(centre), lift) + lift)
        forces[node] = force
    return forces


def bias_forces(tree: Tree, poses: dict[Node, Pose], forces: dict[Node, Vector]) -> dict[int, Any]:
    """qfrc_bias by dof: RNE's backward pass, Featherstone table 5.1."""
    total = {node: list(forces[node]) for node in tree.nodes}
    bias: dict[int, Any] = {}
    for node in reversed(tree.nodes):
        for dof, column in zip(node_dofs(node), poses[node].columns, strict=True):
            bias[dof] = dot(column, total[node])
        if node.parent is not None:
            total[node.parent] = add(total[node.parent], shift_force(total[node], poses[node].step))
    return bias
