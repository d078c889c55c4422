"""The solver's problem with everything but the contacts written out: accelerations are variables by dof."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pluriverse.dynamics.inertia import kinetic_energy_twice
from pluriverse.dynamics.kinematics import Pose, body_motions
from pluriverse.dynamics.spatial import Vector, dot
from pluriverse.dynamics.tree import Node, Tree
from pluriverse.trace.functions import absolute, select

from .contacts import Contacts
from .newton import Consider
from .rows import JointRows

Solve = Callable[[dict[int, Any]], tuple[dict[int, Any], dict[Node, Vector]]]


@dataclass(eq=False)
class TreeProblem:
    """A `newton.Problem`. solve: from the active set at an acceleration to a* and the body motions it makes."""

    tree: Tree
    poses: dict[Node, Pose]
    inertias: dict[Node, Vector]
    diagonal: dict[int, Any]  # what is added to the mass matrix's diagonal: armature
    joint_rows: JointRows
    contacts: Contacts
    long_step: float | None
    find_target: Solve
    qacc: dict[int, Any]  # variables by dof
    _now: dict[int, Any] = field(default_factory=dict)
    _target: dict[int, Any] = field(default_factory=dict)
    _motions: dict[Node, Vector] = field(default_factory=dict)

    @property
    def run(self) -> Any:
        return self.tree.run

    @property
    def one_sided(self) -> int:
        return sum(not r.two_sided for r in self.joint_rows.rows)

    def solve(self) -> None:
        self._now = {d: variable.value for d, variable in self.qacc.items()}
        self._target, self._motions = self.find_target(self._now)

    def target_motions(self) -> Any:
        return self.contacts.motion_table(self._motions)

    def rows_change(self) -> Any:
        changed: Any = False
        for r in self.joint_rows.rows:
            if not r.two_sided:
                changed = changed | (r.residual(self._now) * r.residual(self._target) * absolute(r.weight) < 0.0)
        return changed

    def step_and_size(self) -> tuple[Any, Any]:
        step, size = 0.0, 0.0
        for d, a in self._now.items():
            step, size = step + absolute(self._target[d] - a), size + absolute(self._target[d])
        return step, size

    def consider_rows(self, consider: Consider) -> Any:
        total: Any = 0.0
        v = self._way()
        for r in self.joint_rows.rows:
            share = 1.0 / self.run.lanes if r.shared else 1.0
            if r.two_sided:
                j = dot(r.coefficients, [v[d] for d in r.dofs])
                total = total + r.weight * share * (j * j)
            else:
                consider(r.residual(self._now), r.residual(self._target), r.weight, share)
        return total

    def energy(self) -> Any:
        v = self._way()
        motions = body_motions(self.tree, self.poses, [v.get(d) for d in range(self.tree.model.nv)])
        return kinetic_energy_twice(self.tree, self.inertias, motions, v, self.diagonal)

    def advance(self, t: Any) -> None:
        for d, variable in self.qacc.items():
            now, target = self._now[d], self._target[d]
            variable.value = select((t < 1.0) | (t > 1.0), now + t * (target - now), target)

    def _way(self) -> dict[int, Any]:
        return {d: self._target[d] - a for d, a in self._now.items()}
