"""Solving (M + J'DJ) a = f in joint coordinates: the general path, for rows that couple limbs or bodies.

M is formed once a step. With every active set H = M + J'DJ is formed and factored: unrolled for small models, where
entries that are zero by structure cost nothing, in loops for large ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pluriverse.dynamics.inertia import node_dofs
from pluriverse.dynamics.kinematics import Pose, body_motions
from pluriverse.dynamics.spatial import (
    Articulated,
    Vector,
    add,
    articulated_from,
    articulated_numbers,
    articulated_shift,
    articulated_times,
    cross,
    dot,
    negate,
    shift_force,
    sub,
)  # fmt: skip
from pluriverse.dynamics.tree import Node, Tree
from pluriverse.trace.expression import is_zero
from pluriverse.trace.functions import reciprocal, select

from .candidates import Candidate
from .cones import times
from .contacts import Contacts
from .rows import JointRows
from .sweep import STIFFNESS_NUMBERS, body_stiffness, solve_symmetric

UNROLLED_DOFS = 36  # beyond, straight-line code grows as the cube

Matrix = dict[tuple[int, int], Any]


@dataclass(eq=False)
class JointSpace:
    """A step's system in joint coordinates.

    mass_matrix: lower triangle of M; forces: f - M a for an acceleration a by dof, or f alone for None. refines:
    solve for the step from the present acceleration. In float32 that is more exact: every iteration refines the one
    before, and M a is summed body by body.
    """

    tree: Tree
    poses: dict[Node, Pose]
    mass_matrix: Matrix
    forces: Callable[[dict[int, Any] | None], dict[int, Any]]
    joint_rows: JointRows
    contacts: Contacts
    refines: bool

    def solve(self, now: dict[int, Any]) -> tuple[dict[int, Any], dict[Node, Vector]]:
        """The minimiser for the rows that are active at `now`, and the body motions it makes."""
        n = self.tree.model.nv
        start = self.forces(now if self.refines else None)
        H, f = dict(self.mass_matrix), [start[d] for d in range(n)]
        for r in self.joint_rows.rows:
            x = r.residual(now)
            D = r.active_weight(x)
            goal = -x if self.refines else r.reference
            for a, (i, ci) in enumerate(zip(r.dofs, r.coefficients, strict=True)):
                f[i] = f[i] + D * goal * ci
                for j, cj in list(zip(r.dofs, r.coefficients, strict=True))[: a + 1]:
                    place = (max(i, j), min(i, j))
                    H[place] = H.get(place, 0.0) + D * ci * cj
        for d, force in self.joint_rows.constant_forces.items():
            f[d] = f[d] + force
        if self.contacts.capacity:
            add_contacts = self._with_coupled_contacts if self.contacts.coupled else self._with_world_contacts
            H, f = add_contacts(self.contacts, H, f)
        solution = solve_joint_space(self.tree.run, n, H, f)
        target = {d: now[d] + solution[d] if self.refines else solution[d] for d in range(n)}
        return target, body_motions(self.tree, self.poses, [target[d] for d in range(n)])

    def _goal(self, k: Any) -> Vector:
        """What the rows of contact k pull to: their reference, or what the present acceleration misses of it."""
        return negate(self.contacts.parts("now", k)) if self.refines else self.contacts.parts("reference", k)

    def _with_world_contacts(self, contacts: Contacts, H: Matrix, f: list[Any]) -> tuple[Matrix, list[Any]]:
        """Adds the active rows of contacts with the world, where there are any: a composite-body pass over their
        stiffness."""
        run = self.tree.run
        read = body_stiffness(self.tree, contacts, self._goal)
        any_contact: Any = False
        for touched in contacts.touched.values():
            any_contact = any_contact | touched.value
        places = sorted(_contact_places(contacts))
        present = [H.get(place, 0.0) for place in places] + f

        def stiffened() -> list[Any]:
            sums, push = dict(zip(places, present, strict=False)), list(f)
            composite: dict[Node, list[Any]] = {}
            for node in reversed(self.tree.nodes):
                numbers = composite.get(node, [0.0] * STIFFNESS_NUMBERS)
                if node in contacts.touched:
                    numbers = run.choose(
                        contacts.touched[node].value, lambda n=node, x=numbers: add(x, read(n)), numbers
                    )
                if all(is_zero(x) for x in numbers):
                    continue
                self._add_stiffness(node, articulated_from(numbers), numbers[21:], sums, push)
                if node.parent is not None:
                    step = self.poses[node].step
                    passed = articulated_numbers(articulated_shift(articulated_from(numbers), step))
                    passed += shift_force(numbers[21:], step)
                    composite[node.parent] = add(composite.get(node.parent, [0.0] * STIFFNESS_NUMBERS), passed)
            return [sums[place] for place in places] + push

        values = run.choose(any_contact, stiffened, present)
        return H | dict(zip(places, values, strict=False)), values[len(places) :]

    def _add_stiffness(self, node: Node, stiffness: Articulated, force: Vector, sums: Matrix, push: list[Any]) -> None:
        """Adds S' K S over the dofs that move a body, for the stiffness K of all that it carries, and takes S' force
        away."""
        columns, dofs = self.poses[node].columns, node_dofs(node)
        for k, dof in enumerate(dofs):
            push[dof] = push[dof] - dot(columns[k], force)
            pull = articulated_times(stiffness, columns[k])
            for i in range(k + 1):
                sums[dof, dofs[i]] = sums[dof, dofs[i]] + dot(columns[i], pull)
            below, above = node, node.parent
            while above is not None:
                pull = shift_force(pull, self.poses[below].step)
                for d, column in zip(node_dofs(above), self.poses[above].columns, strict=True):
                    sums[dof, d] = sums[dof, d] + dot(column, pull)
                below, above = above, above.parent

    def _with_coupled_contacts(self, contacts: Contacts, H: Matrix, f: list[Any]) -> tuple[Matrix, list[Any]]:
        """Adds the active rows of contacts, where there are any: J of one contact after the other, in loops."""
        run, n = self.tree.run, self.tree.model.nv
        places = sorted(set(H) | _contact_places(contacts))
        total, push = run.array(n * n, scratch=True), run.array(n, scratch=True)
        any_contact = run.variable(False)
        for k in run.each(contacts.records):
            any_contact.value = any_contact.value | (contacts.records.weight[k] > 0.0)
        for _ in run.when(any_contact.value):
            for i in run.range(n * n):
                total[i] = 0.0
            for i in run.range(n):
                push[i] = 0.0
            geometry = _DofGeometry(self.tree, self.poses, contacts)
            for k in run.each(contacts.records):
                _add_contact(geometry, k, self._goal(k), total, push)
        present = [H.get(place, 0.0) for place in places] + f
        values = run.choose(
            any_contact.value,
            lambda: (
                [x + total[i * n + j] for (i, j), x in zip(places, present, strict=False)]
                + [x + push[i] for i, x in enumerate(f)]
            ),
            present,
        )
        return dict(zip(places, values, strict=False)), values[len(places) :]


def _add_contact(geometry: _DofGeometry, k: Any, goal: Vector, total: Any, push: Any) -> None:
    """Adds J' W J of contact k's active rows, and J' W times what they pull to, to the dense system (lower half)."""
    run, n = geometry.run, geometry.n
    contacts = geometry.contacts
    width, W = contacts.width, contacts.cone(k).curvature(contacts.parts("now", k))
    force = times(W, goal)
    J = run.array(width * geometry.longest, scratch=True)
    first, stop = geometry.dofs_of(k)
    column_at = geometry.columns_at(k)
    for a in run.range(first, stop):
        for m, x in enumerate(column_at(a)):
            J[(a - first) * width + m] = x
    for a in run.range(stop - first):
        x, i = [J[a * width + m] for m in range(width)], geometry.dof[first + a]
        push[i] = push[i] + dot(x, force)
        left = times(W, x)
        for b in run.range(a + 1, unroll=4):
            place = i * n + geometry.dof[first + b]
            total[place] = total[place] + dot(left, [J[b * width + m] for m in range(width)])


class _DofGeometry:
    """The dofs that move the two bodies of a contact against each other, and their columns at its point, by loop
    indices."""

    def __init__(self, tree: Tree, poses: dict[Node, Pose], contacts: Contacts) -> None:
        run, n = tree.run, tree.model.nv
        self.run, self.contacts, self.n = run, contacts, n
        lists: dict[tuple[tuple[int, float], ...], int] = {}  # (dof, side) of a candidate -> where they begin
        entries: list[tuple[int, float]] = []
        bounds = []
        for c in contacts.candidates:
            moving = tuple(_moving_dofs(c))
            if moving not in lists:
                lists[moving] = len(entries)
                entries += moving
            bounds.append((lists[moving], lists[moving] + len(moving)))
        self.longest = max(stop - first for first, stop in bounds)
        self._first, self._stop = run.table([first for first, _ in bounds]), run.table([stop for _, stop in bounds])
        self.dof = run.table([dof for dof, _ in entries])
        self._side = run.table([side for _, side in entries])
        self._columns = run.array(6 * n, scratch=True)  # of each dof, about its own body's reference point
        self._places = run.array(3 * n, scratch=True)  # of that point, from the tree's base
        self._reaches = run.array(3 * (len(contacts.nodes) + 1), scratch=True)
        for node in tree.nodes:
            for d, column in zip(node_dofs(node), poses[node].columns, strict=True):
                for m in range(6):
                    self._columns[6 * d + m] = column[m]
                for m in range(3):
                    self._places[3 * d + m] = poses[node].reach[m]
        for i, node in enumerate(contacts.nodes):
            for m in range(3):
                self._reaches[3 * i + m] = poses[node].reach[m]
        for m in range(3):
            self._reaches[3 * len(contacts.nodes) + m] = 0.0

    def dofs_of(self, k: Any) -> tuple[Any, Any]:
        """Where contact k's dofs begin and end in `dof`; they ascend."""
        pair = self.contacts.records.pair[k]
        return self._first[pair], self._stop[pair]

    def columns_at(self, k: Any) -> Callable[[Any], Vector]:
        """Contact k's Jacobian in its frame: motion of its point on its body, less that on the other body, per unit
        velocity of the a-th dof."""
        contacts, frame = self.contacts, self.contacts.frame(k)

        def tip(node: Any, point: str) -> Vector:
            return add([self._reaches[node * 3 + m] for m in range(3)], contacts.vector(point, k))

        own = tip(contacts.node(k), "point")
        other = tip(contacts.other(k), "other_point") if contacts.coupled else own

        def column(a: Any) -> Vector:
            d, side = self.dof[a], self._side[a]
            S = [self._columns[d * 6 + m] for m in range(6)]
            end = [select(side > 0.0, x, y) for x, y in zip(own, other, strict=True)]
            arm = sub(end, [self._places[d * 3 + m] for m in range(3)])
            return contacts.in_frame_of(frame, [side * x for x in [*S[:3], *add(S[3:], cross(S[:3], arm))]])

        return column


def _moving_dofs(c: Candidate) -> list[tuple[int, float]]:
    """The dofs that move a candidate's bodies against each other, ascending: 1 with those of `node`, -1 with those of
    `other`. A dof that carries both moves neither against the other."""
    sides: dict[int, float] = {}
    for node, side in ((c.node, 1.0), (c.other, -1.0)):
        while node is not None:
            for dof in node_dofs(node):
                sides[dof] = sides.get(dof, 0.0) + side
            node = node.parent
    return sorted((dof, side) for dof, side in sides.items() if side)


def _contact_places(contacts: Contacts) -> set[tuple[int, int]]:
    """Entries of the lower triangle that a contact can fill."""
    chains = [[dof for dof, _ in _moving_dofs(c)] for c in contacts.candidates]
    return {(i, j) for dofs in chains for i in dofs for j in dofs if j <= i}


def solve_joint_space(run: Any, n: int, H: Matrix, f: list[Any]) -> list[Any]:
    """x of H x = f, for the lower triangle of a symmetric positive definite H."""
    if n <= UNROLLED_DOFS:
        full = [[H.get((max(i, j), min(i, j)), 0.0) for j in range(n)] for i in range(n)]
        return solve_symmetric(full, list(f))
    return _solve_in_loops(run, n, H, f)


def _solve_in_loops(run: Any, n: int, H: Matrix, f: list[Any]) -> list[Any]:
    """The same elimination with traced loops over arrays."""
    L, y, pivots = run.array(n * n, scratch=True), run.array(n, scratch=True), run.array(n, scratch=True)
    for i in run.range(n * n):
        L[i] = 0.0
    for (i, j), x in H.items():
        L[i * n + j] = x
    for i in range(n):
        y[i] = f[i]
    for down in run.range(n):
        k = (n - 1) - down
        pivot = reciprocal(L[k * n + k])
        pivots[k] = pivot
        rhs = y[k]
        for i in run.range(k):
            factor = L[k * n + i] * pivot
            for j in run.range(i + 1):
                L[i * n + j] = L[i * n + j] - factor * L[k * n + j]
            y[i] = y[i] - factor * rhs
    for k in run.range(n):
        total = run.variable(0.0, scratch=True)
        for i in run.range(k):
            total.value = total.value + L[k * n + i] * y[i]
        y[k] = (y[k] - total.value) * pivots[k]
    return [y[k] for k in range(n)]
