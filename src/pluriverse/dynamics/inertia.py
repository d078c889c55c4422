"""Inertias: of each body about its reference point, and the joint-space mass matrix by composite bodies."""

from __future__ import annotations

from typing import Any

from .kinematics import Pose
from .spatial import Vector, add, dot, rigid_inertia, rigid_times, rotate_symmetric, shift_force
from .tree import Node, Tree


def body_inertias(tree: Tree, poses: dict[Node, Pose]) -> dict[Node, Vector]:
    """Rigid inertia of each moving body about its reference point, world axes."""
    return {
        node: rigid_inertia(
            node.mass, poses[node].point(node.centre), rotate_symmetric(poses[node].rotation, node.moments)
        )
        for node in tree.nodes
    }


def node_dofs(node: Node) -> list[int]:
    """The node's dofs (of the first lane), in the order of its columns."""
    return [joint.dofs[0] + k for joint in node.joints for k in range(joint.width)]


def shift_inertia(inertia: Vector, r: Vector) -> Vector:
    """The rigid inertia about the parent's point, where the present point lies at r from it: the parallel-axis
    theorem."""
    h, m = inertia[6:9], inertia[9]
    hr, mr = [h[i] * r[i] for i in range(3)], [m * x for x in r]
    d = [2.0 * hr[i] + mr[i] * r[i] for i in range(3)]
    off = [h[i] * r[j] + h[j] * r[i] + mr[i] * r[j] for i, j in ((0, 1), (0, 2), (1, 2))]
    rotational = [inertia[0] + (d[1] + d[2]), inertia[1] + (d[0] + d[2]), inertia[2] + (d[0] + d[1])]
    return rotational + [inertia[3 + k] - off[k] for k in range(3)] + add(h, mr) + [m]


def mass_matrix(
    tree: Tree, poses: dict[Node, Pose], inertias: dict[Node, Vector], added: dict[int, Any]
) -> dict[tuple[int, int], Any]:
    """Lower triangle of the joint-space mass matrix, {(i, j): M[i, j]}, i >= j, structural zeros left out.

    Composite-rigid-body algorithm, Featherstone table 6.2. `added` is what the diagonal gets besides (armature).
    """
    composite = {node: list(inertias[node]) for node in tree.nodes}
    M: dict[tuple[int, int], Any] = {}
    for node in reversed(tree.nodes):
        dofs = node_dofs(node)
        for k in reversed(range(len(dofs))):
            S = poses[node].columns[k]
            force = rigid_times(composite[node], S)
            for i in range(k + 1):
                M[dofs[k], dofs[i]] = dot(poses[node].columns[i], force)
            M[dofs[k], dofs[k]] = M[dofs[k], dofs[k]] + added.get(dofs[k], 0.0)
            below, above = node, node.parent
            while above is not None:
                force = shift_force(force, poses[below].step)
                for dof, column in zip(node_dofs(above), poses[above].columns, strict=True):
                    M[dofs[k], dof] = dot(column, force)
                below, above = above, above.parent
        if node.parent is not None:
            composite[node.parent] = add(composite[node.parent], shift_inertia(composite[node], poses[node].step))
    return M


def kinetic_energy_twice(
    tree: Tree, inertias: dict[Node, Vector], motions: dict[Node, Vector], values: dict[int, Any], added: dict[int, Any]
) -> Any:
    """v' M v for joint values v and the body motions J v: a sum of squares, exact in float32. Summed over the lanes."""
    shared: Any = 0.0
    own: Any = 0.0
    for node in tree.nodes:
        term = dot(motions[node], rigid_times(inertias[node], motions[node]))
        for d in node_dofs(node):
            term = term + added.get(d, 0.0) * (values[d] * values[d])
        shared, own = (shared + term, own) if node.trunk else (shared, own + term)
    return tree.run.lane_sum(own + shared * (1.0 / tree.run.lanes))
