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
from pluriverse.trace.functions import reciprocal

from .contacts import Contacts
from .rows import JointRows
from .sweep import STIFFNESS_NUMBERS, body_stiffness, pyramid_stiffness, solve_symmetric

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
        return negate(self.contacts.vector("now", k)) if self.refines else self.contacts.vector("reference", k)

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
    run, n, contacts = geometry.run, geometry.n, geometry.contacts
    (nn, n1, n2, s1, s2), force = pyramid_stiffness(contacts, k, goal)
    J = run.array(3 * n, scratch=True)
    for d in run.range(n):
        column = contacts.in_frame(k, geometry.point_jacobian(k, d))
        for m in range(3):
            J[d * 3 + m] = column[m]
    for i in run.range(n):
        a = [J[i * 3 + m] for m in range(3)]
        push[i] = push[i] + dot(a, force)
        left = [nn * a[0] + n1 * a[1] + n2 * a[2], n1 * a[0] + s1 * a[1], n2 * a[0] + s2 * a[2]]
        for j in run.range(i + 1):
            total[i * n + j] = total[i * n + j] + dot(left, [J[j * 3 + m] for m in range(3)])


class _DofGeometry:
    """Tables and arrays that give, by loop indices, a dof's column at a contact point."""

    def __init__(self, tree: Tree, poses: dict[Node, Pose], contacts: Contacts) -> None:
        run, n = tree.run, tree.model.nv
        self.run, self.contacts = run, contacts
        self.columns = run.array(6 * n, scratch=True)  # of each dof, about its own body's reference point
        self.places = run.array(3 * n, scratch=True)  # of that point, from the tree's base
        self.reaches = run.array(3 * (len(contacts.nodes) + 1), scratch=True)
        ancestry = []
        for node in [*contacts.nodes, None]:
            moved = set()
            while node is not None:
                moved |= set(node_dofs(node))
                node = node.parent
            ancestry += [1.0 if d in moved else 0.0 for d in range(n)]
        self.moves = run.table(ancestry)
        self.n = n
        for node in tree.nodes:
            for d, column in zip(node_dofs(node), poses[node].columns, strict=True):
                for m in range(6):
                    self.columns[6 * d + m] = column[m]
                for m in range(3):
                    self.places[3 * d + m] = poses[node].reach[m]
        for i, node in enumerate(contacts.nodes):
            for m in range(3):
                self.reaches[3 * i + m] = poses[node].reach[m]
        for m in range(3):
            self.reaches[3 * len(contacts.nodes) + m] = 0.0

    def point_jacobian(self, k: Any, d: Any) -> Vector:
        """Velocity of contact k's point on its body, less that on the other body, per unit velocity of dof d."""
        S = [self.columns[d * 6 + m] for m in range(6)]
        place = [self.places[d * 3 + m] for m in range(3)]

        def side(node: Any, point: Vector) -> Vector:
            arm = sub(add([self.reaches[node * 3 + m] for m in range(3)], point), place)
            share = self.moves[node * self.n + d]
            return [share * x for x in add(S[3:], cross(S[:3], arm))]

        own = side(self.contacts.node(k), self.contacts.vector("point", k))
        if not self.contacts.coupled:
            return own
        return sub(own, side(self.contacts.other(k), self.contacts.vector("other_point", k)))


def _contact_places(contacts: Contacts) -> set[tuple[int, int]]:
    """Entries of the lower triangle that a contact can fill."""
    places = set()
    for c in contacts.candidates:
        dofs: set[int] = set()
        for node in (c.node, c.other):
            while node is not None:
                dofs |= set(node_dofs(node))
                node = node.parent
        places |= {(i, j) for i in dofs for j in dofs if j <= i}
    return places


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
