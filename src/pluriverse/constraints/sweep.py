"""Solving (M + J'DJ) a = f by one articulated-body sweep, O(n), where the active rows keep the tree.

A row on one dof adds its weight to that dof's diagonal. A contact with the world adds the 6x6 stiffness sum_r D w_r
w_r' of its active rows w_r to its body's inertia. The sweep (Featherstone 2008, table 7.1) then factors mass and
stiffness together, and the mass matrix, J and H = M + J'DJ are never formed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pluriverse.dynamics.inertia import node_dofs
from pluriverse.dynamics.kinematics import Pose
from pluriverse.dynamics.spatial import (
    PLACE,
    SYMMETRIC,
    ZERO3,
    ZERO6,
    Articulated,
    Vector,
    add,
    articulated,
    articulated_from,
    articulated_minus_outer,
    articulated_numbers,
    articulated_shift,
    articulated_sum,
    articulated_times,
    cross,
    dot,
    matvec,
    negate,
    row,
    scale,
    shift_force,
    shift_motion,
    skew,
    sub,
    symmetric_matrix,
    transpose,
)  # fmt: skip
from pluriverse.dynamics.tree import FREE, Node, Tree
from pluriverse.trace.expression import is_zero
from pluriverse.trace.functions import reciprocal

from .cones import row_of, times
from .contacts import Contacts

Stiffen = Callable[[Node, Articulated, Vector], tuple[Articulated, Vector]]


def articulated_sweep(
    tree: Tree,
    poses: dict[Node, Pose],
    inertias: dict[Node, Vector],
    forces: dict[Node, Vector] | None,
    diagonal: dict[int, Any],
    joint_forces: dict[int, Any],
    stiffen: Stiffen | None = None,
) -> tuple[dict[int, Any], dict[Node, Vector]]:
    """Joint accelerations by dof and the body motions that they make.

    `forces`: what each body needs besides (bias forces); `diagonal`: what is added to the mass matrix's diagonal;
    `joint_forces` by dof; `stiffen` adds a body's contact stiffness and force.
    """
    factors: dict[Node, Any] = {}
    inertia: dict[Node, Articulated] = {n: articulated(inertias[n]) for n in tree.nodes}
    bias: dict[Node, Vector] = {n: list(forces[n]) if forces else list(ZERO6) for n in tree.nodes}
    for node in reversed(tree.nodes):
        if stiffen is not None:
            inertia[node], bias[node] = stiffen(node, inertia[node], bias[node])
        if node.joints[0].type == FREE:
            factors[node] = _free_motion(node, poses[node], inertia[node], bias[node], diagonal, joint_forces)
            continue
        factors[node], passed, force = _eliminate(node, poses[node], inertia[node], bias[node], diagonal, joint_forces)
        if node.parent is not None:
            passed, force = articulated_shift(passed, poses[node].step), shift_force(force, poses[node].step)
            if node.joins_lanes:
                passed = articulated_from([tree.run.lane_sum(x) for x in articulated_numbers(passed)])
                force = [tree.run.lane_sum(x) for x in force]
            inertia[node.parent] = articulated_sum(inertia[node.parent], passed)
            bias[node.parent] = add(bias[node.parent], force)
    return _accelerate(tree, poses, factors)


def _eliminate(
    node: Node, pose: Pose, inertia: Articulated, bias: Vector, diagonal: dict, joint_forces: dict
) -> tuple[Any, Articulated, Vector]:
    """Eliminates a node's dofs, last first; what remains is what the parent feels."""
    factors = []
    for dof, S in reversed(list(zip(node_dofs(node), pose.columns, strict=True))):
        U = articulated_times(inertia, S)
        pivot = reciprocal(dot(S, U) + diagonal[dof])
        gain = scale(U, pivot)
        rate = (joint_forces[dof] - dot(S, bias)) * pivot
        factors.append((dof, S, gain, rate))
        inertia = articulated_minus_outer(inertia, U, gain)
        bias = add(bias, scale(U, rate))
    return factors[::-1], inertia, bias


def _free_motion(
    node: Node, pose: Pose, inertia: Articulated, bias: Vector, diagonal: dict, joint_forces: dict
) -> Vector:
    """The acceleration of a free body: a 6x6 system, solved by L D L' from the last row up."""
    dofs = node_dofs(node)
    A, B, C = inertia
    R = pose.rotation
    turn = [diagonal[d] for d in dofs[3:]]
    if not all(is_zero(x) for x in turn):
        A = [A[k] + dot([R[3 * i + m] * turn[m] for m in range(3)], row(R, j)) for k, (i, j) in enumerate(SYMMETRIC)]
    C = [C[k] + (diagonal[dofs[i]] if i == j else 0.0) for k, (i, j) in enumerate(SYMMETRIC)]
    wrench = matvec(R, [joint_forces[d] for d in dofs[3:]]) + [joint_forces[d] for d in dofs[:3]]
    y = sub(wrench, bias)
    H = [[0.0] * 6 for _ in range(6)]
    for i in range(3):
        for j in range(3):
            H[i][j], H[3 + i][3 + j] = A[PLACE[i, j]], C[PLACE[i, j]]
            H[i][3 + j] = H[3 + j][i] = B[3 * i + j]
    return solve_symmetric(H, y)


def solve_symmetric(H: list[list[Any]], y: list[Any]) -> list[Any]:
    """H x = y for a symmetric positive definite H, eliminated from the last row up; zeros cost nothing. Both are
    overwritten."""
    n = len(H)
    pivots: list[Any] = [None] * n
    for k in reversed(range(n)):
        pivots[k] = reciprocal(H[k][k])
        L = [H[k][i] * pivots[k] for i in range(k)]
        for i in range(k):
            for j in range(i + 1):
                H[i][j] = H[i][j] - L[i] * H[k][j]
            y[i] = y[i] - L[i] * y[k]
        H[k][:k] = L
    x: list[Any] = [None] * n
    for k in range(n):
        x[k] = y[k] * pivots[k] - dot(H[k][:k], x[:k])
    return x


def _accelerate(
    tree: Tree, poses: dict[Node, Pose], factors: dict[Node, Any]
) -> tuple[dict[int, Any], dict[Node, Vector]]:
    """The sweep outwards: accelerations of joints and bodies, roots first."""
    accelerations: dict[int, Any] = {}
    motions: dict[Node, Vector] = {}
    for node in tree.nodes:
        if node.joints[0].type == FREE:
            motions[node] = factors[node]
            turning = matvec(transpose(poses[node].rotation), motions[node][:3])
            accelerations.update(zip(node_dofs(node), motions[node][3:] + turning, strict=True))
            continue
        motion = shift_motion(motions[node.parent], poses[node].step) if node.parent else list(ZERO6)
        for dof, S, gain, rate in factors[node]:
            accelerations[dof] = rate - dot(gain, motion)
            motion = add(motion, scale(S, accelerations[dof]))
        motions[node] = motion
    return accelerations, motions


STIFFNESS_NUMBERS = 27  # an articulated inertia and a force


def body_stiffness(tree: Tree, contacts: Contacts, goal: Callable[[Any], Vector]) -> Callable[[Node], list[Any]]:
    """Sums the active rows of all contacts with the world into one stiffness per body.

    goal: of a contact, the acceleration (in its frame) that its rows pull to. Returns what reads a touched body's 27
    numbers: articulated stiffness, and the force it needs besides.
    """
    run, records = tree.run, contacts.records
    total = run.array(STIFFNESS_NUMBERS * len(contacts.nodes), scratch=True)
    for k in run.each(records):
        start = contacts.node(k) * STIFFNESS_NUMBERS
        for i in range(STIFFNESS_NUMBERS):
            total[start + i] = 0.0
    for k in run.each(records):
        start = contacts.node(k) * STIFFNESS_NUMBERS
        stiffness, force = _record_stiffness(contacts, k, goal(k))
        for i, x in enumerate(articulated_numbers(stiffness) + negate(force)):
            total[start + i] = total[start + i] + x

    def read(node: Node) -> list[Any]:
        start = contacts.nodes.index(node) * STIFFNESS_NUMBERS
        return [total[start + i] for i in range(STIFFNESS_NUMBERS)]

    return read


def contact_stiffness(tree: Tree, contacts: Contacts) -> Stiffen:
    """What adds the stiffness of a body's active contacts to its inertia."""
    read = body_stiffness(tree, contacts, lambda k: contacts.parts("reference", k))

    def stiffen(node: Node, inertia: Articulated, bias: Vector) -> tuple[Articulated, Vector]:
        if node not in contacts.touched:
            return inertia, bias
        present = articulated_numbers(inertia) + bias
        numbers = tree.run.choose(contacts.touched[node].value, lambda: add(present, read(node)), present)
        return articulated_from(numbers), numbers[21:]

    return stiffen


def _record_stiffness(contacts: Contacts, k: Any, goal: Vector) -> tuple[Articulated, Vector]:
    """The 6x6 stiffness P' W P of a contact with the world, for the curvature W of its cone and the motions P that its
    parts measure, and the force P' W goal; both about its body's reference point."""
    W = contacts.cone(k).curvature(contacts.parts("now", k))
    f, frame, point = times(W, goal), contacts.frame(k), contacts.vector("point", k)
    pulls = [_sum(frame, row_of(W, i)[:3]) for i in range(3)]  # W's linear part times the frame
    C = [dot([axis[i] for axis in frame], [pull[j] for pull in pulls]) for i, j in SYMMETRIC]
    S = skew(point)
    full = symmetric_matrix(C)
    B = [dot(row(S, i), [full[3 * m + j] for m in range(3)]) for i in range(3) for j in range(3)]
    A = [dot(row(B, i), row(S, j)) for i, j in SYMMETRIC]
    push = _sum(frame, f[:3])
    moment = cross(point, push)
    for i in range(3, contacts.width):  # a part that measures turning about an axis
        axis, w = frame[i - 3], row_of(W, i)
        linear = _sum(frame, w[:3])
        turning = add(cross(point, linear), _sum(frame, w[3:i]))
        A = [A[m] + axis[p] * turning[q] + turning[p] * axis[q] + w[i] * axis[p] * axis[q]
             for m, (p, q) in enumerate(SYMMETRIC)]  # fmt: skip
        B = [B[3 * p + q] + axis[p] * linear[q] for p in range(3) for q in range(3)]
        moment = add(moment, scale(axis, f[i]))
    return (A, B, C), moment + push


def _sum(frame: tuple[Vector, Vector, Vector], parts: Vector) -> Vector:
    """The vector with these parts along the first axes of a frame."""
    total = list(ZERO3)
    for axis, x in zip(frame, parts, strict=False):
        total = add(total, scale(axis, x))
    return total
