"""How forces on bodies change with joint velocities: of inertia's bias forces (MuJoCo's `mjd_rne_vel`) and of fluids.

A body's forces by unit velocity of each dof that moves it are added up like the columns of the mass matrix.
"""

from __future__ import annotations

from typing import Any

from .fluid import Medium, slope_times
from .inertia import node_dofs
from .kinematics import Pose
from .spatial import (
    ZERO6,
    Vector,
    add,
    cross_force,
    cross_motion,
    dot,
    negate,
    rigid_times,
    scale,
    shift_force,
    shift_motion,
)  # fmt: skip
from .transmission import Damping, add_damping
from .tree import FREE, Node, Tree

ByDof = dict[int, Vector]  # by dof that moves a body


def chain_columns(tree: Tree, poses: dict[Node, Pose]) -> dict[Node, ByDof]:
    """Each body's motion by unit velocity of each dof that moves it."""
    columns: dict[Node, ByDof] = {}
    for node in tree.nodes:
        above = columns[node.parent] if node.parent else {}
        columns[node] = {d: shift_motion(S, poses[node].step) for d, S in above.items()}
        columns[node] |= dict(zip(node_dofs(node), poses[node].columns, strict=True))
    return columns


def fluid_damping(
    tree: Tree, poses: dict[Node, Pose], columns: dict[Node, ByDof], medium: Medium, damping: Damping
) -> None:
    """Adds the damping of the medium."""
    forces = {
        node: {d: negate(slope_times(medium.slopes[node], S)) for d, S in columns[node].items()} for node in tree.nodes
    }
    _project(tree, poses, forces, damping)


def bias_damping(
    tree: Tree,
    poses: dict[Node, Pose],
    inertias: dict[Node, Vector],
    velocities: dict[Node, Vector],
    qvel: list[Any],
    columns: dict[Node, ByDof],
    damping: Damping,
    *,
    of: list[Node],
) -> None:
    """Adds d bias force / d velocity of some nodes, which are whole trees."""
    changes = _acceleration_changes(tree, poses, velocities, qvel, columns)
    forces: dict[Node, ByDof] = {}
    for node in of:
        I, v = inertias[node], velocities[node]
        momentum = rigid_times(I, v)
        forces[node] = {
            d: add(
                rigid_times(I, changes[node][d]),
                add(cross_force(S, momentum), cross_force(v, rigid_times(I, S))),
            )
            for d, S in columns[node].items()
        }
    _project(tree, poses, forces, damping)


def _acceleration_changes(
    tree: Tree, poses: dict[Node, Pose], velocities: dict[Node, Vector], qvel: list[Any], columns: dict[Node, ByDof]
) -> dict[Node, ByDof]:
    """The derivatives of `kinematics.bias_accelerations` by the velocity of each dof that moves a body."""
    changes: dict[Node, ByDof] = {}
    for node in tree.nodes:
        pose, above = poses[node], node.parent
        v = shift_motion(velocities[above], pose.step) if above else list(ZERO6)
        motions = {d: columns[node][d] for d in (columns[above] if above else {})}  # of the body before its joints
        own = {d: shift_motion(a, pose.step) for d, a in changes[above].items()} if above else {}
        k = 0
        for joint in node.joints:
            dofs = [joint.dofs[0] + i for i in range(joint.width)]
            S = dict(zip(dofs, pose.columns[k : k + joint.width], strict=True))
            k += joint.width
            if joint.type == FREE:  # translations first: their columns do not turn
                for d in dofs[:3]:
                    v, motions[d], own[d] = add(v, scale(S[d], qvel[d])), S[d], list(ZERO6)
                dofs = dofs[3:]
            for d in motions:
                for c in dofs:
                    own[d] = add(own[d], scale(cross_motion(motions[d], S[c]), qvel[c]))
            for c in dofs:  # all columns of a joint turn with the motion before it
                own[c] = cross_motion(v, S[c])
            for c in dofs:
                v, motions[c] = add(v, scale(S[c], qvel[c])), S[c]
        changes[node] = own
    return changes


def _project(tree: Tree, poses: dict[Node, Pose], forces: dict[Node, ByDof], damping: Damping) -> None:
    """Adds S_i' F_j for the forces F_j, by unit velocity of dof j, that all bodies moved by both dofs need."""
    total = {node: dict(forces.get(node, {})) for node in tree.nodes}
    for node in reversed(tree.nodes):
        own, pose = node_dofs(node), poses[node]
        for j, force in total[node].items():
            for i, S in zip(own, pose.columns, strict=True):
                add_damping(damping, i, j, dot(S, force))
            if node.parent is None:
                continue
            passed = shift_force(force, pose.step)
            above = total[node.parent]
            if j not in own:
                above[j] = add(above[j], passed) if j in above else passed
                continue
            below: Node | None = node.parent
            while below is not None:
                for i, S in zip(node_dofs(below), poses[below].columns, strict=True):
                    add_damping(damping, i, j, dot(S, passed))
                passed, below = shift_force(passed, poses[below].step), below.parent
