"""Contacts as records: where they are, which way they push, and what their pyramid of rows asks for.

A contact stands for the four rows J_n +- mu J_t of MuJoCo's pyramidal cone, all of one weight D. A frictionless
contact is a pyramid with mu = 0 whose four rows share its weight.
"""

from __future__ import annotations

from typing import Any

from pluriverse.collision.narrow_phase import collide, contact_sites
from pluriverse.collision_pairs import ContactPair
from pluriverse.dynamics.kinematics import Pose
from pluriverse.dynamics.spatial import Vector, cross, dot, negate, scale, sub
from pluriverse.dynamics.tree import Node, Tree
from pluriverse.trace.expression import Expr
from pluriverse.trace.functions import absolute, maximum, rsqrt, select

from .candidates import Candidate, LoopPair, LoopTables, SinglePair, loop_groups
from .impedance import impedance, stiffness_and_damping, weight

MIN_FRICTION = 1e-5  # mjMINMU
MIN_TANGENT = 1e-30  # squared length


class Contacts:
    """The list of contacts of one step. Vectors are in world axes, points from a body's reference point."""

    def __init__(self, tree: Tree, pairs: list[Candidate]) -> None:
        self.tree, self.run, self.candidates = tree, tree.run, pairs
        model = tree.model
        self.nodes = list(dict.fromkeys(n for c in pairs for n in (c.node, c.other) if n is not None))
        self.coupled = any(c.other is not None for c in pairs)
        upright = all(
            not c.flipped and model.geom_type[c.pairs[0].geom1] == 0 and _is_upright(tree, c.pairs[0].geom1)
            for c in pairs
        )
        self.normal: Vector | None = [0.0, 0.0, 1.0] if upright else None
        self.anisotropic = any(
            p.friction is not None and p.friction[0] != p.friction[1] for c in pairs for p in c.pairs
        )
        vectors = ["point", "reference", "now", "target"] + ([] if upright else ["normal", "tangent"])
        vectors += ["other_point"] if self.coupled else []
        names = [f"{v}{i}" for v in vectors for i in range(3)] + ["weight", "friction"]
        names += ["tangent0", "tangent1"] if upright else []
        names += ["friction2"] if self.anisotropic else []
        fields = dict.fromkeys(names, "float") | {"node": "int"} | ({"other": "int"} if self.coupled else {})
        sites = [contact_sites(*(int(model.geom_type[g]) for g in (c.pairs[0].geom1, c.pairs[0].geom2))) for c in pairs]
        self.capacity = sum(sites)
        self.records: Any = self.run.records("contacts", fields, self.capacity) if self.capacity else None
        self.touched = {node: self.run.variable(False) for node in self.nodes}

    def vector(self, name: str, k: Any) -> Vector:
        return [self.records.fields[f"{name}{i}"][k] for i in range(3)]

    def set_vector(self, name: str, k: Any, value: Vector) -> None:
        for i in range(3):
            self.records.fields[f"{name}{i}"][k] = value[i]

    def frame(self, k: Any) -> tuple[Vector, Vector, Vector]:
        """Normal and the two tangents."""
        if self.normal is not None:
            t = [self.records.tangent0[k], self.records.tangent1[k], 0.0]
            return self.normal, t, cross(self.normal, t)
        n, t = self.vector("normal", k), self.vector("tangent", k)
        return n, t, cross(n, t)

    def frictions(self, k: Any) -> tuple[Any, Any]:
        mu = self.records.friction[k]
        return mu, self.records.friction2[k] if self.anisotropic else mu

    def in_frame(self, k: Any, vector: Vector) -> Vector:
        """A vector's components along normal and tangents."""
        return [dot(axis, vector) for axis in self.frame(k)]

    def pyramid(self, k: Any, x: Vector) -> list[Any]:
        """The four rows' values of a vector given in the contact frame."""
        mu1, mu2 = self.frictions(k)
        return [x[0] + mu1 * x[1], x[0] - mu1 * x[1], x[0] + mu2 * x[2], x[0] - mu2 * x[2]]

    def detect(
        self, poses: dict[Node, Pose], velocities: dict, accelerations: dict, friction: Any, settings: Any
    ) -> None:
        """Finds the contacts; `accelerations`: body motions of the joint accelerations that the solver starts from."""
        groups, singles = loop_groups(self.tree, self.candidates)
        for c in singles:
            self._detect_pair(
                SinglePair(self.tree, self.nodes, c, poses, velocities, accelerations), friction, settings
            )
        if groups:
            tables = LoopTables(self.tree, self.nodes, groups, poses, velocities, accelerations)
            for group in groups:
                for pair in tables.each(group):
                    self._detect_pair(pair, friction, settings)

    def _detect_pair(self, pair: SinglePair | LoopPair, friction: Any, settings: Any) -> None:
        parameters = pair.parameters
        k, b = stiffness_and_damping(parameters.solref, parameters.solimp, settings.dt, settings.refsafe)

        def emit(distance: Any, position: Vector, normal: Vector, tangent: Vector | None) -> None:
            n, t1, t2 = contact_frame(normal, tangent)
            if pair.flipped:
                n, t1 = negate(n), negate(t1)
            other_point = pair.other_point(position)
            velocity, start = ([dot(e, m) for e in (n, t1, t2)] for m in pair.relative_motions(position, other_point))
            d = impedance(parameters.solimp, distance - parameters.margin)
            normal_reference = -(velocity[0] * b) - d * (distance - parameters.margin) * k
            reference = [normal_reference, -(velocity[1] * b), -(velocity[2] * b)]
            mu, D = _friction_and_weight(parameters, d, pair, friction, settings.impratio)
            values = {"weight": D, "friction": mu[0], "node": pair.node} | _spread("target", [0.0] * 3)
            values |= (
                _spread("point", position) | _spread("reference", reference) | _spread("now", sub(start, reference))
            )
            values |= (
                {"tangent0": t1[0], "tangent1": t1[1]} if self.normal else _spread("normal", n) | _spread("tangent", t1)
            )
            if self.anisotropic:
                values["friction2"] = mu[1]
            if self.coupled:
                values |= {"other": pair.other} | _spread("other_point", other_point or [0.0] * 3)
            self.records.append(**values)
            for node in pair.touched:
                self.touched[node].value = True

        collide(self.run, pair.geoms[0], pair.geoms[1], parameters.margin, emit)


def _friction_and_weight(
    parameters: ContactPair, d: Any, pair: SinglePair | LoopPair, friction: Any, impratio: float
) -> tuple[list[Any], Any]:
    """The friction coefficients, and the weight of each of the four rows (MuJoCo's `mj_makeImpedance`)."""
    if parameters.condim == 1:
        return [0.0, 0.0], weight(d, pair.translation) * 0.25
    if parameters.friction is not None:
        mu: list[Any] = [max(MIN_FRICTION, x) for x in parameters.friction[:2]]
    else:
        sliding: Any = MIN_FRICTION
        for row in pair.friction_rows:
            sliding = maximum(sliding, friction.read(row))
        mu = [sliding, sliding]
    inverse_inertia = pair.translation * (1.0 + mu[0] * mu[0])
    return mu, weight(d, inverse_inertia * (2.0 / impratio) * (mu[0] * mu[0]))


def contact_frame(normal: Vector, tangent: Vector | None) -> tuple[Vector, Vector, Vector]:
    """Normal and two tangents, the first along `tangent` or else along y (z where the normal is near y):
    `mju_makeFrame`."""
    if tangent is None:
        near_y = absolute(normal[1]) >= 0.5
        tangent = [0.0, select(near_y, 0.0, 1.0), select(near_y, 1.0, 0.0)]
    t = sub(tangent, scale(normal, dot(normal, tangent)))
    length2 = dot(t, t)
    across = (
        length2 >= MIN_TANGENT
    )  # else the tangent lies along the normal (an upright capsule): any direction will do
    t = [select(across, x * rsqrt(maximum(length2, MIN_TANGENT)), float(i == 0)) for i, x in enumerate(t)]
    return list(normal), t, cross(normal, t)


def _spread(name: str, vector: Vector) -> dict[str, Any]:
    return {f"{name}{i}": x for i, x in enumerate(vector)}


def _is_upright(tree: Tree, geom: int) -> bool:
    rotation = tree.constants([tree.static_geoms[geom][1]])
    return not any(isinstance(x, Expr) for x in rotation) and (rotation[2], rotation[5], rotation[8]) == (0.0, 0.0, 1.0)
