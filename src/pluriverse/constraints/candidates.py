"""Pairs of geoms that may touch, as the narrow phase wants them: one at a time, or many alike in one traced loop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pluriverse.collision.hulls import Hulls
from pluriverse.collision.placed import Placed
from pluriverse.collision_pairs import CAPSULE, MESH, SPHERE, ContactPair, contact_pairs, is_written
from pluriverse.dynamics.kinematics import Pose
from pluriverse.dynamics.spatial import Vector, add, matmul, matvec, sub
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

    def __init__(self, tree: Tree, c: Candidate, number: int, poses: dict[Node, Pose]) -> None:
        self.candidate, self.number, self.poses, self.margin = c, number, poses, c.pairs[0].margin
        self.geom1, self.geom2 = (self._placed(tree, side) for side in (0, 1))

    def other_point(self, position: Vector) -> Vector:
        """The contact's position from the other body's reference point."""
        return add(position, between(self.poses, self.candidate.other, self.candidate.node))

    def _placed(self, tree: Tree, side: int) -> Placed:
        c, model = self.candidate, tree.model
        geoms = tuple((p.geom1, p.geom2)[side] for p in c.pairs)
        node = ((c.other, c.node), (c.node, None))[c.flipped][side]
        if node is None:
            place, rotation = tree.fixed_geom(geoms[0])
            position = sub(place, self.poses[c.node].world)
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
            hull=Hulls.of(tree.run, model, geoms[:1]).view(0) if model.geom_type[geoms[0]] == MESH else None,
        )


def loop_groups(tree: Tree, pairs: list[Candidate]) -> tuple[list[list[int]], list[int]]:
    """The pairs of spheres and capsules of moving bodies, by kind, and the remaining pairs; as places in the list."""
    groups: dict[Any, list[int]] = {}
    for number, c in enumerate(pairs):
        types = tuple(int(tree.model.geom_type[g]) for g in (c.pairs[0].geom1, c.pairs[0].geom2))
        if c.other is not None and set(types) <= {SPHERE, CAPSULE}:
            groups.setdefault((types, c.pairs[0].margin), []).append(number)
    looped = [group for group in groups.values() if len(group) >= LOOP_FROM]
    taken = {number for group in looped for number in group}
    return looped, [number for number in range(len(pairs)) if number not in taken]


class PairLoops:
    """Where geoms and bodies are, in arrays, so that one traced text serves all pairs of a kind."""

    def __init__(self, tree: Tree, nodes: list[Node], pairs: list[Candidate], poses: dict[Node, Pose]) -> None:
        run, self.tree, self.nodes, self.pairs = tree.run, tree, nodes, pairs
        geoms = sorted({g for c in pairs if c.other for g in (c.pairs[0].geom1, c.pairs[0].geom2)})
        self.slot = {g: i for i, g in enumerate(geoms)}
        self.centres, self.axes = run.array(3 * len(geoms), scratch=True), run.array(3 * len(geoms), scratch=True)
        for i, g in enumerate(geoms):
            local, frame = tree.geom_frame((g,))
            pose = poses[tree.node(int(tree.model.body_weldid[tree.model.geom_bodyid[g]]))]
            store(self.centres, i, pose.point(local))
            store(self.axes, i, matvec(pose.rotation, [frame[2], frame[5], frame[8]]))
        self.one_base = all(poses[n].base is poses[nodes[0]].base for n in nodes)
        self.reaches, self.bases = run.array(3 * len(nodes), scratch=True), run.array(3 * len(nodes), scratch=True)
        for i, node in enumerate(nodes):
            store(self.reaches, i, poses[node].reach)
            if not self.one_base:
                store(self.bases, i, poses[node].base)

    def each(self, group: list[int]) -> Iterator[LoopPair]:
        """A traced loop over a group's pairs."""
        run, model = self.tree.run, self.tree.model
        members = [self.pairs[number] for number in group]
        columns: dict[str, list[Any]] = {
            "number": list(group),
            "node": [self.nodes.index(c.node) for c in members],
            "other": [self.nodes.index(c.other) for c in members if c.other],
        }
        for geom in ("geom1", "geom2"):
            ids = [getattr(c.pairs[0], geom) for c in members]
            columns |= {f"{geom} slot": [self.slot[g] for g in ids]}
            columns |= {f"{geom} size{k}": model.geom_size[ids, k].tolist() for k in (0, 1)}
            columns |= {f"{geom} rbound": model.geom_rbound[ids].tolist()}
        tables = {name: run.table(values) for name, values in columns.items()}
        for i in run.range(len(group)):
            yield LoopPair(self, members[0], {name: table[i] for name, table in tables.items()})

    def between(self, start: Any, end: Any) -> Vector:
        """The vector from one body's reference point to another's."""
        reach = sub(load(self.reaches, end, 3), load(self.reaches, start, 3))
        return reach if self.one_base else add(sub(load(self.bases, end, 3), load(self.bases, start, 3)), reach)


class LoopPair:
    """The pair that a traced loop is at."""

    def __init__(self, loops: PairLoops, first: Candidate, values: dict[str, Any]) -> None:
        self.candidate, self.number, self.margin = first, values["number"], first.pairs[0].margin
        self._apart = loops.between(values["node"], values["other"])

        def placed(geom: str, offset: Vector) -> Placed:
            slot = values[f"{geom} slot"]
            x, y, z = load(loops.axes, slot, 3)
            return Placed(
                type=int(loops.tree.model.geom_type[getattr(first.pairs[0], geom)]),
                position=add(load(loops.centres, slot, 3), offset),
                rotation=[0.0, 0.0, x, 0.0, 0.0, y, 0.0, 0.0, z],  # of round shapes, the axis is all that is asked for
                size=[values[f"{geom} size0"], values[f"{geom} size1"], 0.0],
                rbound=values[f"{geom} rbound"],
            )

        self.geom1, self.geom2 = placed("geom1", self._apart), placed("geom2", [0.0, 0.0, 0.0])

    def other_point(self, position: Vector) -> Vector:
        """The contact's position from the other body's reference point."""
        return sub(position, self._apart)


def store(array: Any, i: int, values: Vector) -> None:
    """Puts a vector into the i-th place of an array of vectors."""
    for k, x in enumerate(values):
        array[len(values) * i + k] = x


def load(array: Any, i: Any, width: int) -> Vector:
    """The i-th vector of an array of vectors."""
    return [array[i * width + k] for k in range(width)]
