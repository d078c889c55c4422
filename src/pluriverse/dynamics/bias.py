"""Bias forces: what inertia, velocity and weight ask of the joints at zero joint acceleration (RNE)."""

from __future__ import annotations

from typing import Any

from pluriverse.trace.expression import is_zero

from .inertia import node_dofs
from .kinematics import Pose
from .spatial import ZERO6, Vector, add, cross, cross_force, dot, rigid_times, scale, shift_force
from .tree import Node, Tree


def body_forces(
    tree: Tree, inertias: dict[Node, Vector], velocities: dict[Node, Vector], accelerations: dict[Node, Vector]
) -> dict[Node, Vector]:
    """The force each body needs for its bias acceleration: I a + v x* I v."""
    forces = {}
    for node in tree.nodes:
        I, v, a = inertias[node], velocities[node], accelerations[node]
        forces[node] = add(rigid_times(I, a), cross_force(v, rigid_times(I, v)))
    return forces


def gravity_lifts(tree: Tree, poses: dict[Node, Pose], gravity: Vector) -> dict[Node, Vector]:
    """The force with which gravity compensation lifts each body that has it."""
    lifts = {}
    for node in tree.nodes:
        lifted, centre = node.compensation
        if not is_zero(lifted):
            lift = scale(gravity, lifted * -1.0)
            lifts[node] = cross(poses[node].point(centre), lift) + lift
    return lifts


def bias_forces(tree: Tree, poses: dict[Node, Pose], forces: dict[Node, Vector]) -> dict[int, Any]:
    """What forces on bodies are to the joints, by dof; of those that bodies need it is qfrc_bias. RNE's backward pass,
    Featherstone table 5.1."""
    total = {node: list(forces.get(node, ZERO6)) for node in tree.nodes}
    bias: dict[int, Any] = {}
    for node in reversed(tree.nodes):
        for dof, column in zip(node_dofs(node), poses[node].columns, strict=True):
            bias[dof] = dot(column, total[node])
        if node.parent is not None:
            total[node.parent] = add(total[node.parent], shift_force(total[node], poses[node].step))
    return bias
