"""Contacts as records: where they are, which way they push, and what their cone of rows asks for.

All contacts of a model have the same number of parts in their frame (`width`), as many as the contact of the most
friction needs; what a contact lacks has friction 0. A frictionless contact is a pyramid with mu = 0 whose rows share
its weight.

The narrow phase leaves a record of where two geoms touch; one loop over the records then makes rows of them. So the
code of the rows exists once, however many pairs there are, and environments in contact at different places run it
together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pluriverse.collision.narrow_phase import collide
from pluriverse.collision_pairs import PLANE, ContactPair
from pluriverse.dynamics.kinematics import Pose
from pluriverse.dynamics.spatial import Vector, add, cross, dot, negate, scale, sub
from pluriverse.dynamics.tree import Node, Tree
from pluriverse.trace.expression import Expr
from pluriverse.trace.functions import absolute, maximum, rsqrt, select

from .candidates import Candidate, SinglePair, load, store
from .capacity import places_for, report_lost
from .cones import Cone, Ellipse, Pyramid
from .impedance import MINVAL, impedance, stiffness_and_damping, weight
from .pair_loops import LoopPair, PairLoops, loop_groups

MIN_FRICTION = 1e-5  # mjMINMU
MIN_TANGENT = 1e-30  # squared length


Table = Callable[[], Any]
Frame = tuple[Vector, Vector, Vector]


class Contacts:
    """The list of contacts of one step. Vectors are in world axes, points from a body's reference point."""

    def __init__(
        self, tree: Tree, pairs: list[Candidate], elliptic: bool = False, max_contacts: int | None = None
    ) -> None:
        """max_contacts: of an environment; None: by a rule (`capacity.places_for`)."""
        self.tree, self.run, self.candidates, self.elliptic = tree, tree.run, pairs, elliptic
        condims = {p.condim for c in pairs for p in c.pairs}
        self.width = max(condims, default=3) if max(condims, default=3) > 3 else 3
        self.mixed = self.width > 3 and len(condims) > 1 and not elliptic
        self.nodes = list(dict.fromkeys(n for c in pairs for n in (c.node, c.other) if n is not None))
        self.trunks = [node.trunk for node in self.nodes]
        self.coupled = any(c.other is not None for c in pairs)
        self.normal: Vector | None = [0.0, 0.0, 1.0] if all(_is_upright(tree, c) for c in pairs) else None
        self.anisotropic = any(
            p.friction is not None and p.friction[0] != p.friction[1] for c in pairs for p in c.pairs
        )
        self.capacity, bounded = places_for(tree.model, pairs, max_contacts, tree.run.together)
        if self.capacity:
            self._declare(bounded)

    def _declare(self, bounded: bool) -> None:
        run = self.run
        vectors = ["point", "reference", "now", "target"] + ["other_point"] * self.coupled
        vectors += ["tangent"] if self.normal else ["normal", "tangent"]
        names = [f"{v}{i}" for v in vectors for i in range(2 if v == "tangent" and self.normal else 3)]
        turning = [f"{v}{i}" for v in ("reference", "now", "target") for i in range(3, self.width)]
        names += ["distance", "weight", *self.friction_fields, *turning]
        names += [f"weight{i}" for i in range(self.width - 1)] * self.mixed + ["mu"] * self.elliptic
        fields = dict.fromkeys(names, "float") | {"pair": "int"}
        self.records: Any = run.records("contacts", fields, self.capacity, bounded=bounded)
        self.touched = {node: run.variable(False) for node in self.nodes}
        self._touched_in_loops: Any = None  # array of the same
        self._nodes = run.table([self.nodes.index(c.node) for c in self.candidates])
        self._others = run.table([self.nodes.index(c.other) if c.other else len(self.nodes) for c in self.candidates])

    def node(self, k: Any) -> Any:
        """Place in `nodes` of the body that contact k pushes."""
        return self._nodes[self.records.pair[k]]

    def other(self, k: Any) -> Any:
        """Place in `nodes` of the body that contact k pushes against; their number, if that one cannot move."""
        return self._others[self.records.pair[k]]

    def vector(self, name: str, k: Any) -> Vector:
        return [self.records.fields[f"{name}{i}"][k] for i in range(3)]

    def parts(self, name: str, k: Any) -> Vector:
        """The parts of `reference`, `now` or `target` in the contact frame."""
        return [self.records.fields[f"{name}{i}"][k] for i in range(self.width)]

    def set_vector(self, name: str, k: Any, value: Vector) -> None:
        for i, x in enumerate(value):
            self.records.fields[f"{name}{i}"][k] = x

    def frame(self, k: Any) -> Frame:
        """Normal and the two tangents."""
        if self.normal is not None:
            t = [self.records.tangent0[k], self.records.tangent1[k], 0.0]
            return self.normal, t, cross(self.normal, t)
        n, t = self.vector("normal", k), self.vector("tangent", k)
        return n, t, cross(n, t)

    @property
    def friction_fields(self) -> list[str]:
        """The fields of the friction coefficients by axis."""
        if self.width == 3 and not self.anisotropic:
            return ["friction"]
        return [f"friction{i}" for i in range(self.width - 1)]

    def frictions(self, k: Any) -> list[Any]:
        """The friction coefficients by axis."""
        values = [self.records.fields[name][k] for name in self.friction_fields]
        return values * 2 if len(values) == 1 else values

    def cone(self, k: Any) -> Cone:
        """What contact k's rows cost."""
        frictions, records = self.frictions(k), self.records
        if self.elliptic:
            return Ellipse(frictions, records.mu[k], records.weight[k])
        if self.mixed:
            return Pyramid(frictions, [records.fields[f"weight{i}"][k] for i in range(self.width - 1)])
        return Pyramid(frictions, [records.weight[k]] * (self.width - 1))

    def goal(self, k: Any, refines: bool) -> Vector:
        """What the rows of contact k pull to: their reference, or what the present acceleration misses of it."""
        return negate(self.parts("now", k)) if refines else self.parts("reference", k)

    def in_frame(self, k: Any, motion: Vector) -> Vector:
        """A motion's parts along normal and tangents, then (condim 4, 6) of its turning; `motion` is [angular, linear]
        of `relative_motion`."""
        return self.in_frame_of(self.frame(k), motion)

    def in_frame_of(self, frame: Frame, motion: Vector) -> Vector:
        """`in_frame` for a frame that is at hand."""
        return [dot(axis, motion[3:]) for axis in frame] + [dot(axis, motion[:3]) for axis in frame[: self.width - 3]]

    def relative_motion(self, motions: Any, k: Any) -> Vector:
        """How contact k's point on its body moves against the other body, [angular, linear], from a table of body
        motions (6 each)."""
        own = _at(load(motions, self.node(k), 6), self.vector("point", k))
        if not self.coupled:
            return own
        return sub(own, _at(load(motions, self.other(k), 6), self.vector("other_point", k)))

    def motion_table(self, motions: dict[Node, Vector]) -> Any:
        """The motions of the bodies that can touch, and of the world, for `relative_motion`."""
        table = self.empty_motion_table()
        for i, node in enumerate(self.nodes):
            store(table, i, motions[node])
        return table

    def empty_motion_table(self) -> Any:
        """A table that holds the motion of the world only, and has a place more for bodies that touch nothing."""
        table = self.run.array(6 * (len(self.nodes) + 2), scratch=True)
        if self.coupled:
            store(table, len(self.nodes), [0.0] * 6)
        return table

    def places(self, bodies: tuple[int, ...]) -> list[int]:
        """Where the motions of moving bodies stand in the table."""
        order = {node.bodies[0]: i for i, node in enumerate(self.nodes)}
        return [order.get(body, len(self.nodes) + 1) for body in bodies]

    def detect(self, poses: dict[Node, Pose]) -> None:
        """The narrow phase: finds where geoms touch."""
        groups, singles = loop_groups(self.tree, self.candidates, everything=False)
        for number in singles:
            self._collide(SinglePair(self.tree, self.candidates[number], number, poses))
        if groups:
            loops = PairLoops(self.tree, self.nodes, self.candidates, groups)
            loops.place_all(poses)
            self.collide_in(loops, groups)
        elif self.records.bounded:
            report_lost(self.run, self.records)

    def collide_in(self, loops: PairLoops, groups: list[list[int]]) -> None:
        """Finds where the geoms of groups of pairs touch."""
        if not self.coupled:
            self._touched_in_loops = self.run.array(len(self.nodes), kind="bool")
            for i in self.run.range(len(self.nodes)):
                self._touched_in_loops[i] = False
        for group in groups:
            for pair in loops.each(group):
                self._collide(pair)
        if not self.coupled:
            for i, node in enumerate(self.nodes):
                self.touched[node].value = self.touched[node].value | self._touched_in_loops[i]
        if self.records.bounded:
            report_lost(self.run, self.records)

    def _collide(self, pair: SinglePair | LoopPair) -> None:
        def emit(distance: Any, position: Vector, normal: Vector, tangent: Vector | None) -> None:
            direction = default_tangent(normal) if tangent is None else tangent
            values = {"pair": pair.number, "distance": distance, "weight": 1.0} | _spread("point", position)
            values |= _spread("tangent", direction[:2] if self.normal else direction)
            if self.normal is None:
                values |= _spread("normal", pair.outward(normal))
            if self.coupled:
                values |= _spread("other_point", pair.other_point(position))
            self.records.append(**values)
            if not self.coupled:  # coupled bodies are solved where nobody asks
                self._touch(pair.node)

        collide(self.run, pair.geom1, pair.geom2, pair.margin, emit)

    def _touch(self, node: Any) -> None:
        """Notes that a body is touched, which is given by itself, or in loops by its place."""
        if isinstance(node, Node):
            self.touched[node].value = True
        else:
            self._touched_in_loops[node] = True

    def make_rows(self, velocities: Table, accelerations: Table, friction: Any, settings: Any) -> None:
        """Gives every contact its frame, reference acceleration and weight, and the place of its rows at the start.

        velocities: makes the table of body velocities; accelerations: of the body motions of the joint accelerations
        that the solver starts from.
        """
        run, records = self.run, self.records
        for _ in run.when(records.any):
            velocity_table, start_table = velocities(), accelerations()
            parameters = PairParameters(self.tree, self.candidates, friction, settings)
            for k in run.each(records):
                self._complete_frame(k)
                velocity, start = (self.in_frame(k, self.relative_motion(t, k)) for t in (velocity_table, start_table))
                for number in parameters.each_kind(records.pair[k]):
                    reference, mu, D = parameters.rows(number, records.distance[k], velocity)
                    self.set_vector("reference", k, reference)
                    self.set_vector("now", k, sub(start, reference))
                    self._set_cone(k, parameters.kinds[number], mu, D, settings.impratio)

    def _set_cone(self, k: Any, kind: ContactPair, mu: list[Any], D: Any, impratio: float) -> None:
        """Stores friction and weight; the weight is 0 in environments that have no such contact."""
        records, friction = self.records, [*mu, *[0.0] * (self.width - 1 - len(mu))]
        for name, value in zip(self.friction_fields, friction, strict=False):
            records.fields[name][k] = value
        exists = records.weight[k]
        if self.elliptic:
            records.mu[k] = mu[0] * impratio**-0.5 if mu else 1.0
        elif not mu:
            D = D * (0.5 / (self.width - 1))  # shared by all rows
        if self.mixed:
            for i in range(self.width - 1):
                records.fields[f"weight{i}"][k] = exists * D if i < len(mu) or not mu else 0.0
        records.weight[k] = exists * D

    def _complete_frame(self, k: Any) -> None:
        """Makes the tangent a unit vector across the normal (`mju_makeFrame`)."""
        if self.normal is not None:
            normal, tangent = self.normal, [self.records.tangent0[k], self.records.tangent1[k], 0.0]
        else:
            normal, tangent = self.vector("normal", k), self.vector("tangent", k)
        t = unit_tangent(normal, tangent)
        self.set_vector("tangent", k, t[:2] if self.normal else t)


class PairParameters:
    """The numbers of each pair, for a loop over contacts: those few kinds of parameters that models have are told
    apart."""

    def __init__(self, tree: Tree, pairs: list[Candidate], friction: Any, settings: Any) -> None:
        self.tree, self.run, self.friction, self.settings = tree, tree.run, friction, settings
        self.kinds: list[ContactPair] = []
        numbers = []
        for c in pairs:
            parameters = _parameters(tree, c.pairs[0])
            same = (i for i, kind in enumerate(self.kinds) if _parameters(tree, kind) == parameters)
            numbers.append(next(same, len(self.kinds)))
            if numbers[-1] == len(self.kinds):
                self.kinds.append(c.pairs[0])
        self._kind_of = self.run.table(numbers)
        self._pairs = pairs
        self._number: Any = None

    def each_kind(self, pair: Any) -> Any:
        """The kinds, each in a block that runs where the pair is of that kind."""
        self._number = pair
        for number in range(len(self.kinds)):
            one = len(self.kinds) == 1
            for _ in self.run.when(True if one else self.run.same(self._kind_of[pair], number)):
                yield number

    def rows(self, kind: int, distance: Any, velocity: Vector) -> tuple[Vector, list[Any], Any]:
        """Reference acceleration in the contact frame, friction by axis (none if frictionless), and the weight of the
        normal row or of each row of a pyramid (MuJoCo's `mj_makeImpedance`)."""
        p, settings = self.kinds[kind], self.settings
        k, b = stiffness_and_damping(p.solref, p.solimp, settings.dt, settings.refsafe)
        d = impedance(p.solimp, distance - p.margin)
        slip = b
        if settings.cone == "elliptic" and any(p.solreffriction):
            _, slip = stiffness_and_damping(p.solreffriction, p.solimp, settings.dt, settings.refsafe)
        reference = [-(velocity[0] * b) - d * (distance - p.margin) * k, *[-(v * slip) for v in velocity[1:]]]
        translation = self._translation()
        if p.condim == 1:
            return reference, [], weight(d, translation)
        mu = self._frictions(p)[: p.condim - 1]
        if settings.cone == "elliptic":
            return reference, mu, weight(d, translation)
        inverse_inertia = translation * (1.0 + mu[0] * mu[0])
        return reference, mu, weight(d, inverse_inertia * (2.0 / settings.impratio) * (mu[0] * mu[0]))

    def _translation(self) -> Any:
        """Approximate inverse inertia of the two bodies to a push."""
        model = self.tree.model
        inverse_inertia = model.body_invweight0[model.geom_bodyid, 0]
        lanes = [
            [max(MINVAL, float(inverse_inertia[[p.geom1, p.geom2]].sum())) for p in lane]
            for lane in zip(*(c.pairs for c in self._pairs), strict=True)
        ]
        return self.run.lane_pick([self.run.table(values)[self._number] for values in lanes])

    def _frictions(self, kind: ContactPair) -> list[Any]:
        """By axis: two of sliding, spin, two of rolling."""
        if kind.friction is not None:
            return [max(MIN_FRICTION, x) for x in kind.friction]
        mu: Any = MIN_FRICTION
        for side in range(len(kind.friction_geoms)):
            rows = [self._friction_geoms(c, side) for c in self._pairs]
            row = self.run.lane_rows([self.run.table(list(lane))[self._number] for lane in zip(*rows, strict=True)])
            mu = maximum(mu, self.friction.read(row))
        if kind.condim == 3:
            return [mu, mu]
        friction = self.tree.model.geom_friction
        spin, roll = (max(MIN_FRICTION, *(float(friction[g, i]) for g in kind.friction_geoms)) for i in (1, 2))
        return [mu, mu, spin, roll, roll]

    @staticmethod
    def _friction_geoms(c: Candidate, side: int) -> list[int]:
        """The geom of each lane whose friction counts."""
        return [p.friction_geoms[min(side, len(p.friction_geoms) - 1)] if p.friction_geoms else 0 for p in c.pairs]


def _parameters(tree: Tree, p: ContactPair) -> tuple[Any, ...]:
    torsion = [tuple(tree.model.geom_friction[g, 1:]) for g in p.friction_geoms] if p.condim > 3 else []
    return p.condim, p.margin, p.solref, p.solreffriction, p.solimp, p.friction, len(p.friction_geoms), torsion


def default_tangent(normal: Vector) -> Vector:
    """Where a tangent lies of which the geoms say nothing: along y, or along z where the normal is near y."""
    near_y = absolute(normal[1]) >= 0.5
    return [0.0, select(near_y, 0.0, 1.0), select(near_y, 1.0, 0.0)]


def unit_tangent(normal: Vector, tangent: Vector) -> Vector:
    """The part of `tangent` across the normal, of unit length."""
    t = sub(tangent, scale(normal, dot(normal, tangent)))
    length2 = dot(t, t)
    across = length2 >= MIN_TANGENT  # else it lies along the normal (an upright capsule), and any direction will do
    return [select(across, x * rsqrt(maximum(length2, MIN_TANGENT)), float(i == 0)) for i, x in enumerate(t)]


def _at(motion: Vector, point: Vector) -> Vector:
    """A body's motion about another point of it."""
    return motion[:3] + add(motion[3:], cross(motion[:3], point))


def _spread(name: str, vector: Vector) -> dict[str, Any]:
    return {f"{name}{i}": x for i, x in enumerate(vector)}


def _is_upright(tree: Tree, c: Candidate) -> bool:
    """Whether a pair's contacts have the normal (0, 0, 1): a level plane, under something."""
    geom = c.pairs[0].geom1
    if c.flipped or c.other is not None or tree.model.geom_type[geom] != PLANE:
        return False
    _, rotation = tree.fixed_geom(geom)
    return not any(isinstance(x, Expr) for x in rotation) and (rotation[2], rotation[5], rotation[8]) == (0.0, 0.0, 1.0)
