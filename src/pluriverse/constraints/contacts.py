"""Contacts as records: where they are, which way they push, and what their pyramid of rows asks for.

A contact stands for the four rows J_n +- mu J_t of MuJoCo's pyramidal cone, all of one weight D. A frictionless contact is a
pyramid with mu = 0 whose four rows share its weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pluriverse.collision.narrow_phase import collide, contact_sites
from pluriverse.collision.placed import Hull, Placed
from pluriverse.collision_pairs import ContactPair, contact_pairs, is_written
from pluriverse.dynamics.kinematics import Pose
from pluriverse.dynamics.spatial import Vector, add, cross, dot, matmul, negate, scale, sub
from pluriverse.dynamics.tree import Node, Tree
from pluriverse.trace.expression import Expr
from pluriverse.trace.functions import absolute, maximum, rsqrt, select

from .impedance import impedance, stiffness_and_damping, weight

MIN_FRICTION = 1e-5  # mjMINMU


@dataclass(eq=False)
class Candidate:
    """A pair of geoms that may touch, on each lane; the body whose reference point its contacts are given about is `node`."""

    pairs: tuple[ContactPair, ...]
    node: Node  # of geom2, or of geom1 where geom2 cannot move
    other: Node | None  # the other moving body
    flipped: bool  # geom2 cannot move: the contact pushes `node` against the normal


def candidates(tree: Tree) -> list[Candidate]:
    """The pairs whose contacts are computed, one for all lanes."""
    model = tree.model
    lane_of = {g: (k, geoms) for node in tree.nodes for geoms in node.geoms for k, g in enumerate(geoms)}
    if tree.run.lanes > 1:  # a trunk geom is on every lane; a limb's geom stands for those of the other lanes
        lane_of = {g: (0, geoms) if len(set(geoms)) == 1 else place for g, place in lane_of.items() for geoms in [place[1]]}
    written = [p for p in contact_pairs(model) if is_written(model, p)]
    by_geoms = {(p.geom1, p.geom2): p for p in written}
    found = []
    for pair in written:
        moving = [g for g in (pair.geom1, pair.geom2) if g in lane_of]
        if any(lane_of[g][0] != 0 for g in moving):
            continue
        geoms = [lane_of[g][1] if g in lane_of else (g,) * tree.run.lanes for g in (pair.geom1, pair.geom2)]
        pairs = tuple(by_geoms[a, b] for a, b in zip(*geoms, strict=True))
        nodes = [tree.node(int(model.body_weldid[model.geom_bodyid[g]])) if g in lane_of else None for g in (pair.geom1, pair.geom2)]
        flipped = nodes[1] is None
        node, other = (nodes[0], None) if flipped else (nodes[1], nodes[0])
        assert node is not None
        found.append(Candidate(pairs, node, other, flipped))
    return found


class Contacts:
    """The list of contacts of one step. Vectors are in world axes, points from a body's reference point."""

    def __init__(self, tree: Tree, pairs: list[Candidate]) -> None:
        self.tree, self.run, self.candidates = tree, tree.run, pairs
        model = tree.model
        self.nodes = list(dict.fromkeys(n for c in pairs for n in (c.node, c.other) if n is not None))
        self.coupled = any(c.other is not None for c in pairs)
        upright = all(not c.flipped and model.geom_type[c.pairs[0].geom1] == 0 and _is_upright(tree, c.pairs[0].geom1) for c in pairs)
        self.normal: Vector | None = [0.0, 0.0, 1.0] if upright else None
        self.anisotropic = any(p.friction is not None and p.friction[0] != p.friction[1] for c in pairs for p in c.pairs)
        vectors = ["point", "reference", "now", "target"] + ([] if upright else ["normal", "tangent"])
        vectors += ["other_point"] if self.coupled else []
        names = [f"{v}{i}" for v in vectors for i in range(3)] + ["weight", "friction"]
        names += ["tangent0", "tangent1"] if upright else []
        names += ["friction2"] if self.anisotropic else []
        fields = dict.fromkeys(names, "float") | {"node": "int"} | ({"other": "int"} if self.coupled else {})
        sites = [contact_sites(*(int(model.geom_type[g]) for g in (c.pairs[0].geom1, c.pairs[0].geom2))) for c in pairs]
        self.capacity = sum(sites)
        self.records = self.run.records("contacts", fields, self.capacity) if self.capacity else None
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

    def detect(self, poses: dict[Node, Pose], velocities: dict, accelerations: dict, friction: Any, settings: Any) -> None:
        """Finds the contacts; `accelerations`: body motions of the joint accelerations that the solver starts from."""
        model = self.tree.model
        for c in self.candidates:
            reference = poses[c.node].world
            geoms = [self._placed(c, side, poses, reference) for side in (0, 1)]
            margin = c.pairs[0].margin
            mu = self._pair_friction(c, friction)
            k, b = stiffness_and_damping(c.pairs[0].solref, c.pairs[0].solimp, settings.dt, settings.refsafe)
            translation = self.tree.constants(
                [sum(float(model.body_invweight0[model.geom_bodyid[g], 0]) for g in (p.geom1, p.geom2)) for p in c.pairs]
            )

            def emit(distance: Any, position: Vector, normal: Vector, tangent: Vector | None, c: Candidate = c, mu: Any = mu,
                     k: float = k, b: float = b, translation: Any = translation, margin: float = margin) -> None:  # fmt: skip
                n, t1, t2 = contact_frame(normal, tangent)
                if c.flipped:
                    n, t1 = negate(n), negate(t1)
                motion_at = self._relative_motion(c, position, poses)
                velocity, start = ([dot(e, motion_at(m)) for e in (n, t1, t2)] for m in (velocities, accelerations))
                d = impedance(c.pairs[0].solimp, distance - margin)
                reference = [-(velocity[0] * b) - d * (distance - margin) * k, -(velocity[1] * b), -(velocity[2] * b)]
                frictions, D = self._weight(c, d, translation, mu(), settings.impratio)
                values = {"weight": D, "friction": frictions[0], "node": self.nodes.index(c.node)}
                values |= _spread("point", position) | _spread("reference", reference) | _spread("now", sub(start, reference))
                values |= _spread("target", [0.0] * 3)
                values |= {"tangent0": t1[0], "tangent1": t1[1]} if self.normal else _spread("normal", n) | _spread("tangent", t1)
                if self.anisotropic:
                    values["friction2"] = frictions[1]
                if self.coupled:
                    values["other"] = self.nodes.index(c.other) if c.other else len(self.nodes)
                    arm = add(position, between(poses, c.other, c.node)) if c.other else [0.0] * 3
                    values |= _spread("other_point", arm)
                self.records.append(**values)
                for node in (c.node, c.other):
                    if node is not None:
                        self.touched[node].value = True

            collide(self.run, *geoms, margin, emit)

    def _weight(self, c: Candidate, d: Any, translation: Any, mu: list[Any], impratio: float) -> tuple[list[Any], Any]:
        """Friction coefficients and the weight of each of the four rows (MuJoCo's `mj_makeImpedance`)."""
        if c.pairs[0].condim == 1:
            return [0.0, 0.0], weight(d, translation) * 0.25
        inverse_inertia = translation * (1.0 + mu[0] * mu[0])
        return mu, weight(d, inverse_inertia * (2.0 / impratio) * (mu[0] * mu[0]))

    def _pair_friction(self, c: Candidate, friction: Any) -> Any:
        """A function that reads the two sliding friction coefficients, to be called where a contact is known."""

        def read() -> list[Any]:
            pair = c.pairs[0]
            if pair.friction is not None:
                return [max(MIN_FRICTION, x) for x in pair.friction[:2]]
            mu: Any = MIN_FRICTION
            for side in range(len(pair.friction_geoms)):
                rows = tuple(p.friction_geoms[side] for p in c.pairs)
                mu = maximum(mu, friction.read(rows if len(set(rows)) > 1 else rows[0]))
            return [mu, mu]

        return read

    def _relative_motion(self, c: Candidate, position: Vector, poses: dict[Node, Pose]) -> Any:
        def motion_at(motions: dict[Node, Vector]) -> Vector:
            own = motions[c.node]
            velocity = add(own[3:], cross(own[:3], position))
            if c.other is None:
                return velocity
            there = motions[c.other]
            return sub(velocity, add(there[3:], cross(there[:3], add(position, between(poses, c.other, c.node)))))

        return motion_at

    def _placed(self, c: Candidate, side: int, poses: dict[Node, Pose], reference: Vector) -> Placed:
        model, tree = self.tree.model, self.tree
        geoms = tuple((p.geom1, p.geom2)[side] for p in c.pairs)
        node = (c.other if not c.flipped else c.node, c.node if not c.flipped else None)[side]
        g = geoms[0]
        if node is None:
            place, axes = tree.static_geoms[g]
            position = sub([float(x) for x in tree.constants([place])], reference)
            rotation = tree.constants([axes])
        else:
            local, axes_ = tree.geom_frame(geoms)
            pose = poses[node]
            offset = between(poses, c.node, node)
            position = add(offset, pose.point(local))
            rotation = matmul(pose.rotation, axes_)
        return Placed(
            type=int(model.geom_type[g]),
            position=position,
            rotation=rotation,
            size=[tree.constants([model.geom_size[i, k] for i in geoms]) for k in range(3)],
            rbound=tree.constant(model.geom_rbound, geoms),
            hull=Hull.from_model(model, g) if model.geom_dataid[g] >= 0 else None,
        )


def between(poses: dict[Node, Pose], start: Node | None, end: Node | None) -> Vector:
    """The vector from one body's reference point to another's; exact in float32 for bodies of one tree however far away."""
    if start is end or start is None or end is None:
        return [0.0, 0.0, 0.0]
    a, b = poses[start], poses[end]
    return add(sub(b.base, a.base), sub(b.reach, a.reach))


def contact_frame(normal: Vector, tangent: Vector | None) -> tuple[Vector, Vector, Vector]:
    """Normal and two tangents, the first along `tangent` or else along y (z where the normal is near y): `mju_makeFrame`."""
    if tangent is None:
        near_y = absolute(normal[1]) >= 0.5
        tangent = [0.0, select(near_y, 0.0, 1.0), select(near_y, 1.0, 0.0)]
    t = sub(tangent, scale(normal, dot(normal, tangent)))
    t = scale(t, rsqrt(dot(t, t) + 1e-30))
    return list(normal), t, cross(normal, t)


def _spread(name: str, vector: Vector) -> dict[str, Any]:
    return {f"{name}{i}": x for i, x in enumerate(vector)}


def _is_upright(tree: Tree, geom: int) -> bool:
    rotation = tree.constants([tree.static_geoms[geom][1]])
    return not any(isinstance(x, Expr) for x in rotation) and (rotation[2], rotation[5], rotation[8]) == (0.0, 0.0, 1.0)
