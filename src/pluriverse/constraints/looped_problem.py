"""The solver's problem in traced loops over alike trees: accelerations are arrays by dof, the system one of blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pluriverse.dynamics.bias import bias_forces
from pluriverse.dynamics.inertia import kinetic_energy_twice
from pluriverse.dynamics.kinematics import body_motions
from pluriverse.dynamics.replicas import Replica
from pluriverse.dynamics.spatial import add, dot, rigid_times
from pluriverse.trace.functions import absolute, select

from .block_system import BlockSystem
from .candidates import store
from .contact_jacobian import ContactJacobian
from .contacts import Contacts
from .newton import Consider

if TYPE_CHECKING:
    from pluriverse.looped_smooth import LoopedSmooth


class LoopedProblem:
    """A `newton.Problem`. It solves for the step from the present acceleration (`JointSpace`, refines)."""

    def __init__(
        self,
        smooth: LoopedSmooth,
        contacts: Contacts,
        qacc: Any,
        long_step: float | None,
        jacobian: ContactJacobian | None,
    ) -> None:
        """qacc: array of accelerations by dof, holding the start; jacobian: None without contacts."""
        self.run, self.smooth, self.contacts, self.long_step = smooth.run, smooth, contacts, long_step
        self.n = smooth.tree.model.nv
        self._jacobian = jacobian
        self._now, self._target = qacc, self.run.array(self.n, scratch=True)
        self._system = BlockSystem(self.run, smooth.tree.model, _places(smooth))
        if jacobian is not None:
            jacobian.couple(self._system)
        self._system.fill_in()

    @property
    def one_sided(self) -> int:
        return sum(group.count * sum(not r.two_sided for r in rows.rows) for group, rows, _ in self.smooth.templates())

    def solve(self) -> None:
        run, n, H, y = self.run, self.n, self._system.H, self._system.y
        self._system.clear()
        for replica in self.smooth.each():
            smooth, rows, M = self.smooth.load(replica)
            shift = replica.dof_shift
            now, force = replica.dofs(self._now), self._residual_force(replica, smooth)
            for d, f in force.items():
                y[shift + d] = f + rows.constant_forces.get(d, 0.0)
            corner = shift * (n + 1)
            for (i, j), x in M.items():
                H[corner + (i * n + j)] = x
            for r in rows.rows:
                x = r.residual(now)
                D = r.active_weight(x)
                for d, c in zip(r.dofs, r.coefficients, strict=True):
                    y[shift + d] = y[shift + d] - D * x * c
                for (i, j), product in r.products():
                    place = corner + (i * n + j)
                    H[place] = H[place] + D * product
        if self._jacobian is not None:
            for k in run.each(self.contacts.records):
                self._jacobian.add_curvature(k, self.contacts.goal(k, True), H, y)
        self._system.solve()
        for d in run.range(n):
            self._target[d] = self._now[d] + y[d]

    def target_motions(self) -> Any:
        return looped_motion_table(self.contacts, self.smooth, self._target)

    def rows_change(self) -> Any:
        changed = self.run.variable(False)
        for r, now, target in self._rows():
            if not r.two_sided:
                changed.value = changed.value | (r.residual(now) * r.residual(target) * absolute(r.weight) < 0.0)
        return changed.value

    def step_and_size(self) -> tuple[Any, Any]:
        step, size = self.run.variable(0.0), self.run.variable(0.0)
        for d in self.run.range(self.n):
            step.value = step.value + absolute(self._target[d] - self._now[d])
            size.value = size.value + absolute(self._target[d])
        return step.value, size.value

    def consider_rows(self, consider: Consider) -> Any:
        total = self.run.variable(0.0)
        for r, now, target in self._rows():
            if r.two_sided:
                j = dot(r.coefficients, [target[d] - now[d] for d in r.dofs])
                total.value = total.value + r.weight * (j * j)
            else:
                consider(r.residual(now), r.residual(target), r.weight, 1.0)
        return total.value

    def energy(self) -> Any:
        total = self.run.variable(0.0)
        for replica in self.smooth.each():
            smooth, _, _ = self.smooth.load(replica)
            now, target = replica.dofs(self._now), replica.dofs(self._target)
            v: Any = {d: target[d] - now[d] for d in smooth.armature}
            motions = body_motions(replica, smooth.poses, v)
            total.value = total.value + kinetic_energy_twice(replica, smooth.inertias, motions, v, smooth.armature)
        return total.value

    def advance(self, t: Any) -> None:
        for d in self.run.range(self.n):
            now, target = self._now[d], self._target[d]
            self._now[d] = select((t < 1.0) | (t > 1.0), now + t * (target - now), target)

    def _rows(self) -> Iterator[tuple[Any, Any, Any]]:
        """The rows of joint coordinates, with what finds the present acceleration and the target by their dofs."""
        for replica in self.smooth.each():
            for r in self.smooth.load(replica)[1].rows:
                yield r, replica.dofs(self._now), replica.dofs(self._target)

    def _residual_force(self, replica: Replica, smooth: Any) -> dict[int, Any]:
        """f - M a of one tree, summed body by body."""
        now = replica.dofs(self._now)
        motions = body_motions(replica, smooth.poses, now)
        needed = {
            node: add(smooth.forces[node], rigid_times(smooth.inertias[node], motions[node])) for node in replica.nodes
        }
        bias = bias_forces(replica, smooth.poses, needed)
        return {d: f - bias[d] - smooth.armature[d] * now[d] for d, f in smooth.joint_forces().items()}


def looped_motion_table(contacts: Contacts, smooth: LoopedSmooth, values: Any) -> Any:
    """`Contacts.motion_table` of J times values (an array by dof)."""
    table = contacts.empty_motion_table()
    for replica, motions in smooth.motions(values):
        for node, bodies in zip(replica.nodes, replica.group.nodes, strict=True):
            store(table, replica.pick(contacts.places(bodies)), motions[node])
    return table


def _places(smooth: LoopedSmooth) -> set[tuple[int, int]]:
    """The entries (i, j), j <= i, of M + J'DJ that are not zero by structure, contacts apart."""
    places = set()
    for group, rows, M in smooth.templates():
        entries = set(M) | {place for row in rows.rows for place, _ in row.products()}
        first = group.first_dofs(smooth.tree.model)
        places |= {(i + dof - first[0], j + dof - first[0]) for dof in first for i, j in entries}
    return places
