"""Many pairs of geoms of one kind in one traced loop: where geoms and bodies are stands in arrays.

The pairs of a kind are a table of runs: one geom against others that follow each other. All boxes against all boxes
are as many runs as boxes. Where pairs are many or costly, a first loop lists those whose bounding spheres touch, so
that the costly text runs for these only, and on a GPU in all threads together. It lists CHUNK pairs at most, then the
listed ones are computed, and it goes on: the list cannot overflow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pluriverse.collision.bounds import boxes_touch, have_boxes
from pluriverse.collision.height_fields import HeightFields
from pluriverse.collision.hulls import Hulls
from pluriverse.collision.narrow_phase import is_guarded
from pluriverse.collision.placed import Placed
from pluriverse.collision_pairs import BOX, CAPSULE, HFIELD, MESH, PLANE, SPHERE
from pluriverse.dynamics.kinematics import Pose
from pluriverse.dynamics.spatial import Vector, add, column, dot, matmul, scale, sub
from pluriverse.dynamics.tree import Node, Tree
from pluriverse.trace.functions import absolute

from .candidates import Candidate, load, store

# Alike pairs that share a loop: of spheres and capsules, of others, and of moving geoms with fixed ones, whose
# written-out code is short.
ROUND_FROM, SOLID_FROM, FIXED_FROM = 4, 2, 16
LISTED_FROM = {
    True: 8,
    False: 64,
}  # pairs of a loop from which those that are near are listed, by whether they are costly
CHUNK = 512  # the most pairs that are listed at once
WIDER = 1.0001  # by how much bounding spheres are widened against rounding,
ROUNDINGS = 16.0  # and by how many roundings of the place in the world


@dataclass(frozen=True)
class Run:
    """Pairs of one geom with others that follow each other. Geoms are told by their slots."""

    first: int  # of the geom
    start: int  # of the first other geom
    stop: int
    number: int  # of the pair with the first other geom, less `start`
    margin: float  # [m]
    flipped: int  # 1: the other geoms cannot move (`Candidate.flipped`), else 0


def loop_groups(tree: Tree, pairs: list[Candidate], everything: bool) -> tuple[list[list[int]], list[int]]:
    """The pairs that share loops, by kind, and the remaining ones; as places in the list. everything: no pair is
    left."""
    groups: dict[Any, list[int]] = {}
    for number, c in enumerate(pairs):
        groups.setdefault(_types(tree, c), []).append(number)

    def fewest(types: tuple[int, int], group: list[int]) -> int:
        if all(pairs[number].other is None for number in group):
            return FIXED_FROM
        return ROUND_FROM if set(types) <= {SPHERE, CAPSULE} else SOLID_FROM

    looped = [
        group
        for types, group in groups.items()
        if everything or (tree.run.lanes == 1 and len(group) >= fewest(types, group))
    ]
    taken = {number for group in looped for number in group}
    return looped, [number for number in range(len(pairs)) if number not in taken]


class PairLoops:
    """Where the geoms and bodies of some pairs are, and loops over the pairs.

    Of each geom: its centre from its body's reference point (of a fixed one: in the world), its z-axis, its rotation
    where that is asked for, and its bounding sphere in the world where pairs are listed. Of each body: its reference
    point, as `Pose.base` and `Pose.reach`.
    """

    def __init__(self, tree: Tree, nodes: list[Node], pairs: list[Candidate], groups: list[list[int]]) -> None:
        """nodes: the bodies by place (`Contacts.nodes`); groups: places of the pairs in the list."""
        run, model = tree.run, tree.model
        self.tree, self.run, self.nodes, self.pairs = tree, run, nodes, pairs
        self._looped = [pairs[number] for group in groups for number in group]
        types = model.geom_type
        by_type = {g: int(types[g]) for c in self._looped for g in (c.pairs[0].geom1, c.pairs[0].geom2)}
        self.geoms = sorted(by_type, key=lambda g: (by_type[g], g))
        turned = {
            g
            for c in self._looped
            for g, other in ((c.pairs[0].geom1, c.pairs[0].geom2), (c.pairs[0].geom2, c.pairs[0].geom1))
            if _is_turned(by_type[g], by_type[other])
        }
        self.hulls = Hulls.of(run, model, self.geoms)
        self.fields = HeightFields.of(run, model, self.geoms)
        self._slot = {g: i for i, g in enumerate(self.geoms)}
        self.solid_slot = {g: i for i, g in enumerate(sorted(turned))}
        self._centres, self._axes = (run.array(3 * (len(self.geoms) + 1), scratch=True) for _ in range(2))
        self._rotations = run.array(9 * (len(turned) + 1), scratch=True) if turned else None
        self._reaches, self._bases = (run.array(3 * (len(nodes) + 2), scratch=True) for _ in range(2))
        self._one_base = False
        most = max((len(group) for group in groups if self._is_listed(group)), default=0)
        self._spheres = run.array(4 * (len(self.geoms) + 1), scratch=True) if most else None
        self._radii = Column(run, [*(WIDER * r for r in model.geom_rbound[self.geoms].tolist()), 0.0])
        fields = {"run": "int", "slot": "int", "touches": "float"}
        self._near, self._close = (run.records(name, fields, min(most, CHUNK)) for name in ("near", "close"))
        store(self._reaches, len(nodes), [0.0] * 3)
        store(self._bases, len(nodes), [0.0] * 3)
        for g in self.geoms:
            if self.node_of(g) is None:
                place, rotation = tree.fixed_geom(g)
                self._store_geom(self._slot[g], self.solid_slot.get(g), place, rotation, place)

    def place_all(self, poses: dict[Node, Pose]) -> None:
        """Stores where all bodies and their geoms are."""
        moving = [n for n in self.tree.nodes if any(g in self._slot for geoms in n.geoms for g in geoms)]
        fixed = any(c.other is None for c in self._looped)
        self._one_base = not fixed and all(poses[n].base is poses[moving[0]].base for n in moving)
        for i, node in enumerate(self.nodes):
            self.place_body(i, poses[node])
        for node in moving:
            for geoms in node.geoms:
                if geoms[0] in self._slot:
                    local, frame = self.tree.geom_frame(geoms)
                    self.place_geom(self._slot[geoms[0]], self.solid_slot.get(geoms[0]), poses[node], local, frame)

    def place_body(self, place: Any, pose: Pose) -> None:
        """Stores where a body is; place: its place in `nodes`."""
        store(self._reaches, place, pose.reach)
        if not self._one_base:
            store(self._bases, place, pose.base)

    def place_geom(self, slot: Any, solid_slot: Any, pose: Pose, local: Vector, frame: Vector) -> None:
        """Stores where a geom of a moving body is. local, frame: its place and rotation in the body's frame."""
        centre = pose.point(local)
        there = add(pose.reach, centre) if self._one_base else add(pose.base, add(pose.reach, centre))
        self._store_geom(slot, solid_slot, centre, matmul(pose.rotation, frame), there)

    def slots(self, geoms: tuple[int, ...]) -> tuple[list[int], list[int] | None]:
        """The slots of alike geoms, and those of their rotations; None if these are not asked for. A geom of no pair
        gets a slot that nobody reads."""
        solid = [self.solid_slot.get(g, len(self.solid_slot)) for g in geoms]
        return (
            [self._slot.get(g, len(self._slot)) for g in geoms],
            solid if any(g in self.solid_slot for g in geoms) else None,
        )

    def _store_geom(self, slot: Any, solid_slot: Any, centre: Vector, rotation: Vector, there: Vector) -> None:
        store(self._centres, slot, centre)
        store(self._axes, slot, column(rotation, 2))
        if solid_slot is not None:
            store(self._rotations, solid_slot, rotation)
        if self._spheres is not None:
            rounding = ROUNDINGS * self.run.rounding * (absolute(there[0]) + absolute(there[1]) + absolute(there[2]))
            store(self._spheres, slot, [*there, self._radii[slot] + rounding])

    # ---- loops -------------------------------------------------------------------------------------------------------

    def each(self, group: list[int]) -> Iterator[LoopPair]:
        """A traced loop over a group's pairs, or over those of them that are near."""
        run, runs = self.run, self._runs(group)
        kind = _Kind(self, _types(self.tree, self.pairs[group[0]]), runs)
        if not self._is_listed(group):
            for r in self._range(len(runs)):
                for slot in (kind.start[r],) if kind.single else run.range(kind.start[r], kind.stop[r]):
                    yield LoopPair(self, kind, r, slot)
            return
        bounds = _chunks(runs)
        chunk_start, chunk_stop = run.table(bounds[:-1]), run.table(bounds[1:])
        for chunk in self._range(len(bounds) - 1):
            self._near.clear()
            for r in run.range(chunk_start[chunk], chunk_stop[chunk]):
                self._list_near(kind, r)
            listed = self._list_close(kind) if kind.is_boxed else self._near
            for k in run.each(listed):
                for _ in run.when(listed.touches[k] > 0.5):
                    yield LoopPair(self, kind, listed.run[k], listed.slot[k])

    def _list_near(self, kind: _Kind, r: Any) -> None:
        """Lists the pairs of a run whose bounding spheres touch, or a plane and one."""
        run, first = self.run, kind.first[r]
        *centre, radius = load(self._spheres, first, 4)
        radius = radius + kind.margin[r]
        axis = load(self._axes, first, 3) if kind.types[0] == PLANE else None
        for slot in run.range(kind.start[r], kind.stop[r]):
            *other, other_radius = load(self._spheres, slot, 4)
            apart, reach = sub(other, centre), radius + other_radius
            touch = dot(axis, apart) < reach if axis else dot(apart, apart) < reach * reach
            for _ in run.when(touch):
                self._near.append(run=r, slot=slot, touches=1.0)

    def _list_close(self, kind: _Kind) -> Any:
        """Lists those of the near pairs whose bounding boxes touch."""
        near, close = self._near, self._close
        close.clear()
        for k in self.run.each(near):
            pair = LoopPair(self, kind, near.run[k], near.slot[k])
            for _ in self.run.when((near.touches[k] > 0.5) & boxes_touch(pair.geom1, pair.geom2, pair.margin)):
                close.append(run=near.run[k], slot=near.slot[k], touches=1.0)
        return close

    def _is_listed(self, group: list[int]) -> bool:
        return len(group) >= LISTED_FROM[is_guarded(*_types(self.tree, self.pairs[group[0]]))]

    def _runs(self, group: list[int]) -> list[Run]:
        """The pairs of a group, CHUNK at most in each run."""
        runs: list[Run] = []
        for number in group:
            c = self.pairs[number]
            first, slot = (self._slot[g] for g in (c.pairs[0].geom1, c.pairs[0].geom2))
            new = Run(first, slot, slot + 1, number - slot, c.pairs[0].margin, int(c.flipped))
            last = runs[-1] if runs else None
            follows = last is not None and new == replace(last, start=slot, stop=slot + 1) and slot == last.stop
            if last is not None and follows and slot - last.start < CHUNK:
                runs[-1] = replace(last, stop=slot + 1)
            else:
                runs.append(new)
        return runs

    def _range(self, count: int) -> Any:
        return self.run.range(count) if count > 1 else (0,)

    def node_of(self, geom: int) -> Node | None:
        """The body that a geom moves with; None if it does not move."""
        body = int(self.tree.model.body_weldid[self.tree.model.geom_bodyid[geom]])
        return None if body in self.tree.fixed else self.tree.node(body)

    def placed(self, kind: int, shape: _Shape, slot: Any, offset: Vector) -> Placed:
        """The geom in a slot. offset: from the pair's reference point to that of the geom's body."""
        if shape.solid is None:
            x, y, z = load(self._axes, slot, 3)
            rotation = [0.0, 0.0, x, 0.0, 0.0, y, 0.0, 0.0, z]
        else:
            rotation = load(self._rotations, shape.solid[slot], 9)
        return Placed(
            type=kind,
            position=add(load(self._centres, slot, 3), offset),
            rotation=rotation,
            size=[size[slot] for size in shape.sizes],
            rbound=shape.rbound[slot],
            hull=self.hulls.view(shape.hull[slot]) if kind == MESH else None,
            field=self.fields.view(shape.field[slot]) if kind == HFIELD else None,
        )

    def between(self, start: Any, end: Any) -> Vector:
        """The vector from one body's reference point to another's (or to the world's origin)."""
        reach = sub(load(self._reaches, end, 3), load(self._reaches, start, 3))
        return reach if self._one_base else add(sub(load(self._bases, end, 3), load(self._bases, start, 3)), reach)


class Column:
    """Constants by a traced int; a plain number where all are equal."""

    def __init__(self, run: Any, values: Sequence[float]) -> None:
        self._one = values[0]
        self._table = None if all(x == values[0] for x in values) else run.table(list(values))

    def __getitem__(self, place: Any) -> Any:
        return self._one if self._table is None else self._table[place]


class _Shape:
    """The constants of those geoms that stand on one side of a group's pairs, by slot."""

    def __init__(self, loops: PairLoops, slots: set[int], turned: bool) -> None:
        model, some = loops.tree.model, min(slots)
        geoms = [loops.geoms[slot if slot in slots else some] for slot in range(len(loops.geoms))]
        order = {node: i for i, node in enumerate(loops.nodes)}

        def column(values: Any) -> Column:
            return Column(loops.run, list(values))

        self.sizes = [column(model.geom_size[geoms, k].tolist()) for k in range(3)]
        self.rbound = column(model.geom_rbound[geoms].tolist())
        self.hull = column(loops.hulls.number(g) for g in geoms)
        self.field = column(loops.fields.number(g) for g in geoms)
        self.body = column(len(order) if node is None else order[node] for node in map(loops.node_of, geoms))
        self.solid = column(loops.solid_slot[g] for g in geoms) if turned else None


class _Kind:
    """The tables of a group's pairs: by run, and of the geoms on both sides."""

    def __init__(self, loops: PairLoops, types: tuple[int, int], runs: list[Run]) -> None:
        run, self.types = loops.run, types
        self.first, self.start, self.stop, self.number = (
            run.table([getattr(r, name) for r in runs]) for name in ("first", "start", "stop", "number")
        )
        self.margin = Column(run, [r.margin for r in runs])
        self.flipped, self.turns = (Column(run, [kind(r.flipped) for r in runs]) for kind in (int, float))
        self.single = all(r.stop - r.start == 1 for r in runs)
        firsts = {r.first for r in runs}
        others = {slot for r in runs for slot in range(r.start, r.stop)}
        self.shapes = [
            _Shape(loops, slots, _is_turned(*sides)) for slots, sides in ((firsts, types), (others, types[::-1]))
        ]
        turned = all(shape.solid is not None for shape in self.shapes)  # else only an axis is known of one
        self.is_boxed = turned and is_guarded(*types) and have_boxes(*types)


class LoopPair:
    """The pair that a traced loop is at: the geom in slot `slot` against the first one of run `r`."""

    def __init__(self, loops: PairLoops, kind: _Kind, r: Any, slot: Any) -> None:
        first, (shape1, shape2) = kind.first[r], kind.shapes
        self.number, self.margin = kind.number[r] + slot, kind.margin[r]
        body1, body2, flipped, share = shape1.body[first], shape2.body[slot], kind.flipped[r], kind.turns[r]
        self.node = body2 + flipped * (body1 - body2)  # the place of the body that the contacts are given about
        self._apart = loops.between(self.node, body1 + flipped * (body2 - body1))
        self._side = 1.0 - 2.0 * share
        self.geom1 = loops.placed(kind.types[0], shape1, first, scale(self._apart, 1.0 - share))
        self.geom2 = loops.placed(kind.types[1], shape2, slot, scale(self._apart, share))

    def outward(self, normal: Vector) -> Vector:
        """The direction in which contacts push the body `node`, from that of geom1 to geom2."""
        return scale(normal, self._side)

    def other_point(self, position: Vector) -> Vector:
        """The contact's position from the other body's reference point, or in the world."""
        return sub(position, self._apart)


def _chunks(runs: list[Run]) -> list[int]:
    """Where runs begin that together are CHUNK pairs at most, and the end of the last."""
    bounds, count = [0], 0
    for i, r in enumerate(runs):
        count += r.stop - r.start
        if count > CHUNK:
            bounds.append(i)
            count = r.stop - r.start
    return [*bounds, len(runs)]


def _types(tree: Tree, c: Candidate) -> tuple[int, int]:
    type1, type2 = (int(tree.model.geom_type[g]) for g in (c.pairs[0].geom1, c.pairs[0].geom2))
    return type1, type2


def _is_turned(kind: int, other: int) -> bool:
    """Whether the contacts of a geom with one of another type ask for more of its rotation than the z-axis."""
    return kind != PLANE and not (kind in (SPHERE, CAPSULE) and other in (PLANE, SPHERE, CAPSULE, BOX))
