"""Pairs of geoms that may touch, and a pair as the narrow phase wants it, its code written out for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pluriverse.collision.height_fields import HeightFields
from pluriverse.collision.hulls import Hulls
from pluriverse.collision.placed import Placed
from pluriverse.collision_pairs import HFIELD, MESH, ContactPair, contact_pairs
from pluriverse.dynamics.kinematics import Pose
from pluriverse.dynamics.spatial import ZERO3, Vector, add, matmul, negate, sub
from pluriverse.dynamics.tree import Node, Tree
from pluriverse.model import Model


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
    touching = contact_pairs(model)
    by_geoms = {(p.geom1, p.geom2): p for p in touching}
    found = []
    for pair in touching:
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
    return sorted(found, key=lambda c: _kind_and_geoms(model, c)) if tree.run.lanes == 1 else found


def _kind_and_geoms(model: Model, c: Candidate) -> tuple[int, int, int, int]:
    """Pairs of one kind stand together, ordered by their geoms, so that loops find runs of them (`pair_loops`)."""
    geom1, geom2 = c.pairs[0].geom1, c.pairs[0].geom2
    return int(model.geom_type[geom1]), int(model.geom_type[geom2]), geom1, geom2


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
        self.node = c.node
        self.geom1, self.geom2 = (self._placed(tree, side) for side in (0, 1))

    def outward(self, normal: Vector) -> Vector:
        """The direction in which contacts push the body `node`, from that of geom1 to geom2."""
        return negate(normal) if self.candidate.flipped else normal

    def other_point(self, position: Vector) -> Vector:
        """The contact's position from the other body's reference point; 0 where there is none."""
        if self.candidate.other is None:
            return list(ZERO3)
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
            field=HeightFields.of(tree.run, model, geoms[:1]).view(0) if model.geom_type[geoms[0]] == HFIELD else None,
        )


def store(array: Any, i: int, values: Vector) -> None:
    """Puts a vector into the i-th place of an array of vectors."""
    for k, x in enumerate(values):
        array[len(values) * i + k] = x


def load(array: Any, i: Any, width: int) -> Vector:
    """The i-th vector of an array of vectors."""
    return [array[i * width + k] for k in range(width)]
