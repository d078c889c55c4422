"""Solving (M + J'DJ) a = f in joint coordinates, for small models: all unrolled, so that entries which are zero by
structure cost nothing. M is formed once a step; with every active set H = M + J'DJ is formed and factored.
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
    dot,
    shift_force,
)  # fmt: skip
from pluriverse.dynamics.tree import Node, Tree
from pluriverse.trace.expression import is_zero

from .contact_jacobian import ContactJacobian, contact_places
from .contacts import Contacts
from .rows import JointRows
from .sweep import STIFFNESS_NUMBERS, body_stiffness, solve_symmetric

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
            for i, c in zip(r.dofs, r.coefficients, strict=True):
                f[i] = f[i] + D * goal * c
            for place, product in r.products():
                H[place] = H.get(place, 0.0) + D * product
        for d, force in self.joint_rows.constant_forces.items():
            f[d] = f[d] + force
        if self.contacts.capacity:
            add_contacts = self._with_coupled_contacts if self.contacts.coupled else self._with_world_contacts
            H, f = add_contacts(self.contacts, H, f)
        solution = solve_joint_space(n, H, f)
        target = {d: now[d] + solution[d] if self.refines else solution[d] for d in range(n)}
        return target, body_motions(self.tree, self.poses, [target[d] for d in range(n)])

    def _with_world_contacts(self, contacts: Contacts, H: Matrix, f: list[Any]) -> tuple[Matrix, list[Any]]:
        """Adds the active rows of contacts with the world, where there are any: a composite-body pass over their
        stiffness."""
        run = self.tree.run
        read = body_stiffness(self.tree, contacts, lambda k: contacts.goal(k, self.refines))
        any_contact: Any = False
        for touched in contacts.touched.values():
            any_contact = any_contact | touched.value
        places = sorted(contact_places(contacts))
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
        places = sorted(set(H) | contact_places(contacts))
        total, push = run.array(n * n, scratch=True), run.array(n, scratch=True)
        any_contact = run.variable(False)
        for k in run.each(contacts.records):
            any_contact.value = any_contact.value | (contacts.records.weight[k] > 0.0)
        for _ in run.when(any_contact.value):
            for i in run.range(n * n):
                total[i] = 0.0
            for i in run.range(n):
                push[i] = 0.0
            jacobian = ContactJacobian(run, n, contacts)
            jacobian.place_all(self.tree, self.poses)
            for k in run.each(contacts.records):
                jacobian.add_curvature(k, contacts.goal(k, self.refines), total, push)
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


def solve_joint_space(n: int, H: Matrix, f: list[Any]) -> list[Any]:
    """x of H x = f, for the lower triangle of a symmetric positive definite H."""
    full = [[H.get((max(i, j), min(i, j)), 0.0) for j in range(n)] for i in range(n)]
    return solve_symmetric(full, list(f))
