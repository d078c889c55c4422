"""Contacts as records: where they are, which way they push, and what their pyramid of rows asks for.

A contact stands for the four rows J_n +- mu J_t of MuJoCo's pyramidal cone, all of one weight D. A frictionless
contact is a pyramid with mu = 0 whose four rows share its weight.

The narrow phase leaves a record of where two geoms touch; one loop over the records then makes rows of them. So the
code of the rows exists once, however many pairs there are, and environments in contact at different places run it
together.
"""

from __future__ import annotations

from typing import Any

from pluriverse.collision.narrow_phase import collide, contact_sites
from pluriverse.collision_pairs import PLANE, ContactPair
from pluriverse.dynamics.kinematics import Pose
from pluriverse.dynamics.spatial import Vector, add, cross, dot, negate, scale, sub
from pluriverse.dynamics.tree import Node, Tree
from pluriverse.trace.expression import Expr
from pluriverse.trace.functions import absolute, maximum, rsqrt, select

from .candidates import Candidate, LoopPair, PairLoops, SinglePair, load, loop_groups, store
from .impedance import impedance, stiffness_and_damping, weight

MIN_FRICTION = 1e-5  # mjMINMU
MIN_TANGENT = 1e-30  # squared length


class Contacts:
    """The list of contacts of one step. Vectors are in world axes, points from a body's reference point."""

    def __init__(self, tree: Tree, pairs: list[Candidate]) -> None:
        self.tree, self.run, self.candidates = tree, tree.run, pairs
        self.nodes = list(dict.fromkeys(n for c in pairs for n in (c.node, c.other) if n is not None))
        self.coupled = any(c.other is not None for c in pairs)
        self.normal: Vector | None = [0.0, 0.0, 1.0] if all(_is_upright(tree, c) for c in pairs) else None
        self.anisotropic = any(
            p.friction is not None and p.friction[0] != p.friction[1] for c in pairs for p in c.pairs
        )
        types = [[int(tree.model.geom_type[g]) for g in (c.pairs[0].geom1, c.pairs[0].geom2)] for c in pairs]
        self.capacity = sum(contact_sites(*two) for two in types)
        if self.capacity:
            self._declare()

    def _declare(self) -> None:
        run = self.run
        vectors = ["point", "reference", "now", "target"] + ["other_point"] * self.coupled
        vectors += ["tangent"] if self.normal else ["normal", "tangent"]
        names = [f"{v}{i}" for v in vectors for i in range(2 if v == "tangent" and self.normal else 3)]
        names += ["distance", "weight", "friction"] + ["friction2"] * self.anisotropic
        fields = dict.fromkeys(names, "float") | {"pair": "int"}
        self.records: Any = run.records("contacts", fields, self.capacity)
        self.touched = {node: run.variable(False) for node in self.nodes}
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

    def set_vector(self, name: str, k: Any, value: Vector) -> None:
        for i, x in enumerate(value):
            self.records.fields[f"{name}{i}"][k] = x

    def frame(self, k: Any) -> tuple[Vector, Vector, Vector]:
        """Normal and the two tangents."""
        if self.normal is not None:
            t = [self.records.tangent0[k], self.records.tangent1[k], 0.0]
            return self.normal, t, cross(self.normal, t)
        n, t = self.vector("normal", k), self.vector("tangent", k)
        return n, t, cross(n, t)

    def in_frame(self, k: Any, vector: Vector) -> Vector:
        """A vector's components along normal and tangents."""
        return [dot(axis, vector) for axis in self.frame(k)]

    def frictions(self, k: Any) -> tuple[Any, Any]:
        mu = self.records.friction[k]
        return mu, self.records.friction2[k] if self.anisotropic else mu

    def pyramid(self, k: Any, x: Vector) -> list[Any]:
        """The four rows' values of a vector given in the contact frame."""
        mu1, mu2 = self.frictions(k)
        return [x[0] + mu1 * x[1], x[0] - mu1 * x[1], x[0] + mu2 * x[2], x[0] - mu2 * x[2]]

    def relative_motion(self, motions: Any, k: Any) -> Vector:
        """How contact k's point on its body moves against the other body, from a table of body motions (6 each)."""
        own = _at(load(motions, self.node(k), 6), self.vector("point", k))
        if not self.coupled:
            return own
        return sub(own, _at(load(motions, self.other(k), 6), self.vector("other_point", k)))

    def motion_table(self, motions: dict[Node, Vector]) -> Any:
        """The motions of the bodies that can touch, and of the world, for `relative_motion`."""
        table = self.run.array(6 * (len(self.nodes) + 1), scratch=True)
        for i, node in enumerate(self.nodes):
            store(table, i, motions[node])
        if self.coupled:
            store(table, len(self.nodes), [0.0] * 6)
        return table

    def detect(self, poses: dict[Node, Pose]) -> None:
        """The narrow phase: finds where geoms touch."""
        groups, singles = loop_groups(self.tree, self.candidates)
        for number in singles:
            self._collide(SinglePair(self.tree, self.candidates[number], number, poses))
        if groups:
            loops = PairLoops(self.tree, self.nodes, self.candidates, poses)
            for group in groups:
                for pair in loops.each(group):
                    self._collide(pair)

    def _collide(self, pair: SinglePair | LoopPair) -> None:
        c = pair.candidate

        def emit(distance: Any, position: Vector, normal: Vector, tangent: Vector | None) -> None:
            direction = default_tangent(normal) if tangent is None else tangent
            values = {"pair": pair.number, "distance": distance, "weight": 1.0} | _spread("point", position)
            values |= _spread("tangent", direction[:2] if self.normal else direction)
            if self.normal is None:
                values |= _spread("normal", negate(normal) if c.flipped else normal)
            if self.coupled:
                values |= _spread("other_point", pair.other_point(position) if c.other else [0.0, 0.0, 0.0])
            self.records.append(**values)
            for node in () if self.coupled else (c.node,):  # coupled bodies are solved where nobody asks
                self.touched[node].value = True

        collide(self.run, pair.geom1, pair.geom2, pair.margin, emit)

    def make_rows(self, velocities: dict, accelerations: dict, friction: Any, settings: Any) -> None:
        """Gives every contact its frame, reference acceleration and weight, and the place of its rows at the start.

        `accelerations`: the body motions of the joint accelerations that the solver starts from.
        """
        run, records = self.run, self.records
        for _ in run.when(records.any):
            velocity_table, start_table = self.motion_table(velocities), self.motion_table(accelerations)
            parameters = PairParameters(self.tree, self.candidates, friction, settings)
            for k in run.each(records):
                self._complete_frame(k)
                velocity, start = (self.in_frame(k, self.relative_motion(t, k)) for t in (velocity_table, start_table))
                for number in parameters.each_kind(records.pair[k]):
                    reference, mu, D = parameters.rows(number, records.distance[k], velocity)
                    self.set_vector("reference", k, reference)
                    self.set_vector("now", k, sub(start, reference))
                    records.friction[k] = mu[0]
                    if self.anisotropic:
                        records.friction2[k] = mu[1]
                    records.weight[k] = records.weight[k] * D  # 0 in lanes that have no such contact

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
            same = (i for i, kind in enumerate(self.kinds) if _parameters(kind) == _parameters(c.pairs[0]))
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
        """Reference acceleration in the contact frame, the two friction coefficients, and the weight of each row
        (MuJoCo's `mj_makeImpedance`)."""
        p, settings = self.kinds[kind], self.settings
        k, b = stiffness_and_damping(p.solref, p.solimp, settings.dt, settings.refsafe)
        d = impedance(p.solimp, distance - p.margin)
        reference = [-(velocity[0] * b) - d * (distance - p.margin) * k, -(velocity[1] * b), -(velocity[2] * b)]
        translation = self._translation()
        if p.condim == 1:
            return reference, [0.0, 0.0], weight(d, translation) * 0.25
        mu = [max(MIN_FRICTION, x) for x in p.friction[:2]] if p.friction else self._sliding_friction(p)
        inverse_inertia = translation * (1.0 + mu[0] * mu[0])
        return reference, mu, weight(d, inverse_inertia * (2.0 / settings.impratio) * (mu[0] * mu[0]))

    def _translation(self) -> Any:
        """Approximate inverse inertia of the two bodies to a push."""
        model = self.tree.model
        lanes = [
            [sum(float(model.body_invweight0[model.geom_bodyid[g], 0]) for g in (p.geom1, p.geom2)) for p in lane]
            for lane in zip(*(c.pairs for c in self._pairs), strict=True)
        ]
        return self.run.lane_pick([self.run.table(values)[self._number] for values in lanes])

    def _sliding_friction(self, kind: ContactPair) -> list[Any]:
        mu: Any = MIN_FRICTION
        for side in range(len(kind.friction_geoms)):
            lanes = [
                [p.friction_geoms[min(side, len(p.friction_geoms) - 1)] if p.friction_geoms else 0 for p in lane]
                for lane in zip(*(c.pairs for c in self._pairs), strict=True)
            ]
            row = self.run.lane_rows([self.run.table(values)[self._number] for values in lanes])
            mu = maximum(mu, self.friction.read(row))
        return [mu, mu]


def _parameters(p: ContactPair) -> tuple[Any, ...]:
    return p.condim, p.margin, p.solref, p.solimp, p.friction, len(p.friction_geoms)


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
    """The linear part of a body's motion at a point."""
    return add(motion[3:], cross(motion[:3], point))


def _spread(name: str, vector: Vector) -> dict[str, Any]:
    return {f"{name}{i}": x for i, x in enumerate(vector)}


def _is_upright(tree: Tree, c: Candidate) -> bool:
    """Whether a pair's contacts have the normal (0, 0, 1): a level plane, under something."""
    geom = c.pairs[0].geom1
    if c.flipped or c.other is not None or tree.model.geom_type[geom] != PLANE:
        return False
    rotation = tree.constants([tree.static_geoms[geom][1]])
    return not any(isinstance(x, Expr) for x in rotation) and (rotation[2], rotation[5], rotation[8]) == (0.0, 0.0, 1.0)
