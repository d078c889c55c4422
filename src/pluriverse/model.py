"""The frozen description of one simulated world: MuJoCo's compiled fields under MuJoCo's names and shapes."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from pluriverse.actuator_loads import add_actuator_loads
from pluriverse.errors import GenesisException
from pluriverse.model_options import ModelOptions

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


@dataclasses.dataclass(frozen=True, eq=False)
class Model:
    """One world. Arrays are read-only; lengths in [m], angles in [rad], quaternions wxyz, SI units throughout.

    Each field's `metadata` holds its shape in terms of the sizes, its meaning, and its role: `constant` (folded into
    kernels), `input` (read by kernels per environment) or `host` (never read by a kernel).
    """

    # sizes
    nq: int = _scalar("numbers in qpos")
    nv: int = _scalar("degrees of freedom")
    nactuator: int = _scalar("actuators")
    nu: int = _scalar("controls of all actuators")
    nout: int = _scalar("force outputs of all actuators")
    nbody: int = _scalar("bodies, the world included as body 0")
    njnt: int = _scalar("joints")
    ngeom: int = _scalar("geoms")
    nmesh: int = _scalar("meshes")
    neq: int = _scalar("equality constraints")
    npair: int = _scalar("explicit contact pairs")
    nexclude: int = _scalar("body pairs excluded from contact")
    nkey: int = _scalar("keyframes")
    ntree: int = _scalar("moving kinematic trees")
    na: int = _scalar("activations of stateful actuators")
    nsite: int = _scalar("sites")
    ntendon: int = _scalar("tendons")
    nwrap: int = _scalar("steps of all tendon paths")
    nmocap: int = _scalar("bodies that are moved from outside")
    nhfield: int = _scalar("height fields")

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
    body_treeid: np.ndarray = _array("nbody", "the body's moving tree; -1: no joint moves it")
    body_pos: np.ndarray = _array("nbody 3", "frame origin in the parent's frame [m]")
    body_quat: np.ndarray = _array("nbody 4", "frame orientation in the parent's frame")
    body_ipos: np.ndarray = _array("nbody 3", "centre of mass in the body frame [m]")
    body_iquat: np.ndarray = _array("nbody 4", "principal axes in the body frame")
    body_sameframe: np.ndarray = _array("nbody", "mjtSameFrame: ipos, iquat count as 0 (1), or iquat alone (3)")
    body_mass: np.ndarray = _array("nbody", "mass [kg]")
    body_subtreemass: np.ndarray = _array("nbody", "mass of the body and all below it [kg]")
    body_inertia: np.ndarray = _array("nbody 3", "principal moments of inertia about the centre of mass [kg m^2]")
    body_invweight0: np.ndarray = _array("nbody 2", "mean inverse inertia at qpos0: translation [1/kg], rotation")
    body_gravcomp: np.ndarray = _array("nbody", "share of the body's weight that is lifted")
    body_mocapid: np.ndarray = _array("nbody", "number among the bodies moved from outside; -1: none")

    # joints
    jnt_type: np.ndarray = _array("njnt", "mjtJoint: 0 free, 1 ball, 2 slide, 3 hinge")
    jnt_qposadr: np.ndarray = _array("njnt", "first number in qpos")
    jnt_dofadr: np.ndarray = _array("njnt", "first degree of freedom")
    jnt_bodyid: np.ndarray = _array("njnt", "the body that the joint moves")
    jnt_pos: np.ndarray = _array("njnt 3", "anchor in the body frame [m]")
    jnt_axis: np.ndarray = _array("njnt 3", "axis in the body frame, unit length")
    jnt_stiffness: np.ndarray = _array("njnt", "spring towards qpos_spring [N/m] or [N m/rad]")
    jnt_stiffnesspoly: np.ndarray = _array("njnt *", "growth of the stiffness with the displacement")
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
    dof_armature: np.ndarray = _array("nv", "rotor inertia, that of actuators included [kg] or [kg m^2]")
    dof_damping: np.ndarray = _array("nv", "viscous damping, that of actuators included [N s/m] or [N m s/rad]")
    dof_dampingpoly: np.ndarray = _array("nv *", "growth of the damping with the velocity")
    dof_frictionloss: np.ndarray = _array("nv", "dry friction [N] or [N m]")
    dof_solref: np.ndarray = _array("nv 2", "reference of the friction-loss row")
    dof_solimp: np.ndarray = _array("nv 5", "impedance of the friction-loss row")
    dof_M0: np.ndarray = _array("nv", "diagonal of the inertia at qpos0")
    dof_invweight0: np.ndarray = _array("nv", "diagonal of the inverse inertia at qpos0")

    # geoms
    geom_type: np.ndarray = _array("ngeom", "mjtGeom")
    geom_contype: np.ndarray = _array("ngeom", "contact type bits")
    geom_conaffinity: np.ndarray = _array("ngeom", "contact affinity bits")
    geom_condim: np.ndarray = _array("ngeom", "contact dimension: 1 frictionless, 3 sliding, 4 with spin, 6 with roll")
    geom_bodyid: np.ndarray = _array("ngeom", "the geom's body")
    geom_dataid: np.ndarray = _array("ngeom", "the geom's mesh or height field; -1: none")
    geom_fluid: np.ndarray = _array("ngeom *", "coefficients of the ellipsoid fluid model; first: whether it is used")
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

    # height fields: the data of all, one behind the other
    hfield_size: np.ndarray = _array("nhfield 4", "half extents x and y, height of 1, depth of the base [m]")
    hfield_nrow: np.ndarray = _array("nhfield", "rows, along y")
    hfield_ncol: np.ndarray = _array("nhfield", "columns, along x")
    hfield_adr: np.ndarray = _array("nhfield", "first number in hfield_data")
    hfield_data: np.ndarray = _array("*", "heights in [0, 1], row by row")

    # sites
    site_bodyid: np.ndarray = _array("nsite", "the site's body")
    site_type: np.ndarray = _array("nsite", "mjtGeom")
    site_size: np.ndarray = _array("nsite 3", "size as of a geom [m]")
    site_pos: np.ndarray = _array("nsite 3", "origin in the body frame [m]")
    site_quat: np.ndarray = _array("nsite 4", "orientation in the body frame")

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
    eq_type: np.ndarray = _array("neq", "mjtEq: 0 connect, 1 weld, 2 joint, 3 tendon")
    eq_objtype: np.ndarray = _array("neq", "mjtObj of both objects")
    eq_obj1id: np.ndarray = _array("neq", "first object: body, site, joint that follows, or tendon")
    eq_obj2id: np.ndarray = _array("neq", "second object; -1: none")
    eq_active0: np.ndarray = _array("neq", "active from the start", INPUT)
    eq_solref: np.ndarray = _array("neq 2", "reference")
    eq_solimp: np.ndarray = _array("neq 5", "impedance")
    eq_data: np.ndarray = _array("neq *", "anchors and relative pose, or polynomial coefficients, by type")

    # tendons
    tendon_adr: np.ndarray = _array("ntendon", "first step of the path")
    tendon_num: np.ndarray = _array("ntendon", "number of steps")
    tendon_limited: np.ndarray = _array("ntendon", "has limits")
    tendon_actfrclimited: np.ndarray = _array("ntendon", "total actuator force is limited")
    tendon_actfrcrange: np.ndarray = _array("ntendon 2", "range of the total actuator force [N]")
    tendon_solref_lim: np.ndarray = _array("ntendon 2", "reference of the limit rows")
    tendon_solimp_lim: np.ndarray = _array("ntendon 5", "impedance of the limit rows")
    tendon_solref_fri: np.ndarray = _array("ntendon 2", "reference of the friction-loss row")
    tendon_solimp_fri: np.ndarray = _array("ntendon 5", "impedance of the friction-loss row")
    tendon_range: np.ndarray = _array("ntendon 2", "limits of the length [m]")
    tendon_margin: np.ndarray = _array("ntendon", "distance to a limit at which its row begins to act")
    tendon_stiffness: np.ndarray = _array("ntendon", "spring outside lengthspring [N/m]")
    tendon_stiffnesspoly: np.ndarray = _array("ntendon *", "growth of the stiffness with the displacement")
    tendon_damping: np.ndarray = _array("ntendon", "viscous damping, that of actuators included [N s/m]")
    tendon_dampingpoly: np.ndarray = _array("ntendon *", "growth of the damping with the velocity")
    tendon_armature: np.ndarray = _array("ntendon", "inertia of the length, that of actuators included [kg]")
    tendon_frictionloss: np.ndarray = _array("ntendon", "dry friction [N]")
    tendon_lengthspring: np.ndarray = _array("ntendon 2", "lengths between which the spring is slack [m]")
    tendon_length0: np.ndarray = _array("ntendon", "length at qpos0 [m]")
    tendon_invweight0: np.ndarray = _array("ntendon", "inverse inertia at qpos0")
    wrap_type: np.ndarray = _array("nwrap", "mjtWrap: 1 joint, 2 pulley, 3 site, 4 sphere, 5 cylinder")
    wrap_objid: np.ndarray = _array("nwrap", "the joint, site or geom")
    wrap_prm: np.ndarray = _array("nwrap", "coefficient of a joint, divisor of a pulley, site beside a geom")

    # actuators
    actuator_trntype: np.ndarray = _array(
        "nactuator", "mjtTrn: 0 joint, 1 joint in parent, 2 slider-crank, 3 tendon, 4 site, 5 body, 6 orientation"
    )
    actuator_trnid: np.ndarray = _array("nactuator 2", "what the actuator drives; second: slider or reference site")
    actuator_dyntype: np.ndarray = _array(
        "nactuator", "mjtDyn: 0 none, 1 integrator, 2 filter, 3 exact filter, 4 muscle, 5 DC motor, 6 PID"
    )
    actuator_dynprm: np.ndarray = _array("nactuator *", "parameters of the activation's dynamics")
    actuator_ctrladr: np.ndarray = _array("nactuator", "first control")
    actuator_ctrlnum: np.ndarray = _array("nactuator", "number of controls")
    actuator_ctrlspec: np.ndarray = _array("nactuator", "what the controls mean: mjtCtrlInput or mjtCtrlChart")
    actuator_outadr: np.ndarray = _array("nactuator", "first force output")
    actuator_outnum: np.ndarray = _array("nactuator", "number of force outputs")
    actuator_actadr: np.ndarray = _array("nactuator", "first activation; -1: none")
    actuator_actnum: np.ndarray = _array("nactuator", "number of activations")
    actuator_actlimited: np.ndarray = _array("nactuator", "activation is clamped")
    actuator_actrange: np.ndarray = _array("nactuator 2", "range of the activation")
    actuator_actearly: np.ndarray = _array("nactuator", "the force uses the next step's activation")
    actuator_delay: np.ndarray = _array("nactuator", "how late the control acts [s]")
    actuator_history: np.ndarray = _array("nactuator 2", "controls that are remembered; order of interpolation")
    actuator_cranklength: np.ndarray = _array("nactuator", "length of a slider-crank's rod [m]")
    actuator_group: np.ndarray = _array("nactuator", "group, by which actuators are disabled")
    actuator_acc0: np.ndarray = _array("nout", "acceleration by unit force at qpos0, which scales muscles")
    actuator_length0: np.ndarray = _array("nout", "length at qpos0")
    actuator_lengthrange: np.ndarray = _array("nout 2", "feasible range of the length, which scales muscles")
    actuator_gaintype: np.ndarray = _array(
        "nactuator", "mjtGain: 0 fixed, 1 affine, 2 muscle, 3 DC motor, 4 orientation, 5 PID", INPUT
    )
    actuator_biastype: np.ndarray = _array(
        "nactuator", "mjtBias: 0 none, 1 affine, 2 muscle, 3 DC motor, 4 orientation", INPUT
    )
    actuator_gear: np.ndarray = _array("nout 6", "transmission ratio; a hinge or slide uses the first", INPUT)
    actuator_gainprm: np.ndarray = _array("nactuator *", "gain parameters", INPUT)
    actuator_biasprm: np.ndarray = _array("nactuator *", "bias parameters: constant, position, velocity", INPUT)
    actuator_ctrllimited: np.ndarray = _array("nu", "control is clamped", INPUT)
    actuator_ctrlrange: np.ndarray = _array("nu 2", "range of the control", INPUT)
    actuator_forcelimited: np.ndarray = _array("nactuator", "force is clamped", INPUT)
    actuator_forcerange: np.ndarray = _array("nactuator 2", "range of the force, before the gear", INPUT)

    # keyframes: offered as initial states, never applied by themselves
    key_qpos: np.ndarray = _array("nkey nq", "positions", HOST)
    key_qvel: np.ndarray = _array("nkey nv", "velocities", HOST)
    key_ctrl: np.ndarray = _array("nkey nu", "controls", HOST)
    key_act: np.ndarray = _array("nkey na", "activations", HOST)
    key_mpos: np.ndarray = _array("nkey *", "positions of mocap bodies [m]", HOST)
    key_mquat: np.ndarray = _array("nkey *", "orientations of mocap bodies", HOST)

    # names, in the order of the arrays; an unnamed element has an empty name
    body_names: tuple[str, ...] = _names("bodies")
    joint_names: tuple[str, ...] = _names("joints")
    geom_names: tuple[str, ...] = _names("geoms")
    mesh_names: tuple[str, ...] = _names("meshes")
    equality_names: tuple[str, ...] = _names("equality constraints")
    site_names: tuple[str, ...] = _names("sites")
    tendon_names: tuple[str, ...] = _names("tendons")
    hfield_names: tuple[str, ...] = _names("height fields")
    actuator_names: tuple[str, ...] = _names("actuators")
    key_names: tuple[str, ...] = _names("keyframes")

    stat_meaninertia: float = _scalar("mean diagonal inertia at qpos0, which scales the solver's tolerance")
    opt: ModelOptions = _scalar("options")

    @classmethod
    def from_mujoco(cls, mj_model: mujoco.MjModel) -> Model:
        """Copies the fields of a compiled model. What this package cannot simulate is refused by the importers."""
        one_each = not hasattr(mj_model, "nactuator")  # MuJoCo before 3.12: an actuator has one control and one force
        sizes = {
            name: int(mj_model.nu if one_each and name in ("nactuator", "nout") else getattr(mj_model, name))
            for name in cls._size_names()
        }
        arrays = {f.name: _copy(mj_model, f, sizes) for f in array_fields()}
        for kind in ("ctrl", "out") if one_each else ():
            arrays[f"actuator_{kind}adr"] = _frozen(np.arange(mj_model.nu, dtype=np.int32))
            arrays[f"actuator_{kind}num"] = _frozen(np.ones(mj_model.nu, dtype=np.int32))
        add_actuator_loads(arrays, mj_model)
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
        and ranges, gravity, which equality constraints are active.
        """
        options = dataclasses.replace(self.opt, gravity=np.zeros(0))
        return _digest(self, options, {CONSTANT})

    def digest(self) -> str:
        """sha256 (hex) over all that the model says: equal where two files mean the same."""
        return _digest(self, self.opt, {CONSTANT, INPUT, HOST})


def _digest(model: Model, options: ModelOptions, roles: set[str]) -> str:
    digest = hashlib.sha256()
    for field in dataclasses.fields(model):
        if field.metadata["role"] in roles:
            value = options.spelled() if field.name == "opt" else getattr(model, field.name)
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
    if not hasattr(mj_model, field.name):  # a field that later versions of MuJoCo have, and which is 0 before
        return _frozen(np.zeros([sizes.get(axis, 0) for axis in field.metadata["shape"]]))
    source = np.asarray(getattr(mj_model, field.name))
    kind = {"b": np.bool_, "i": np.int32, "u": np.int32}.get(source.dtype.kind, np.float64)
    expected = [int(axis) if axis.isdigit() else sizes.get(axis) for axis in field.metadata["shape"]]
    free = [n if axis is None else axis for axis, n in zip(expected, source.shape, strict=False)]
    if tuple(free) != source.shape:
        raise GenesisException(
            f"The compiled model's {field.name} has shape {source.shape}, expected {tuple(free)} "
            f"({' '.join(field.metadata['shape'])}): this version of MuJoCo is not known here."
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
        "site_names": (mujoco.mjtObj.mjOBJ_SITE, mj_model.nsite),
        "tendon_names": (mujoco.mjtObj.mjOBJ_TENDON, mj_model.ntendon),
        "hfield_names": (mujoco.mjtObj.mjOBJ_HFIELD, mj_model.nhfield),
        "actuator_names": (mujoco.mjtObj.mjOBJ_ACTUATOR, getattr(mj_model, "nactuator", mj_model.nu)),
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
