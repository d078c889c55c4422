"""The moving bodies of a model as a tree, with its constants as the maths wants them.

Bodies without joints are merged into the body that carries them: what is left are the bodies that move against their
parent. Where limbs are alike, they can share the code: with L lanes a node stands for L bodies of the same structure,
one a lane, and its constants are lane constants. Nodes that all lanes share (the trunk) stand for one body, computed
on every lane.

The world and the mocap bodies, which are moved from outside, are no nodes: no joint moves them, they have no velocity,
and what hangs on them by a joint is the root of a tree.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pluriverse.model import Model

from .spatial import IDENTITY, ZERO3, Vector, add, matmul, matvec, quaternion_matrix

MOCAP_ROWS = 7  # position, quaternion
FREE, BALL, SLIDE, HINGE = range(4)  # mjtJoint
SAME_FRAME, SAME_AXES = 1, 3  # mjtSameFrame: as the body frame, or its axes
QPOS_WIDTH, DOF_WIDTH = (7, 4, 1, 1), (6, 3, 1, 1)
GEOM_STRUCTURE = (
    "type",
    "contype",
    "conaffinity",
    "condim",
    "priority",
    "solmix",
    "solref",
    "solimp",
    "margin",
    "gap",
    "dataid",
)


@dataclass(eq=False)
class Joint:
    """A joint on each lane's body: ids, first rows in qpos and first dofs by lane."""

    type: int
    ids: tuple[int, ...]
    qpos: tuple[int, ...]
    dofs: tuple[int, ...]
    axis: list[Any]
    anchor: list[Any]

    @property
    def width(self) -> int:
        """Number of dofs."""
        return DOF_WIDTH[self.type]

    @property
    def qpos_width(self) -> int:
        """Number of rows in qpos."""
        return QPOS_WIDTH[self.type]

    def dof(self, k: int) -> tuple[int, ...]:
        """Dof k of the joint by lane."""
        return tuple(d + k for d in self.dofs)


@dataclass(eq=False)
class Node:
    """A moving body on each lane: constants in the frame of the body or, for its place, of the parent node."""

    index: int
    bodies: tuple[int, ...]
    parent: Node | None
    carrier: int  # of a root: the fixed body that it hangs on
    trunk: bool
    position: list[Any]  # frame origin in the frame of the parent node or carrier [m]
    rotation: list[Any]  # frame axes in the frame of the parent node or carrier (9)
    mass: Any
    centre: list[Any]  # of mass [m]
    moments: list[Any]  # of inertia about the centre of mass, body axes (6)
    compensation: tuple[Any, list[Any]]  # mass that gravity compensation lifts, and its centre
    joints: list[Joint]
    geoms: list[tuple[int, ...]]
    children: list[Node] = field(default_factory=list)

    @property
    def joins_lanes(self) -> bool:
        """Whether the parent is shared by all lanes and this node is not."""
        return self.parent is not None and self.parent.trunk and not self.trunk


@dataclass(frozen=True, eq=False)
class FixedBody:
    """A body that no joint moves, in world axes."""

    position: Vector  # frame origin [m]
    rotation: Vector  # frame axes (9)
    quaternion: Vector  # of any length


class Tree:
    """All moving bodies, parents before children, and the fixed ones: the world and the mocap bodies.

    mocap: the buffer of the mocap bodies' poses (`State.mocap`); a model without any needs none.
    """

    def __init__(self, model: Model, run: Any, mocap: Any = None) -> None:
        self.model, self.run = model, run
        self.merged = merge_fixed_bodies(model)
        self.fixed = {body: self._fixed_body(body, mocap) for body in self.merged if model.body_treeid[body] < 0}
        self.nodes: list[Node] = []
        self._node_of: dict[int, Node] = {}
        for bodies in lane_groups(model, self.merged, run.lanes):
            self._add(bodies)

    @property
    def roots(self) -> list[Node]:
        return [n for n in self.nodes if n.parent is None]

    def node(self, body: int) -> Node:
        """The node of a moving body."""
        return self._node_of[body]

    def carrier_of(self, body: int) -> Node | FixedBody:
        """What a body is, or is fixed to."""
        weld = int(self.model.body_weldid[body])
        return self.fixed[weld] if weld in self.fixed else self._node_of[weld]

    def body_frame(self, body: int) -> tuple[list[Any], list[Any]]:
        """Position and rotation of a body in the frame of its carrier."""
        place, axes = self.merged[int(self.model.body_weldid[body])].bodies[body]
        return self.constants([place]), self.constants([axes])

    def constant(self, array: np.ndarray, ids: tuple[int, ...]) -> Any:
        """The value of a model array at each lane's id."""
        return self.constants([array[i] for i in ids])

    def constants(self, values: list[Any]) -> Any:
        """Per-lane numbers (or per-lane arrays) as constants, without the dust of rounding beside 0, 1 and -1, and
        between lanes that mirror each other."""
        stacked = np.asarray(values, dtype=float)
        if stacked.ndim == 1:
            return self._constant(stacked)
        return [self._constant(column) for column in stacked.reshape(len(values), -1).T]

    def _constant(self, values: np.ndarray) -> Any:
        equal = np.ptp(values) <= 1e-12 * np.abs(values).max() if len(values) > 1 else False
        return self.run.constant([tidy(v) for v in (values[:1] if equal else values)])

    def geom_frame(self, geoms: tuple[int, ...]) -> tuple[list[Any], list[Any]]:
        """Position and rotation of a geom (on each lane) in the frame of its carrier."""
        frames = [self.merged[int(self.model.body_weldid[self.model.geom_bodyid[g]])].geoms[g] for g in geoms]
        return self.constants([f[0] for f in frames]), self.constants([f[1] for f in frames])

    def fixed_geom(self, geom: int) -> tuple[Vector, Vector]:
        """Position and rotation of a geom of a fixed body in the world."""
        carrier = self.fixed[int(self.model.body_weldid[self.model.geom_bodyid[geom]])]
        place, axes = self.geom_frame((geom,))
        return add(carrier.position, matvec(carrier.rotation, place)), matmul(carrier.rotation, axes)

    def _fixed_body(self, body: int, mocap: Any) -> FixedBody:
        if body == 0:
            return FixedBody(ZERO3, IDENTITY, [1.0, 0.0, 0.0, 0.0])
        first = MOCAP_ROWS * int(self.model.body_mocapid[body])
        pose = [mocap.read(first + k) for k in range(MOCAP_ROWS)]
        return FixedBody(pose[:3], quaternion_matrix(pose[3:]), pose[3:])

    def _add(self, bodies: tuple[int, ...]) -> None:
        parts = [self.merged[b] for b in bodies]
        first_joints = [int(self.model.body_jntadr[b]) for b in bodies]
        parent = self._node_of.get(parts[0].parent)
        node = Node(
            index=len(self.nodes),
            bodies=bodies,
            parent=parent,
            carrier=parts[0].parent,
            trunk=len(set(bodies)) == 1,
            position=self.constants([p.position for p in parts]),
            rotation=self.constants([p.rotation for p in parts]),
            mass=self.constants([p.mass for p in parts]),
            centre=self.constants([p.centre for p in parts]),
            moments=self.constants([p.moments for p in parts]),
            compensation=(self.constants([p.lifted for p in parts]), self.constants([p.lifted_centre for p in parts])),
            joints=[self._joint(tuple(j + k for j in first_joints)) for k in range(self.model.body_jntnum[bodies[0]])],
            geoms=list(zip(*(p.geoms for p in parts), strict=True)),
        )  # fmt: skip
        self.nodes.append(node)
        if parent is not None:
            parent.children.append(node)
        for body in bodies:
            self._node_of[body] = node

    def _joint(self, ids: tuple[int, ...]) -> Joint:
        model = self.model
        return Joint(
            type=int(model.jnt_type[ids[0]]),
            ids=ids,
            qpos=tuple(int(model.jnt_qposadr[j]) for j in ids),
            dofs=tuple(int(model.jnt_dofadr[j]) for j in ids),
            axis=self.constants([model.jnt_axis[j] for j in ids]),
            anchor=self.constants([model.jnt_pos[j] for j in ids]),
        )


@dataclass
class MergedBody:
    """A moving body, or a fixed one, together with the bodies fixed to it."""

    parent: int  # the moving or fixed body that it hangs on
    position: np.ndarray
    rotation: np.ndarray  # (3, 3)
    mass: float
    centre: np.ndarray
    moments: np.ndarray  # (6,)
    lifted: float
    lifted_centre: np.ndarray
    bodies: dict[int, tuple[np.ndarray, np.ndarray]]  # body -> position, rotation in this body's frame
    geoms: dict[int, tuple[np.ndarray, np.ndarray]]  # geom -> position, rotation in this body's frame


def merge_fixed_bodies(model: Model) -> dict[int, MergedBody]:
    """For each body that moves against its parent (and each fixed one: the world, 0, and the mocap bodies): itself with
    all bodies fixed to it."""
    frames: dict[int, tuple[np.ndarray, np.ndarray]] = {0: (np.zeros(3), np.eye(3))}  # in the frame of its weld body
    members: dict[int, list[int]] = {}
    for body in range(model.nbody):
        weld, parent = int(model.body_weldid[body]), int(model.body_parentid[body])
        members.setdefault(weld, []).append(body)
        if body == weld:
            frames[body] = (np.zeros(3), np.eye(3))
        else:
            p, R = frames[parent]
            frames[body] = (p + R @ model.body_pos[body], R @ rotation(model.body_quat[body]))
    return {weld: _merge(model, weld, bodies, frames) for weld, bodies in members.items()}


def _merge(model: Model, weld: int, bodies: list[int], frames: dict[int, Any]) -> MergedBody:
    parent = int(model.body_parentid[weld])
    p, R = frames[parent] if weld else frames[0]
    masses = np.array([model.body_mass[b] for b in bodies])
    inertial = [_inertial_frame(model, b) for b in bodies]
    centres = np.array([frames[b][0] + frames[b][1] @ ipos for b, (ipos, _) in zip(bodies, inertial, strict=True)])
    mass = masses.sum()
    centre = masses @ centres / mass if mass > 0 else centres[0]
    inertia = np.zeros((3, 3))
    for b, m, c, (_, principal) in zip(bodies, masses, centres, inertial, strict=True):
        axes = frames[b][1] @ principal
        arm = c - centre
        inertia += axes @ np.diag(model.body_inertia[b]) @ axes.T + m * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    inertia[np.abs(inertia) < 1e-9 * np.abs(inertia).max(initial=0.0)] = 0.0
    lifts = np.array([model.body_gravcomp[b] for b in bodies]) * masses
    lifted = lifts.sum()
    geoms = {}
    for b in bodies:
        first = int(model.body_geomadr[b])
        for g in range(first, first + int(model.body_geomnum[b])):
            q, Q = frames[b]
            geoms[g] = (q + Q @ model.geom_pos[g], Q @ rotation(model.geom_quat[g]))
    return MergedBody(
        parent=int(model.body_weldid[parent]),
        position=p + R @ model.body_pos[weld],
        rotation=R @ rotation(model.body_quat[weld]),
        mass=float(mass),
        centre=centre,
        moments=np.array([inertia[i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]),
        lifted=float(lifted),
        lifted_centre=lifts @ centres / lifted if lifted else np.zeros(3),
        bodies={b: frames[b] for b in bodies},
        geoms=geoms,
    )


def limb_structure(
    model: Model, merged: dict[int, MergedBody], children: dict[int, list[int]], body: int
) -> tuple[Any, ...]:
    """What must be equal between two bodies, with all that hangs on them, for their code to be shared."""
    joints = range(int(model.body_jntadr[body]), int(model.body_jntadr[body]) + int(model.body_jntnum[body]))
    dofs = np.flatnonzero(model.dof_bodyid == body).tolist()
    return (
        tuple(
            _alike(model, "jnt", j, ("type", "limited", "solref", "solimp", "margin", "actfrclimited")) for j in joints
        ),
        tuple((bool(model.dof_frictionloss[d]), *_alike(model, "dof", d, ("solref", "solimp"))) for d in dofs),
        tuple(_alike(model, "geom", g, GEOM_STRUCTURE) for g in merged[body].geoms),
        bool(merged[body].lifted),
        tuple(limb_structure(model, merged, children, c) for c in children.get(body, ())),
    )


def _inertial_frame(model: Model, body: int) -> tuple[np.ndarray, np.ndarray]:
    """Centre of mass and principal axes of a body in its frame. What is less than 1e-6 does not count, as in MuJoCo."""
    same = model.body_sameframe[body]
    centre = np.zeros(3) if same == SAME_FRAME else model.body_ipos[body]
    return centre, np.eye(3) if same in (SAME_FRAME, SAME_AXES) else rotation(model.body_iquat[body])


def lane_groups(model: Model, merged: dict[int, MergedBody], lanes: int) -> list[tuple[int, ...]]:
    """The bodies of each node by lane, depth first: limbs of equal structure that hang on one trunk body share a
    node."""
    children: dict[int, list[int]] = {}
    moving = [body for body in merged if model.body_treeid[body] >= 0]
    for body in moving:
        children.setdefault(merged[body].parent, []).append(body)

    def structure(body: int) -> tuple[Any, ...]:
        return limb_structure(model, merged, children, body)

    groups: list[tuple[int, ...]] = []

    def grow(bodies: tuple[int, ...]) -> None:
        groups.append(bodies)
        if len(set(bodies)) > 1:
            for k in range(len(children.get(bodies[0], ()))):
                grow(tuple(children[b][k] for b in bodies))
            return
        waiting = list(children.get(bodies[0], ()))
        while waiting:
            first = waiting.pop(0)
            alike = [b for b in waiting if structure(b) == structure(first)][: lanes - 1]
            if lanes > 1 and len(alike) == lanes - 1:
                waiting = [b for b in waiting if b not in alike]
                grow((first, *alike))
            else:
                grow((first,) * lanes)

    for body in moving:
        if model.body_treeid[merged[body].parent] < 0:
            grow((body,) * lanes)
    return groups


def _alike(model: Model, kind: str, index: int, fields: tuple[str, ...]) -> tuple[Any, ...]:
    """What must be equal between two elements whose code is shared."""
    return tuple(tuple(np.atleast_1d(getattr(model, f"{kind}_{name}")[index]).tolist()) for name in fields)


def rotation(q: np.ndarray) -> np.ndarray:
    """(3, 3) rotation matrix of a quaternion."""
    w, x, y, z = np.asarray(q, dtype=float) / np.linalg.norm(q)
    return np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ])  # fmt: skip


def tidy(x: float) -> float:
    """A constant without the dust of earlier arithmetic beside 0, 1 and -1."""
    for exact in (0.0, 1.0, -1.0):
        if abs(x - exact) < 1e-13:
            return exact
    return float(x)
