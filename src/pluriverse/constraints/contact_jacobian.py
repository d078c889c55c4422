"""How the dofs move the two bodies of a contact against each other: its Jacobian, in loops over the dofs that do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pluriverse.dynamics.inertia import node_dofs
from pluriverse.dynamics.kinematics import Pose
from pluriverse.dynamics.spatial import Vector, add, cross, dot, sub
from pluriverse.dynamics.tree import Node, Tree
from pluriverse.trace.functions import select

from .block_system import BlockSystem
from .candidates import Candidate, store
from .cones import times
from .contacts import Contacts


class ContactJacobian:
    """The dofs that move the two bodies of a contact against each other, and their columns at its point, by loop
    indices."""

    def __init__(self, run: Any, n: int, contacts: Contacts) -> None:
        """n: number of dofs."""
        self.run, self.contacts, self.n = run, contacts, n
        lists: dict[tuple[tuple[int, float], ...], int] = {}  # (dof, side) of a candidate -> where they begin
        entries: list[tuple[int, float]] = []
        bounds = []
        for c in contacts.candidates:
            moving = tuple(moving_dofs(c))
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
        self._reaches = run.array(3 * (len(contacts.nodes) + 2), scratch=True)
        store(self._reaches, len(contacts.nodes), [0.0] * 3)

    def place(self, node: Node, pose: Pose, place: Any, dof_shift: Any = 0) -> None:
        """Stores where a body and the columns of its dofs are. place: the body's, in `Contacts.places`."""
        for d, column in zip(node_dofs(node), pose.columns, strict=True):
            store(self._columns, dof_shift + d, column)
            store(self._places, dof_shift + d, pose.reach)
        store(self._reaches, place, pose.reach)

    def place_all(self, tree: Tree, poses: dict[Node, Pose]) -> None:
        """Stores where all bodies are."""
        for node in tree.nodes:
            self.place(node, poses[node], self.contacts.places(node.bodies[:1])[0])

    def couple(self, system: BlockSystem) -> None:
        """Couples the blocks of dofs that contacts move against each other."""
        run, records = self.run, self.contacts.records
        lists: dict[tuple[int, ...], int] = {}  # the blocks of a candidate, ascending -> where they begin
        entries: list[int] = []
        bounds = []
        for c in self.contacts.candidates:
            blocks = tuple(sorted({system.block_of[dof] for dof, _ in moving_dofs(c)}))
            if blocks not in lists:
                lists[blocks] = len(entries)
                entries += blocks
            bounds.append((lists[blocks], lists[blocks] + len(blocks)))
        block, first, stop = run.table(entries), run.table([a for a, _ in bounds]), run.table([b for _, b in bounds])
        for k in run.each(records):
            pair = records.pair[k]
            for a in run.range(first[pair], stop[pair]):
                for b in run.range(first[pair], a):
                    system.couple(block[a], block[b])

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

    def add_curvature(self, k: Any, goal: Vector, total: Any, push: Any) -> None:
        """Adds J' W J of contact k to a dense matrix (lower half), and J' W goal to a vector."""
        run, n, contacts = self.run, self.n, self.contacts
        width, W = contacts.width, contacts.cone(k).curvature(contacts.parts("now", k))
        force = times(W, goal)
        J = run.array(width * self.longest, scratch=True)
        first, stop = self.dofs_of(k)
        column_at = self.columns_at(k)
        for a in run.range(first, stop):
            for m, x in enumerate(column_at(a)):
                J[(a - first) * width + m] = x
        for a in run.range(stop - first):
            x, i = [J[a * width + m] for m in range(width)], self.dof[first + a]
            push[i] = push[i] + dot(x, force)
            left = times(W, x)
            for b in run.range(a + 1, unroll=4):
                place = i * n + self.dof[first + b]
                total[place] = total[place] + dot(left, [J[b * width + m] for m in range(width)])


def moving_dofs(c: Candidate) -> list[tuple[int, float]]:
    """The dofs that move a candidate's bodies against each other, ascending: 1 with those of `node`, -1 with those of
    `other`. A dof that carries both moves neither against the other."""
    sides: dict[int, float] = {}
    for node, side in ((c.node, 1.0), (c.other, -1.0)):
        while node is not None:
            for dof in node_dofs(node):
                sides[dof] = sides.get(dof, 0.0) + side
            node = node.parent
    return sorted((dof, side) for dof, side in sides.items() if side)


def contact_places(contacts: Contacts) -> set[tuple[int, int]]:
    """Entries of the lower triangle that a contact can fill."""
    chains = [[dof for dof, _ in moving_dofs(c)] for c in contacts.candidates]
    return {(i, j) for dofs in chains for i in dofs for j in dofs if j <= i}
