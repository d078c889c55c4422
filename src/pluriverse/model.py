"""The frozen description of one simulated world: MuJoCo's compiled fields under MuJoCo's names and shapes."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from pluriverse.errors import GenesisException

if TYPE_CHECKING:
    import mujoco

CONSTANT = "constant"  # folded into the generated kernels: part of the fingerprint
INPUT = "input"  # read by the kernels per environment: its value never changes the code
HOST = "host"  # names, colours, keyframes: kernels never see it

# From 3.9 on `margin` inflates a geom and `gap` extends detection beyond it. Before, forces started at margin - gap.
_MARGIN_IS_INFLATION_SINCE = (3, 9)


def _array(shape: str, meaning: str, role: str = CONSTANT) -> Any:
    """An array field; `shape` names sizes of the model (`"nbody 3"`), `*` a length of its own."""
    return dataclasses.field(metadata={"shape": tuple(shape.split()), "meaning": meaning, "role": role})


def _scalar(meaning: str) -> Any:
    return dataclasses.field(metadata={"meaning": meaning, "role": CONSTANT})


def _names(meaning: str) -> Any:
    return dataclasses.field(metadata={"meaning": meaning, "role": HOST})


@dataclasses.dataclass(frozen=True)
class ModelOptions:
    """MuJoCo's `<option>`, as compiled."""

    timestep: float  # [s]
    gravity: np.ndarray  # (3,) [m/s^2]
    integrator: int  # mjtIntegrator
    cone: int  # mjtCone
    solver: int  # mjtSolver
    impratio: float  # frictional over normal impedance of a contact
    tolerance: float  # of the constraint solver, scaled by 1 / (meaninertia nv)
    ls_tolerance: float  # of its line search
    iterations: int  # at most, of the constraint solver
    ls_iterations: int  # at most, of its line search
    disableflags: int  # mjtDisableBit
    enableflags: int  # mjtEnableBit

    @classmethod
    def from_mujoco(cls, opt: mujoco.MjOption) -> ModelOptions:
        values = {f.name: getattr(opt, f.name) for f in dataclasses.fields(cls) if f.name != "gravity"}
        values = {name: value if isinstance(value, float) else int(value) for name, value in values.items()}
        return cls(gravity=_frozen(np.array(opt.gravity, dtype=np.float64)), **values)


@dataclasses.dataclass(frozen=True, eq=False)
class Model:
    """One world. Arrays are read-only; lengths in [m], angles in [rad], quaternions wxyz, SI units throughout.

    Each field's `metadata` holds its shape in terms of the sizes, its meaning, and its role: `constant` (folded into
    kernels), `input` (read by kernels per environment) or `host` (never read by a kernel).
    """

    # sizes
    nq: int = _scalar("numbers in qpos")
    nv: int = _scalar("degrees of freedom")
    nu: int = _scalar("actuators; each has one control")
    nbody: int = _scalar("bodies, the world included as body 0")
    njnt: int = _scalar("joints")
    ngeom: int = _scalar("geoms")
    nmesh: int = _scalar("meshes")
    neq: int = _scalar("equality constraints")
    npair: int = _scalar("explicit contact pairs")
    nexclude: int = _scalar("body pairs excluded from contact")
    nkey: int = _scalar("keyframes")
    ntree: int = _scalar("moving kinematic trees")

    # rest state
    qpos0: np.ndarray = _array("nq", "qpos in which the body frames were authored")
    qpos_spring: np.ndarray = _array("nq", "qpos in which joint springs are at rest")

    # bodies
    body_parentid: np.ndarray = _array("nbody", "the body's parent")
    body_rootid: np.ndarray = _array("nbody", "ancestor that is a direct child of the world")
    body_weldid: np.ndarray = _array("nbody", "topmost ancestor reached without crossing a joint")
    body_jntnum: np.ndarray = _array("nbody", "number of joints")
    body_jntadr: np.ndarray = _array("nbody", "first joint; -1: none")
    body_dofnum: np.ndarray = _array("nbody", "number of degrees of freedom")
    body_dofadr: np.ndarray = _array("nbody", "first degree of freedom; -1: none")
    body_geomnum: np.ndarray = _array("nbody", "number of geoms")
    body_geomadr: np.ndarray = _array("nbody", "first geom; -1: none")
    body_treeid: np.ndarray = _array("nbody", "the body's moving tree; -1: it never moves")
    body_pos: np.ndarray = _array("nbody 3", "frame origin in the parent's frame [m]")
    body_quat: np.ndarray = _array("nbody 4", "frame orientation in the parent's frame")
    body_ipos: np.ndarray = _array("nbody 3", "centre of mass in the body frame [m]")
    body_iquat: np.ndarray = _array("nbody 4", "principal axes in the body frame")
    body_mass: np.ndarray = _array("nbody", "mass [kg]")
    body_subtreemass: np.ndarray = _array("nbody", "mass of the body and all below it [kg]")
    body_inertia: np.ndarray = _array("nbody 3", "principal moments of inertia about the centre of mass [kg m^2]")
    body_invweight0: np.ndarray = _array("nbody 2", "mean inverse inertia at qpos0: translation [1/kg], rotation")
    body_gravcomp: np.ndarray = _array("nbody", "share of the body's weight that is lifted")

    # joints
    jnt_type: np.ndarray = _array("njnt", "mjtJoint: 0 free, 1 ball, 2 slide, 3 hinge")
    jnt_qposadr: np.ndarray = _array("njnt", "first number in qpos")
    jnt_dofadr: np.ndarray = _array("njnt", "first degree of freedom")
    jnt_bodyid: np.ndarray = _array("njnt", "the body that the joint moves")
    jnt_pos: np.ndarray = _array("njnt 3", "anchor in the body frame [m]")
    jnt_axis: np.ndarray = _array("njnt 3", "axis in the body frame, unit length")
    jnt_stiffness: np.ndarray = _array("njnt", "spring towards qpos_spring [N/m] or [N m/rad]")
    jnt_range: np.ndarray = _array("njnt 2", "limits [m] or [rad]; ball: (0, largest angle)")
    jnt_limited: np.ndarray = _array("njnt", "has limits")
    jnt_margin: np.ndarray = _array("njnt", "distance to a limit at which its row begins to act")
    jnt_solref: np.ndarray = _array("njnt 2", "reference of the limit rows: (timeconst, dampratio) or (-k, -b)")
    jnt_solimp: np.ndarray = _array("njnt 5", "impedance of the limit rows: dmin, dmax, width, mid, power")
    jnt_actfrclimited: np.ndarray = _array("njnt", "total actuator force is limited")
    jnt_actfrcrange: np.ndarray = _array("njnt 2", "range of the total actuator force [N] or [N m]", INPUT)
    jnt_actgravcomp: np.ndarray = _array("njnt", "gravity compensation counts as actuator force")

    # degrees of freedom
    dof_bodyid: np.ndarray = _array("nv", "the dof's body")
    dof_jntid: np.ndarray = _array("nv", "the dof's joint")
    dof_parentid: np.ndarray = _array("nv", "next dof towards the root; -1: none")
    dof_treeid: np.ndarray = _array("nv", "the dof's tree")
    dof_armature: np.ndarray = _array("nv", "rotor inertia [kg] or [kg m^2]")
    dof_damping: np.ndarray = _array("nv", "viscous damping [N s/m] or [N m s/rad]")
    dof_frictionloss: np.ndarray = _array("nv", "dry friction [N] or [N m]")
    dof_solref: np.ndarray = _array("nv 2", "reference of the friction-loss row")
    dof_solimp: np.ndarray = _array("nv 5", "impedance of the friction-loss row")
    dof_M0: np.ndarray = _array("nv", "diagonal of the inertia at qpos0")
    dof_invweight0: np.ndarray = _array("nv", "diagonal of the inverse inertia at qpos0")

    # geoms
    geom_type: np.ndarray = _array("ngeom", "mjtGeom")
    geom_contype: np.ndarray = _array("ngeom", "contact type bits")
    geom_conaffinity: np.ndarray = _array("ngeom", "contact affinity bits")
    geom_condim: np.ndarray = _array("ngeom", "contact dimension: 1 frictionless, 3 sliding")
    geom_bodyid: np.ndarray = _array("ngeom", "the geom's body")
    geom_dataid: np.ndarray = _array("ngeom", "the geom's mesh; -1: none")
    geom_priority: np.ndarray = _array("ngeom", "the higher one decides a contact's parameters")
    geom_solmix: np.ndarray = _array("ngeom", "weight when solref and solimp of two geoms are mixed")
    geom_solref: np.ndarray = _array("ngeom 2", "reference of contact rows")
    geom_solimp: np.ndarray = _array("ngeom 5", "impedance of contact rows")
    geom_size: np.ndarray = _array("ngeom 3", "radius, half length ... as the type says [m]")
    geom_rbound: np.ndarray = _array("ngeom", "radius of the bounding sphere [m]; 0: infinite")
    geom_pos: np.ndarray = _array("ngeom 3", "origin in the body frame [m]")
    geom_quat: np.ndarray = _array("ngeom 4", "orientation in the body frame")
    geom_friction: np.ndarray = _array("ngeom 3", "friction: sliding, torsional [m], rolling [m]", INPUT)
    geom_margin: np.ndarray = _array("ngeom", "inflation of the surface [m]; forces act below the pair's sum")
    geom_gap: np.ndarray = _array("ngeom", "detection beyond the margin, without force [m]")
    geom_group: np.ndarray = _array("ngeom", "visibility group", HOST)
    geom_matid: np.ndarray = _array("ngeom", "material; -1: none", HOST)
    geom_rgba: np.ndarray = _array("ngeom 4", "colour without a material", HOST)

    # meshes: the arrays of all meshes, one behind the other
    mesh_vertadr: np.ndarray = _array("nmesh", "first vertex")
    mesh_vertnum: np.ndarray = _array("nmesh", "number of vertices")
    mesh_faceadr: np.ndarray = _array("nmesh", "first face")
    mesh_facenum: np.ndarray = _array("nmesh", "number of faces")
    mesh_graphadr: np.ndarray = _array("nmesh", "start of the convex hull in mesh_graph; -1: none")
    mesh_pos: np.ndarray = _array("nmesh 3", "translation that MuJoCo applied to the file's vertices [m]")
    mesh_quat: np.ndarray = _array("nmesh 4", "rotation that MuJoCo applied to the file's vertices")
    mesh_vert: np.ndarray = _array("* 3", "vertices in the geom frame [m]")
    mesh_face: np.ndarray = _array("* 3", "vertices of each face, counted from mesh_vertadr")
    mesh_graph: np.ndarray = _array("*", "convex hulls: numvert, numface, edgeadr, globalid, edge lists, faces")
    mesh_polynum: np.ndarray = _array("nmesh", "number of faces of the convex hull, coplanar ones merged")
    mesh_polyadr: np.ndarray = _array("nmesh", "first of them")
    mesh_polyvertadr: np.ndarray = _array("*", "first corner of each such face, in mesh_polyvert")
    mesh_polyvertnum: np.ndarray = _array("*", "number of corners of each such face")
    mesh_polyvert: np.ndarray = _array("*", "corners, counted from mesh_vertadr")
    mesh_polynormal: np.ndarray = _array("* 3", "outward normals of the faces, geom frame")

    # explicit pairs and excluded bodies
    pair_geom1: np.ndarray = _array("npair", "first geom")
    pair_geom2: np.ndarray = _array("npair", "second geom")
    pair_signature: np.ndarray = _array("npair", "(body1 << 16) + body2")
    pair_dim: np.ndarray = _array("npair", "contact dimension")
    pair_friction: np.ndarray = _array("npair 5", "friction: tangent 1, tangent 2, spin, roll 1, roll 2")
    pair_solref: np.ndarray = _array("npair 2", "reference of the normal row")
    pair_solreffriction: np.ndarray = _array("npair 2", "reference of the friction rows; 0: as the normal")
    pair_solimp: np.ndarray = _array("npair 5", "impedance")
    pair_margin: np.ndarray = _array("npair", "inflation [m]")
    pair_gap: np.ndarray = _array("npair", "detection beyond the margin [m]")
    exclude_signature: np.ndarray = _array("nexclude", "(body1 << 16) + body2")

    # equality constraints
    eq_type: np.ndarray = _array("neq", "mjtEq: 2 joint")
    eq_objtype: np.ndarray = _array("neq", "mjtObj of both objects")
    eq_obj1id: np.ndarray = _array("neq", "first object; for type joint: the joint that follows")
    eq_obj2id: np.ndarray = _array("neq", "second object; -1: none")
    eq_active0: np.ndarray = _array("neq", "active from the start")
    eq_solref: np.ndarray = _array("neq 2", "reference")
    eq_solimp: np.ndarray = _array("neq 5", "impedance")
    eq_data: np.ndarray = _array("neq *", "for type joint: five polynomial coefficients")

    # actuators
    actuator_trntype: np.ndarray = _array("nu", "mjtTrn: 0 joint, 1 joint in parent")
    actuator_trnid: np.ndarray = _array("nu 2", "the joint that the actuator drives")
    actuator_dyntype: np.ndarray = _array("nu", "mjtDyn: 0 none")
    actuator_gaintype: np.ndarray = _array("nu", "mjtGain: 0 fixed, 1 affine", INPUT)
    actuator_biastype: np.ndarray = _array("nu", "mjtBias: 0 none, 1 affine", INPUT)
    actuator_gear: np.ndarray = _array("nu 6", "transmission ratio; a hinge or slide uses the first", INPUT)
    actuator_gainprm: np.ndarray = _array("nu *", "gain parameters", INPUT)
    actuator_biasprm: np.ndarray = _array("nu *", "bias parameters: constant, position, velocity", INPUT)
    actuator_ctrllimited: np.ndarray = _array("nu", "control is clamped", INPUT)
    actuator_ctrlrange: np.ndarray = _array("nu 2", "range of the control", INPUT)
    actuator_forcelimited: np.ndarray = _array("nu", "force is clamped", INPUT)
    actuator_forcerange: np.ndarray = _array("nu 2", "range of the force, before the gear", INPUT)

    # keyframes: offered as initial states, never applied by themselves
    key_qpos: np.ndarray = _array("nkey nq", "positions", HOST)
    key_qvel: np.ndarray = _array("nkey nv", "velocities", HOST)
    key_ctrl: np.ndarray = _array("nkey nu", "controls", HOST)

    # names, in the order of the arrays; an unnamed element has an empty name
    body_names: tuple[str, ...] = _names("bodies")
    joint_names: tuple[str, ...] = _names("joints")
    geom_names: tuple[str, ...] = _names("geoms")
    mesh_names: tuple[str, ...] = _names("meshes")
    equality_names: tuple[str, ...] = _names("equality constraints")
    actuator_names: tuple[str, ...] = _names("actuators")
    key_names: tuple[str, ...] = _names("keyframes")

    stat_meaninertia: float = _scalar("mean diagonal inertia at qpos0, which scales the solver's tolerance")
    opt: ModelOptions = _scalar("options")

    @classmethod
    def from_mujoco(cls, mj_model: mujoco.MjModel) -> Model:
        """Copies the fields of a compiled model. What this package cannot simulate is refused by the importers."""
        sizes = {name: int(getattr(mj_model, name)) for name in cls._size_names()}
        arrays = {f.name: _copy(mj_model, f, sizes) for f in array_fields()}
        if _mujoco_version() < _MARGIN_IS_INFLATION_SINCE:
            for kind in ("geom", "pair"):
                arrays[f"{kind}_margin"] = _frozen(arrays[f"{kind}_margin"] - arrays[f"{kind}_gap"])
        values: dict[str, Any] = {**sizes, **arrays, **_all_names(mj_model)}
        values["stat_meaninertia"] = float(mj_model.stat.meaninertia)
        return cls(**values, opt=ModelOptions.from_mujoco(mj_model.opt))

    @classmethod
    def _size_names(cls) -> tuple[str, ...]:
        return tuple(f.name for f in dataclasses.fields(cls) if f.type == "int")

    def fingerprint(self) -> str:
        """sha256 (hex) over everything that generated kernels may fold into their code.

        Left out are names, colours and keyframes, and what kernels read per environment: friction, actuator gains
        and ranges, gravity.
        """
        options = dataclasses.replace(self.opt, gravity=None)  # type: ignore[arg-type]
        return _digest(self, options, {CONSTANT})

    def digest(self) -> str:
        """sha256 (hex) over all that the model says: equal where two files mean the same."""
        options = dataclasses.replace(self.opt, gravity=self.opt.gravity.tolist())
        return _digest(self, options, {CONSTANT, INPUT, HOST})


def _digest(model: Model, options: ModelOptions, roles: set[str]) -> str:
    digest = hashlib.sha256()
    for field in dataclasses.fields(model):
        if field.metadata["role"] in roles:
            value = options if field.name == "opt" else getattr(model, field.name)
            digest.update(field.name.encode())
            if isinstance(value, np.ndarray):
                digest.update(repr(value.shape).encode() + value.tobytes())
            else:
                digest.update(repr(value).encode())
    return digest.hexdigest()


def array_fields() -> tuple[dataclasses.Field, ...]:
    """The array fields of `Model`, in order; `metadata` holds shape, meaning and role."""
    return tuple(f for f in dataclasses.fields(Model) if "shape" in f.metadata)


def _frozen(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array


def _copy(mj_model: mujoco.MjModel, field: dataclasses.Field, sizes: dict[str, int]) -> np.ndarray:
    """A read-only float64, int32 or bool copy of one field, its shape checked against the sizes."""
    source = np.asarray(getattr(mj_model, field.name))
    kind = {"b": np.bool_, "i": np.int32, "u": np.int32}.get(source.dtype.kind, np.float64)
    expected = [int(axis) if axis.isdigit() else sizes.get(axis) for axis in field.metadata["shape"]]
    free = [n if axis is None else axis for axis, n in zip(expected, source.shape, strict=False)]
    if tuple(free) != source.shape:
        raise GenesisException(
            f"The compiled model's {field.name} has shape {source.shape}, expected {tuple(free)} "
            f"({' '.join(field.metadata['shape'])}). The likely cause is an actuator with several controls or forces, "
            "which is not supported."
        )
    return _frozen(np.array(source, dtype=kind, order="C"))


def _all_names(mj_model: mujoco.MjModel) -> dict[str, tuple[str, ...]]:
    import mujoco

    objects = {
        "body_names": (mujoco.mjtObj.mjOBJ_BODY, mj_model.nbody),
        "joint_names": (mujoco.mjtObj.mjOBJ_JOINT, mj_model.njnt),
        "geom_names": (mujoco.mjtObj.mjOBJ_GEOM, mj_model.ngeom),
        "mesh_names": (mujoco.mjtObj.mjOBJ_MESH, mj_model.nmesh),
        "equality_names": (mujoco.mjtObj.mjOBJ_EQUALITY, mj_model.neq),
        "actuator_names": (mujoco.mjtObj.mjOBJ_ACTUATOR, mj_model.nu),
        "key_names": (mujoco.mjtObj.mjOBJ_KEY, mj_model.nkey),
    }
    return {
        name: tuple(mujoco.mj_id2name(mj_model, kind, i) or "" for i in range(count))
        for name, (kind, count) in objects.items()
    }


def _mujoco_version() -> tuple[int, int]:
    import mujoco

    major, minor = mujoco.__version__.split(".")[:2]
    return int(major), int(minor)
