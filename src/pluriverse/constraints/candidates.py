"""Pairs of geoms that may touch, as the narrow phase wants them: one at a time, or many alike in one traced loop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pluriverse.collision.placed import Hull, Placed
from pluriverse.collision_pairs import CAPSULE, SPHERE, ContactPair, contact_pairs, is_written
from pluriverse.dynamics.kinematics import Pose
from pluriverse.dynamics.spatial import Vector, add, cross, matmul, matvec, sub
from pluriverse.dynamics.tree import Node, Tree

LOOP_FROM = 4  # pairs alike; fewer are written out


@dataclass(eq=False)
class Candidate:
    """A pair of geoms that may touch, on each lane; the body whose reference point its contacts are given about is
    `node`."""

    pairs: tuple[ContactPair, ...]
    node: Node  # of geom2, or of geom1 where geom2 cannot move
    other: Node | None  # the other moving body
    flipped: bool  # geom2 cannot move: the contact pushes `node` against the normal


def candidates(tree: Tree) -> list[Candidate]:
    """The pairs whose contacts are computed, one for all lanes."""
    model = tree.model
    lane_of = {g: (k, geoms) for node in tree.nodes for geoms in node.geoms for k, g in enumerate(geoms)}
    if tree.run.lanes > 1:  # a trunk geom is on every lane; a limb's geom stands for those of the other lanes
        lane_of = {
            g: (0, geoms) if len(set(geoms)) == 1 else place for g, place in lane_of.items() for geoms in [place[1]]
        }
    written = [p for p in contact_pairs(model) if is_written(model, p)]
    by_geoms = {(p.geom1, p.geom2): p for p in written}
    found = []
    for pair in written:
        moving = [g for g in (pair.geom1, pair.geom2) if g in lane_of]
        if any(lane_of[g][0] != 0 for g in moving):
            continue
        geoms = [lane_of[g][1] if g in lane_of else (g,) * tree.run.lanes for g in (pair.geom1, pair.geom2)]
        pairs = tuple(by_geoms[a, b] for a, b in zip(*geoms, strict=True))
        nodes = [
            tree.node(int(model.body_weldid[model.geom_bodyid[g]])) if g in lane_of else None
            for g in (pair.geom1, pair.geom2)
        ]
        flipped = nodes[1] is None
        node, other = (nodes[0], None) if flipped else (nodes[1], nodes[0])
        assert node is not None
        found.append(Candidate(pairs, node, other, flipped))
    return found


def between(poses: dict[Node, Pose], start: Node | None, end: Node | None) -> Vector:
    """The vector from one body's reference point to another's; exact in float32 for bodies of one tree however far
    away."""
    if start is end or start is None or end is None:
        return [0.0, 0.0, 0.0]
    a, b = poses[start], poses[end]
    return add(sub(b.base, a.base), sub(b.reach, a.reach))


class SinglePair:
    """One pair, its code written out for it."""

    def __init__(
        self, tree: Tree, nodes: list[Node], c: Candidate, poses: dict, velocities: dict, accelerations: dict
    ) -> None:
        model = tree.model
        self.candidate, self.poses, self.motions = c, poses, (velocities, accelerations)
        self.parameters, self.flipped = c.pairs[0], c.flipped
        self.node = nodes.index(c.node)
        self.other = nodes.index(c.other) if c.other else len(nodes)
        self.touched = [n for n in (c.node, c.other) if n is not None]
        self.translation = tree.constants([_translation(model, p) for p in c.pairs])
        sides = range(len(c.pairs[0].friction_geoms))
        rows = [tuple(p.friction_geoms[side] for p in c.pairs) for side in sides]
        self.friction_rows = [r if len(set(r)) > 1 else r[0] for r in rows]
        self.geoms = [self._placed(tree, side) for side in (0, 1)]

    def other_point(self, position: Vector) -> Vector | None:
        """The contact's position from the other body's reference point."""
        c = self.candidate
        return add(position, between(self.poses, c.other, c.node)) if c.other else None

    def relative_motions(self, position: Vector, other_point: Vector | None) -> list[Vector]:
        """Velocity, and acceleration at the start, of the body's point against the other body's."""
        c = self.candidate
        found = []
        for motions in self.motions:
            motion = _at(motions[c.node], position)
            found.append(sub(motion, _at(motions[c.other], other_point)) if c.other and other_point else motion)
        return found

    def _placed(self, tree: Tree, side: int) -> Placed:
        c, model = self.candidate, tree.model
        geoms = tuple((p.geom1, p.geom2)[side] for p in c.pairs)
        node = ((c.other, c.node), (c.node, None))[c.flipped][side]
        if node is None:
            place, axes = tree.static_geoms[geoms[0]]
            position, rotation = sub(tree.constants([place]), self.poses[c.node].world), tree.constants([axes])
        else:
            local, frame = tree.geom_frame(geoms)
            position = add(between(self.poses, c.node, node), self.poses[node].point(local))
            rotation = matmul(self.poses[node].rotation, frame)
        return Placed(
            type=int(model.geom_type[geoms[0]]),
            position=position,
            rotation=rotation,
            size=[tree.constants([model.geom_size[g, k] for g in geoms]) for k in range(3)],
            rbound=tree.constant(model.geom_rbound, geoms),
            hull=Hull.from_model(model, geoms[0]) if model.geom_dataid[geoms[0]] >= 0 else None,
        )


def loop_groups(tree: Tree, pairs: list[Candidate]) -> tuple[list[list[Candidate]], list[Candidate]]:
    """The pairs of spheres and capsules of moving bodies that differ in numbers only, by kind; and the remaining
    pairs."""
    groups: dict[Any, list[Candidate]] = {}
    for c in pairs:
        p = c.pairs[0]
        types = tuple(int(tree.model.geom_type[g]) for g in (p.geom1, p.geom2))
        if c.other is not None and set(types) <= {SPHERE, CAPSULE} and p.friction is None:
            alike = (types, p.condim, p.margin, p.solref, p.solimp, len(p.friction_geoms))
            groups.setdefault(alike, []).append(c)
    looped = [group for group in groups.values() if len(group) >= LOOP_FROM]
    taken = {c for group in looped for c in group}
    return looped, [c for c in pairs if c not in taken]


class LoopTables:
    """Where geoms and bodies are, in arrays, so that one traced text serves all pairs of a kind."""

    def __init__(
        self,
        tree: Tree,
        nodes: list[Node],
        groups: list[list[Candidate]],
        poses: dict,
        velocities: dict,
        accelerations: dict,
    ) -> None:
        run, self.tree, self.nodes = tree.run, tree, nodes
        geoms = sorted({g for group in groups for c in group for g in (c.pairs[0].geom1, c.pairs[0].geom2)})
        self.slot = {g: i for i, g in enumerate(geoms)}
        self.centres, self.axes = run.array(3 * len(geoms), scratch=True), run.array(3 * len(geoms), scratch=True)
        for i, g in enumerate(geoms):
            local, frame = tree.geom_frame((g,))
            pose = poses[tree.node(int(tree.model.body_weldid[tree.model.geom_bodyid[g]]))]
            _store(self.centres, i, pose.point(local))
            _store(self.axes, i, matvec(pose.rotation, [frame[2], frame[5], frame[8]]))
        self.one_base = all(poses[n].base is poses[nodes[0]].base for n in nodes)
        self.reaches, self.bases = run.array(3 * len(nodes), scratch=True), run.array(3 * len(nodes), scratch=True)
        self.motions = [run.array(6 * len(nodes), scratch=True) for _ in range(2)]
        for i, node in enumerate(nodes):
            _store(self.reaches, i, poses[node].reach)
            if not self.one_base:
                _store(self.bases, i, poses[node].base)
            for array, motions in zip(self.motions, (velocities, accelerations), strict=True):
                _store(array, i, motions[node])

    def each(self, group: list[Candidate]) -> Iterator[LoopPair]:
        """A traced loop over a group's pairs."""
        run, model = self.tree.run, self.tree.model
        first = [[self.slot[c.pairs[0].geom1], self.slot[c.pairs[0].geom2]] for c in group]
        columns = {
            "slot1": [s[0] for s in first],
            "slot2": [s[1] for s in first],
            "node": [self.nodes.index(c.node) for c in group],
            "other": [self.nodes.index(c.other) for c in group if c.other],
            "translation": [_translation(model, c.pairs[0]) for c in group],
        }
        for side, geom in enumerate(("geom1", "geom2")):
            ids = [getattr(c.pairs[0], geom) for c in group]
            columns |= {f"radius{side}": [float(model.geom_size[g, 0]) for g in ids]}
            columns |= {f"half{side}": [float(model.geom_size[g, 1]) for g in ids]}
            columns |= {f"bound{side}": [float(model.geom_rbound[g]) for g in ids]}
        for side in range(len(group[0].pairs[0].friction_geoms)):
            columns |= {f"friction{side}": [c.pairs[0].friction_geoms[side] for c in group]}
        tables = {name: run.table(values) for name, values in columns.items()}
        for i in run.range(len(group)):
            yield LoopPair(self, group[0], {name: table[i] for name, table in tables.items()})

    def between(self, start: Any, end: Any) -> Vector:
        """The vector from one body's reference point to another's."""
        reach = sub(_load(self.reaches, end, 3), _load(self.reaches, start, 3))
        return reach if self.one_base else add(sub(_load(self.bases, end, 3), _load(self.bases, start, 3)), reach)


class LoopPair:
    """The pair that a traced loop is at."""

    flipped = False
    touched: tuple[Node, ...] = ()  # coupled bodies are solved in joint coordinates, where nobody asks

    def __init__(self, tables: LoopTables, first: Candidate, values: dict[str, Any]) -> None:
        self.tables, self.parameters = tables, first.pairs[0]
        self.node, self.other, self.translation = values["node"], values["other"], values["translation"]
        self.friction_rows = [values[f"friction{side}"] for side in range(len(self.parameters.friction_geoms))]
        self.apart = tables.between(self.node, self.other)
        self.geoms = []
        for side, slot in enumerate((values["slot1"], values["slot2"])):
            centre, axis = _load(tables.centres, slot, 3), _load(tables.axes, slot, 3)
            self.geoms.append(
                Placed(
                    type=int(tables.tree.model.geom_type[(self.parameters.geom1, self.parameters.geom2)[side]]),
                    position=add(centre, self.apart) if side == 0 else centre,
                    rotation=[
                        0.0,
                        0.0,
                        axis[0],
                        0.0,
                        0.0,
                        axis[1],
                        0.0,
                        0.0,
                        axis[2],
                    ],  # round shapes ask for the axis only
                    size=[values[f"radius{side}"], values[f"half{side}"], 0.0],
                    rbound=values[f"bound{side}"],
                )
            )

    def other_point(self, position: Vector) -> Vector | None:
        return sub(position, self.apart)

    def relative_motions(self, position: Vector, other_point: Vector | None) -> list[Vector]:
        assert other_point is not None
        pairs = [(_load(m, self.node, 6), _load(m, self.other, 6)) for m in self.tables.motions]
        return [sub(_at(own, position), _at(other, other_point)) for own, other in pairs]


def _translation(model: Any, pair: ContactPair) -> float:
    """Approximate inverse inertia of both bodies to a push."""
    return sum(float(model.body_invweight0[model.geom_bodyid[g], 0]) for g in (pair.geom1, pair.geom2))


def _at(motion: Vector, point: Vector) -> Vector:
    """The linear part of a body's motion at a point."""
    return add(motion[3:], cross(motion[:3], point))


def _store(array: Any, i: int, values: Vector) -> None:
    for k, x in enumerate(values):
        array[len(values) * i + k] = x


def _load(array: Any, i: Any, width: int) -> Vector:
    return [array[i * width + k] for k in range(width)]
