"""Many pairs of geoms of one kind in one traced loop: where geoms and bodies are stands in arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pluriverse.collision.hulls import Hulls
from pluriverse.collision.narrow_phase import bounds_touch, is_guarded
from pluriverse.collision.placed import Placed
from pluriverse.collision_pairs import CAPSULE, MESH, PLANE, SPHERE
from pluriverse.dynamics.kinematics import Pose
from pluriverse.dynamics.spatial import Vector, add, column, matmul, sub
from pluriverse.dynamics.tree import Node, Tree

from .candidates import Candidate, load, store

ROUND_FROM, SOLID_FROM, FIXED_FROM = 4, 2, 16  # alike pairs that share a loop: of spheres and capsules, of others, and
# of moving geoms with fixed ones, whose written-out code is short
LISTED_FROM = 8  # costly pairs of a loop: those whose bounds touch are listed first, so that the work runs together
BY_AXIS = (PLANE, SPHERE, CAPSULE)  # shapes of which the z-axis is all that is asked for


def loop_groups(tree: Tree, pairs: list[Candidate], everything: bool) -> tuple[list[list[int]], list[int]]:
    """The pairs that share loops, by kind, and the remaining ones; as places in the list. everything: no pair is
    left."""
    groups: dict[Any, list[int]] = {}
    for number, c in enumerate(pairs):
        types = tuple(int(tree.model.geom_type[g]) for g in (c.pairs[0].geom1, c.pairs[0].geom2))
        groups.setdefault((types, c.other is None, c.flipped), []).append(number)

    def fewest(types: tuple[int, int], fixed: bool) -> int:
        return FIXED_FROM if fixed else ROUND_FROM if set(types) <= {SPHERE, CAPSULE} else SOLID_FROM

    looped = [
        group
        for (types, fixed, _), group in groups.items()
        if everything or (tree.run.lanes == 1 and len(group) >= fewest(types, fixed))
    ]
    taken = {number for group in looped for number in group}
    return looped, [number for number in range(len(pairs)) if number not in taken]


class PairLoops:
    """Where the geoms and bodies of some pairs are, and loops over the pairs.

    Of each geom: its centre from its body's reference point (of a fixed one: in the world), its z-axis, and its
    rotation where that is asked for. Of each body: its reference point, as `Pose.base` and `Pose.reach`.
    """

    def __init__(self, tree: Tree, nodes: list[Node], pairs: list[Candidate], groups: list[list[int]]) -> None:
        """nodes: the bodies by place (`Contacts.nodes`); groups: places of the pairs in the list."""
        run, model = tree.run, tree.model
        self.tree, self.run, self.nodes, self.pairs = tree, run, nodes, pairs
        looped = [pairs[number] for group in groups for number in group]
        self.geoms = sorted({g for c in looped for g in (c.pairs[0].geom1, c.pairs[0].geom2)})
        solid = [g for g in self.geoms if model.geom_type[g] not in BY_AXIS]
        self.hulls = Hulls.of(run, model, self.geoms)
        self._slot = {g: i for i, g in enumerate(self.geoms)}
        self._solid_slot = {g: i for i, g in enumerate(solid)}
        self._centres, self._axes = (run.array(3 * (len(self.geoms) + 1), scratch=True) for _ in range(2))
        self._rotations = run.array(9 * (len(solid) + 1), scratch=True) if solid else None
        self._reaches, self._bases = (run.array(3 * (len(nodes) + 2), scratch=True) for _ in range(2))
        self._one_base = False
        store(self._reaches, len(nodes), [0.0] * 3)
        store(self._bases, len(nodes), [0.0] * 3)
        for g in self.geoms:
            if model.body_treeid[model.geom_bodyid[g]] < 0:
                place, rotation = tree.fixed_geom(g)
                self._store_geom(self._slot[g], self._solid_slot.get(g), place, rotation)

    def place_all(self, poses: dict[Node, Pose]) -> None:
        """Stores where all bodies and their geoms are."""
        moving = [n for n in self.tree.nodes if any(g in self._slot for geoms in n.geoms for g in geoms)]
        fixed = any(c.other is None for c in self.pairs)
        self._one_base = not fixed and all(poses[n].base is poses[moving[0]].base for n in moving)
        for i, node in enumerate(self.nodes):
            self.place_body(i, poses[node])
        for node in moving:
            for geoms in node.geoms:
                if geoms[0] in self._slot:
                    local, frame = self.tree.geom_frame(geoms)
                    self.place_geom(self._slot[geoms[0]], self._solid_slot.get(geoms[0]), poses[node], local, frame)

    def place_body(self, place: Any, pose: Pose) -> None:
        """Stores where a body is; place: its place in `nodes`."""
        store(self._reaches, place, pose.reach)
        if not self._one_base:
            store(self._bases, place, pose.base)

    def place_geom(self, slot: Any, solid_slot: Any, pose: Pose, local: Vector, frame: Vector) -> None:
        """Stores where a geom of a moving body is. local, frame: its place and rotation in the body's frame."""
        rotation = matmul(pose.rotation, frame)
        self._store_geom(slot, solid_slot, pose.point(local), rotation)

    def slots(self, geoms: tuple[int, ...]) -> tuple[list[int], list[int] | None]:
        """The slots of alike geoms, and those of their rotations; None if these are not asked for. A geom of no pair
        gets a slot that nobody reads."""
        solid = [self._solid_slot.get(g, len(self._solid_slot)) for g in geoms]
        return (
            [self._slot.get(g, len(self._slot)) for g in geoms],
            solid if any(g in self._solid_slot for g in geoms) else None,
        )

    def _store_geom(self, slot: Any, solid_slot: Any, centre: Vector, rotation: Vector) -> None:
        store(self._centres, slot, centre)
        store(self._axes, slot, column(rotation, 2))
        if solid_slot is not None:
            store(self._rotations, solid_slot, rotation)

    def each(self, group: list[int]) -> Iterator[LoopPair]:
        """A traced loop over a group's pairs: over all of them, or over those whose bounds touch."""
        run, first = self.run, self.pairs[group[0]]
        tables = {name: run.table(values) for name, values in self._columns(group).items()}

        def pair(i: Any) -> LoopPair:
            return LoopPair(self, first, {name: table[i] for name, table in tables.items()})

        types = tuple(int(self.tree.model.geom_type[g]) for g in (first.pairs[0].geom1, first.pairs[0].geom2))
        if len(group) < LISTED_FROM or not is_guarded(*types):
            for i in run.range(len(group)):
                yield pair(i)
            return
        near = run.records("near", {"pair": "int", "touches": "float"}, len(group))
        for i in run.range(len(group)):
            p = pair(i)
            for _ in run.when(bounds_touch(p.geom1, p.geom2, p.margin)):
                near.append(pair=i, touches=1.0)
        for k in run.each(near):
            for _ in run.when(near.touches[k] > 0.5):
                yield pair(near.pair[k])

    def _columns(self, group: list[int]) -> dict[str, list[Any]]:
        """What differs between a group's pairs."""
        model, members = self.tree.model, [self.pairs[number] for number in group]
        columns: dict[str, list[Any]] = {
            "number": list(group),
            "node": [self.nodes.index(c.node) for c in members],
            "other": [self.nodes.index(c.other) if c.other else len(self.nodes) for c in members],
            "margin": [c.pairs[0].margin for c in members],
        }
        for geom in ("geom1", "geom2"):
            ids = [getattr(c.pairs[0], geom) for c in members]
            columns |= {f"{geom} slot": [self._slot[g] for g in ids]}
            columns |= {f"{geom} solid slot": [self._solid_slot.get(g, 0) for g in ids]}
            columns |= {f"{geom} size{k}": model.geom_size[ids, k].tolist() for k in range(3)}
            columns |= {f"{geom} rbound": model.geom_rbound[ids].tolist()}
            columns |= {f"{geom} hull": [self.hulls.number(g) for g in ids]}
        return columns

    def placed(self, geom: int, values: dict[str, Any], side: str, offset: Vector) -> Placed:
        """A geom of the type of `geom`. offset: from the pair's reference point to that of the geom's body."""
        kind = int(self.tree.model.geom_type[geom])
        slot = values[f"{side} slot"]
        if kind in BY_AXIS:
            x, y, z = load(self._axes, slot, 3)
            rotation = [0.0, 0.0, x, 0.0, 0.0, y, 0.0, 0.0, z]
        else:
            rotation = load(self._rotations, values[f"{side} solid slot"], 9)
        return Placed(
            type=kind,
            position=add(load(self._centres, slot, 3), offset),
            rotation=rotation,
            size=[values[f"{side} size{k}"] for k in range(3)],
            rbound=values[f"{side} rbound"],
            hull=self.hulls.view(values[f"{side} hull"]) if kind == MESH else None,
        )

    def between(self, start: Any, end: Any) -> Vector:
        """The vector from one body's reference point to another's (or to the world's origin)."""
        reach = sub(load(self._reaches, end, 3), load(self._reaches, start, 3))
        return reach if self._one_base else add(sub(load(self._bases, end, 3), load(self._bases, start, 3)), reach)


class LoopPair:
    """The pair that a traced loop is at."""

    def __init__(self, loops: PairLoops, first: Candidate, values: dict[str, Any]) -> None:
        self.candidate, self.number, self.margin = first, values["number"], values["margin"]
        self._apart = loops.between(values["node"], values["other"])
        here, there = [0.0, 0.0, 0.0], self._apart
        offsets = (here, there) if first.flipped else (there, here)
        sides = zip(("geom1", "geom2"), offsets, strict=True)
        self.geom1, self.geom2 = (
            loops.placed(getattr(first.pairs[0], side), values, side, offset) for side, offset in sides
        )

    def other_point(self, position: Vector) -> Vector:
        """The contact's position from the other body's reference point."""
        return sub(position, self._apart)
