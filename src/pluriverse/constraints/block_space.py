"""Solving (M + J'DJ) a = f in joint coordinates, for large models: in loops over blocks of dofs that are coupled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pluriverse.dynamics.kinematics import Pose, body_motions
from pluriverse.dynamics.spatial import Vector
from pluriverse.dynamics.tree import Node, Tree

from .block_system import BlockSystem
from .contact_jacobian import ContactJacobian
from .contacts import Contacts
from .rows import JointRows

Matrix = dict[tuple[int, int], Any]


class BlockSpace:
    """A step's system in joint coordinates, as `JointSpace`: M and what is coupled are found once a step; with every
    active set H = M + J'DJ is formed and factored."""

    def __init__(
        self,
        tree: Tree,
        poses: dict[Node, Pose],
        mass_matrix: Matrix,
        forces: Callable[[dict[int, Any] | None], dict[int, Any]],
        joint_rows: JointRows,
        contacts: Contacts,
        refines: bool,
    ) -> None:
        """mass_matrix: lower triangle of M; forces: f - M a for an acceleration a by dof, or f alone for None.

        refines: solve for the step from the present acceleration (see `JointSpace`).
        """
        run, n = tree.run, tree.model.nv
        self.tree, self.poses, self.forces, self.rows = tree, poses, forces, joint_rows.rows
        self.constant_forces, self.contacts, self.refines = joint_rows.constant_forces, contacts, refines
        coupled = {place for row in self.rows for place, _ in row.products()}
        self.system = BlockSystem(run, tree.model, set(mass_matrix) | coupled)
        self._count = len(mass_matrix)
        self._inertia = run.array(self._count, scratch=True)
        self._places = run.table([i * n + j for i, j in mass_matrix])
        for k, x in enumerate(mass_matrix.values()):
            self._inertia[k] = x
        if contacts.capacity:
            self._jacobian = ContactJacobian(run, n, contacts)
            self._jacobian.place_all(tree, poses)
            self._jacobian.couple(self.system)
        self.system.fill_in()

    def solve(self, now: dict[int, Any]) -> tuple[dict[int, Any], dict[Node, Vector]]:
        """The minimiser for the rows that are active at `now`, and the body motions it makes."""
        run, n, H, y = self.tree.run, self.tree.model.nv, self.system.H, self.system.y
        start = self.forces(now if self.refines else None)
        self.system.clear()
        for k in run.range(self._count):
            H[self._places[k]] = self._inertia[k]
        for d in range(n):
            y[d] = start[d] + self.constant_forces.get(d, 0.0)
        for r in self.rows:
            x = r.residual(now)
            D = r.active_weight(x)
            pull = D * (-x if self.refines else r.reference)
            for d, c in zip(r.dofs, r.coefficients, strict=True):
                y[d] = y[d] + pull * c
            for (i, j), product in r.products():
                H[i * n + j] = H[i * n + j] + D * product
        for k in run.each(self.contacts.records) if self.contacts.capacity else ():
            self._jacobian.add_curvature(k, self.contacts.goal(k, self.refines), H, y)
        solution = self.system.solve()
        target = {d: now[d] + solution[d] if self.refines else solution[d] for d in range(n)}
        return target, body_motions(self.tree, self.poses, [target[d] for d in range(n)])
