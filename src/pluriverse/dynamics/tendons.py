"""Lengths of tendons: weighted sums of joint coordinates (fixed), or paths over sites, pulleys and geoms (spatial)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pluriverse.model import Model
from pluriverse.trace.expression import is_zero
from pluriverse.trace.functions import maximum, select

from .frames import Frame, apart, geom_frame, pull, relation, site_frame, site_in_geom
from .kinematics import Pose, bias_accelerations
from .spatial import IDENTITY, ZERO3, Vector, dot, matvec, scale, sub
from .transmission import Transmission
from .tree import Node, Tree
from .wrapping import MINVAL, straight, wrap

JOINT, PULLEY, SITE, SPHERE, CYLINDER = range(1, 6)  # mjtWrap


@dataclass(frozen=True)
class Stretch:
    """The path between two sites that follow each other, straight or round a geom."""

    start: int  # site
    end: int  # site
    share: float  # of the length that counts, by the pulley
    geom: int = -1  # -1: none
    cylinder: bool = False
    side: int = -1  # site beside the geom; -1: none


def is_fixed(model: Model, tendon: int) -> bool:
    """Whether the tendon's length is a sum of joint coordinates."""
    return bool(model.wrap_type[model.tendon_adr[tendon]] == JOINT)


def stretches(model: Model, tendon: int) -> Iterator[Stretch]:
    """The parts of a spatial tendon's path."""
    share, start = 1.0, -1
    geom, cylinder, side = -1, False, -1
    first = int(model.tendon_adr[tendon])
    for k in range(first, first + int(model.tendon_num[tendon])):
        kind, element = int(model.wrap_type[k]), int(model.wrap_objid[k])
        if kind == PULLEY:
            share, start = 1.0 / float(model.wrap_prm[k]), -1
        elif kind == SITE:
            if start >= 0:
                yield Stretch(start, element, share, geom, cylinder, side)
            start, geom = element, -1
        else:
            geom, cylinder, side = element, kind == CYLINDER, round(float(model.wrap_prm[k]))


def tendon_transmission(tree: Tree, poses: dict[Node, Pose], qpos: list[Any], tendon: int) -> Transmission:
    """Length of a tendon, and its derivatives by the dofs (MuJoCo's `mj_tendon`)."""
    model = tree.model
    length: Any = 0.0
    moment: dict[int, Any] = {}

    def add_moment(dof: int, lever: Any) -> None:
        if not is_zero(lever):
            moment[dof] = moment.get(dof, 0.0) + lever

    if is_fixed(model, tendon):
        first = int(model.tendon_adr[tendon])
        for k in range(first, first + int(model.tendon_num[tendon])):
            joint, coefficient = int(model.wrap_objid[k]), float(model.wrap_prm[k])
            length = length + qpos[model.jnt_qposadr[joint]] * coefficient
            add_moment(int(model.jnt_dofadr[joint]), coefficient)
        return Transmission(length, moment)
    for stretch in stretches(model, tendon):
        span, pieces = _span(tree, poses, stretch)
        length = length + span * stretch.share
        for start, end, direction in pieces:
            for dof, lever in pull(end, start, direction, poses).items():
                add_moment(dof, lever * stretch.share)
    return Transmission(length, moment)


def tendon_inertia(model: Model, tendons: Sequence[Transmission]) -> dict[tuple[int, int], Any]:
    """What the tendons' armature adds to the inertia between dofs; MuJoCo takes those that lie on one chain."""
    inertia: dict[tuple[int, int], Any] = {}
    for tendon, armature in zip(tendons, model.tendon_armature, strict=True):
        tendon.damp(inertia, float(armature))
    return inertia


def _span(tree: Tree, poses: dict[Node, Pose], stretch: Stretch) -> tuple[Any, list[tuple[Frame, Frame, Vector]]]:
    """Length of a stretch, and its straight pieces: both ends, on the bodies that carry them, and the direction."""
    start, end = (site_frame(tree, poses, site) for site in (stretch.start, stretch.end))
    if stretch.geom < 0:
        path = straight(ZERO3, apart(end, start))
        return path.length, [(start, end, path.leaves)]
    geom = geom_frame(tree, poses, stretch.geom)
    near, far = (site_in_geom(tree, poses, site, stretch.geom) for site in (stretch.start, stretch.end))
    path = wrap(
        tree.run,
        near,
        far,
        float(tree.model.geom_size[stretch.geom, 0]),
        cylinder=stretch.cylinder,
        side=site_in_geom(tree, poses, stretch.side, stretch.geom) if stretch.side >= 0 else None,
    )
    leaves, arrives = (matvec(geom.rotation, direction) for direction in (path.leaves, path.arrives))
    first, last = (geom.moved(point, IDENTITY) for point in (path.first, path.last))
    return path.length, [(start, first, leaves), (last, end, arrives)]


def tendon_bias(
    tree: Tree,
    poses: dict[Node, Pose],
    velocities: dict[Node, Vector],
    qvel: list[Any],
    tendons: Sequence[Transmission],
) -> dict[int, Any]:
    """What the tendons' armature asks of the dofs at zero joint acceleration, J' armature (d/dt J) qvel (MuJoCo's
    `mj_tendonBias`)."""
    model = tree.model
    heavy = [t for t in range(model.ntendon) if model.tendon_armature[t] and not is_fixed(model, t)]
    accelerations = bias_accelerations(tree, poses, qvel, ZERO3) if heavy else {}
    bias: dict[int, Any] = {}
    for t in heavy:
        pulls = _drift(tree, poses, velocities, accelerations, qvel, t) * float(model.tendon_armature[t])
        for dof, lever in tendons[t].moment.items():
            bias[dof] = bias.get(dof, 0.0) + lever * pulls
    return bias


def _drift(
    tree: Tree,
    poses: dict[Node, Pose],
    velocities: dict[Node, Vector],
    accelerations: dict[Node, Vector],
    qvel: list[Any],
    tendon: int,
) -> Any:
    """(d/dt J) qvel of a tendon that goes round no geom: u (d/dt v) + (v^2 - (u v)^2) / length, u the direction of a
    stretch and v how fast its ends part. Accelerations are without gravity."""
    total: Any = 0.0
    for stretch in stretches(tree.model, tendon):
        end, start = (site_frame(tree, poses, site) for site in (stretch.end, stretch.start))
        if end.node is start.node:
            continue
        between = relation(end, start, poses, velocities, accelerations)
        path = straight(ZERO3, between.apart)
        v = [dot([S[3 + k] for S in between.J.values()], [qvel[dof] for dof in between.J]) for k in range(3)]
        along = dot(path.leaves, v)
        across = sub(v, scale(path.leaves, along))
        turning = select(path.length > MINVAL, dot(across, across) / maximum(path.length, MINVAL), 0.0)
        total = total + (dot(path.leaves, between.drift[3:]) + turning) * stretch.share
    return total
