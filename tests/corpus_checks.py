"""How the step of a model agrees with MuJoCo's, stage by stage, on floats: what the corpus is held against."""

from __future__ import annotations

import copy
from dataclasses import dataclass, fields

import mujoco
import numpy as np

from physics_reference import (
    FloatStep,
    Result,
    Sample,
    Stage,
    by_index,
    cost_gradient,
    error,
    full_matrix,
    mujoco_data,
)
from pluriverse.collision_pairs import contact_pairs
from pluriverse.constraints.candidates import candidates
from pluriverse.constraints.contacts import Contacts
from pluriverse.dynamics.bias import bias_forces
from pluriverse.dynamics.kinematics import Pose
from pluriverse.dynamics.spatial import add
from pluriverse.dynamics.tree import Node
from pluriverse.model import Model, array_fields

NEARLY = 1e-4  # of the smaller geom: how far contacts may differ, which MuJoCo finds by iteration
_NAMES = {  # names of `Model` -> MuJoCo's kind of object
    "body_names": "BODY", "joint_names": "JOINT", "geom_names": "GEOM", "mesh_names": "MESH", "site_names": "SITE",
    "equality_names": "EQUALITY", "tendon_names": "TENDON", "hfield_names": "HFIELD", "key_names": "KEY",
    "actuator_names": "ACTUATOR",
}  # fmt: skip


def differing_fields(model: Model, mj_model: mujoco.MjModel) -> list[str]:
    """The fields of the model that are not as MuJoCo compiled them."""
    arrays = {f.name for f in array_fields()}
    wrong = []
    for field in fields(model):
        name, value = field.name, getattr(model, field.name)
        if name in arrays:
            same = np.array_equal(value, getattr(mj_model, name), equal_nan=True)
        elif name == "opt":
            wrong += [
                f"opt.{option.name}"
                for option in fields(value)
                if not np.array_equal(getattr(value, option.name), getattr(mj_model.opt, option.name))
            ]
            continue
        elif name == "stat_meaninertia":
            same = value == mj_model.stat.meaninertia
        elif name in _NAMES:
            kind = getattr(mujoco.mjtObj, f"mjOBJ_{_NAMES[name]}")
            same = value == tuple(mujoco.mj_id2name(mj_model, kind, i) or "" for i in range(len(value)))
            same &= mujoco.mj_id2name(mj_model, kind, len(value)) is None
        else:
            same = value == getattr(mj_model, name)
        if not same:
            wrong.append(name)
    return wrong


def stage_of(mj_model: mujoco.MjModel, sample: Sample) -> Stage:
    """A sample with MuJoCo's stages and the package's."""
    floats = FloatStep(mj_model, sample)
    return Stage(mj_model, mujoco_data(mj_model, sample), floats, floats.smooth())


def smooth_errors(stage: Stage) -> dict[str, float]:
    """The error of each stage before the constraints, by name, in the order in which they are computed."""
    smooth, data, tree, nv = stage.smooth, stage.data, stage.floats.tree, stage.mj_model.nv
    inertia = np.zeros((nv, nv))
    mujoco.mj_fullM(stage.mj_model, data, inertia)
    places = [add(pose.world, pose.origin) for pose in smooth.poses.values()]
    rotations = [pose.rotation for pose in smooth.poses.values()]
    bodies = [node.bodies[0] for node in smooth.poses]
    errors = {
        "positions": error(np.array(places).reshape(-1, 3), data.xpos[bodies]),
        "rotations": error(np.array(rotations).reshape(-1, 9), data.xmat[bodies]),
        "mass matrix": error(full_matrix(stage), inertia),
    }
    if not stage.mj_model.jnt_actgravcomp.any():  # else lifts count as actuator forces, in MuJoCo alone
        errors["actuation"] = error(by_index(smooth.actuation), data.qfrc_actuator)
    bias = by_index(bias_forces(tree, smooth.poses, smooth.forces))
    return errors | {"smooth force": error(by_index(smooth.joint_forces()) - bias, data.qfrc_smooth)}


@dataclass(frozen=True)
class Touch:
    """A contact: geoms in MuJoCo's order, penetration < 0 [m], normal and place in world axes."""

    geoms: tuple[int, int]
    distance: float
    normal: np.ndarray
    position: np.ndarray


def float_contacts(floats: FloatStep, poses: dict[Node, Pose]) -> list[Touch]:
    """The contacts that the package finds."""
    pairs = candidates(floats.tree) if floats.settings.contacts else []
    contacts = Contacts(floats.tree, pairs, floats.settings.cone == "elliptic")
    if not contacts.capacity:
        return []
    contacts.detect(poses)
    found = []
    for k in range(len(contacts.records)):
        c = pairs[contacts.records.pair[k]]
        normal = np.array(contacts.normal or contacts.vector("normal", k))
        position = add(poses[c.node].world, contacts.vector("point", k))
        geoms = (c.pairs[0].geom1, c.pairs[0].geom2)
        found.append(Touch(geoms, contacts.records.distance[k], -normal if c.flipped else normal, np.array(position)))
    return found


def mujoco_contacts(data: mujoco.MjData) -> list[Touch]:
    """The contacts that have rows in MuJoCo."""
    found = []
    for contact in data.contact[: data.ncon]:
        if contact.efc_address >= 0:
            geoms = tuple(int(g) for g in contact.geom)
            found.append(Touch(geoms, contact.dist, contact.frame[:3].copy(), contact.pos.copy()))
    return found


def contact_faults(mj_model: mujoco.MjModel, ours: list[Touch], theirs: list[Touch]) -> list[str]:
    """What is different about two lists of contacts, in words; empty if they agree."""
    pairs = {(p.geom1, p.geom2): p for p in contact_pairs(Model.from_mujoco(mj_model))}
    faults = []
    for geoms in sorted({t.geoms for t in (*ours, *theirs)}):
        kinds = "-".join(mujoco.mjtGeom(int(mj_model.geom_type[g])).name[7:].lower() for g in geoms)
        if geoms not in pairs:
            faults.append(f"{kinds} {geoms}: no candidate, MuJoCo has contacts")
            continue
        size = min(float(r) for r in mj_model.geom_rbound[list(geoms)] if r > 0)
        allowed = NEARLY * size
        left = [t for t in ours if t.geoms == geoms]
        for touch in (t for t in theirs if t.geoms == geoms):
            near = min(left, key=lambda t: float(np.linalg.norm(t.position - touch.position)), default=None)
            if near is None:
                if abs(touch.distance - pairs[geoms].margin) > allowed:
                    faults.append(f"{kinds} {geoms}: a contact of depth {-touch.distance:.2e} is missing")
                continue
            left.remove(near)
            apart = {
                "depth": abs(near.distance - touch.distance) / size,
                "normal": float(np.abs(near.normal - touch.normal).max()),
                "place": float(np.abs(near.position - touch.position).max()) / size,
            }
            wrong = {name: value for name, value in apart.items() if not value <= NEARLY}
            if wrong:
                faults.append(f"{kinds} {geoms}: " + ", ".join(f"{name} off by {x:.1e}" for name, x in wrong.items()))
        for touch in left:
            if abs(touch.distance - pairs[geoms].margin) > allowed:
                faults.append(f"{kinds} {geoms}: a contact of depth {-touch.distance:.2e} too many")
    return faults


def parameter_faults(mj_model: mujoco.MjModel, data: mujoco.MjData) -> list[str]:
    """Contacts whose parameters are not those of `contact_pairs`."""
    pairs = {(p.geom1, p.geom2): p for p in contact_pairs(Model.from_mujoco(mj_model))}
    faults = []
    for contact in data.contact[: data.ncon]:
        geoms = tuple(int(g) for g in contact.geom)
        pair = pairs.get(geoms)
        if pair is None or contact.efc_address < 0:
            continue
        friction = pair.friction or mj_model.geom_friction[list(pair.friction_geoms)].max(axis=0)[[0, 0, 1, 2, 2]]
        same = {
            "condim": contact.dim == pair.condim,
            "margin": np.isclose(contact.includemargin, pair.margin, rtol=1e-12),
            "solref": np.allclose(contact.solref, pair.solref, rtol=1e-12),
            "solimp": np.allclose(contact.solimp, pair.solimp, rtol=1e-12),
            "friction": np.allclose(contact.friction, np.maximum(friction, 1e-5), rtol=1e-12),
        }
        faults += [f"{geoms}: {name}" for name, ok in same.items() if not ok]
    return faults


def reference_step(
    mj_model: mujoco.MjModel, sample: Sample, contacts: list[Touch]
) -> tuple[Result, mujoco.MjModel, mujoco.MjData]:
    """MuJoCo's step with these contacts in place of its own, solved as exactly as it can; and its state of before.

    So the solution is compared apart from the narrow phase. The contacts must be of the same pairs as MuJoCo's.
    """
    exact = copy.copy(mj_model)
    exact.opt.tolerance, exact.opt.iterations, exact.opt.ls_iterations = 0.0, 100, 100
    exact.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    exact.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_ISLAND)
    data = mujoco_data(exact, sample)
    left = list(contacts)
    for contact in data.contact[: data.ncon]:
        geoms = tuple(int(g) for g in contact.geom)
        mine = [t for t in left if t.geoms == geoms]
        if contact.efc_address < 0 or not mine:
            continue
        near = min(mine, key=lambda t: float(np.linalg.norm(t.position - contact.pos)))
        left.remove(near)
        contact.dist, contact.pos[:] = near.distance, near.position
        if not np.array_equal(near.normal, contact.frame[:3]):
            frame = np.concatenate([near.normal, contact.frame[3:6], np.zeros(3)])
            mujoco.mju_makeFrame(frame) if hasattr(mujoco, "mju_makeFrame") else _make_frame(frame)
            contact.frame[:] = frame
    mujoco.mj_makeConstraint(exact, data)
    mujoco.mj_projectConstraint(exact, data)
    mujoco.mj_forwardSkip(exact, data, mujoco.mjtStage.mjSTAGE_POS, 1)
    solved = copy.copy(data)
    if exact.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4:
        mujoco.mj_step(exact, data)
        return Result(data.qacc.copy(), data.qvel.copy(), data.qpos.copy(), data.act.copy()), exact, solved
    if exact.opt.integrator == mujoco.mjtIntegrator.mjINT_EULER:
        mujoco.mj_Euler(exact, data)
    else:
        mujoco.mj_implicit(exact, data)
    return Result(solved.qacc.copy(), data.qvel.copy(), data.qpos.copy(), data.act.copy()), exact, solved


def _make_frame(frame: np.ndarray) -> None:
    """Makes the second and third rows of a frame axes across the first."""
    n, t = frame[:3], frame[3:6]
    t -= n * (n @ t)
    t /= np.linalg.norm(t)
    frame[6:] = np.cross(n, t)


def stationarity(exact: mujoco.MjModel, data: mujoco.MjData, qacc: np.ndarray) -> float:
    """How far qacc is from the solution: the cost's gradient over the largest force."""
    gradient = cost_gradient(exact, data, qacc)
    scale = max(np.abs(data.qfrc_smooth).max(initial=0.0), np.abs(data.qfrc_constraint).max(initial=0.0), 1.0)
    return float(np.abs(gradient).max(initial=0.0) / scale)
