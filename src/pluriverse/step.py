"""One physics step: kinematics, forces, constraints, integration. This is what every kernel runs and what the
reference runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pluriverse.constraints.block_space import BlockSpace
from pluriverse.constraints.candidates import candidates
from pluriverse.constraints.contacts import Contacts
from pluriverse.constraints.equalities import connection_stiffness, equality_rows
from pluriverse.constraints.joint_space import JointSpace, solve_joint_space
from pluriverse.constraints.newton import NewtonOptions, Problem, minimise
from pluriverse.constraints.rows import JointRows, joint_rows
from pluriverse.constraints.sweep import articulated_sweep, contact_stiffness
from pluriverse.dynamics.actuation import actuator_forces
from pluriverse.dynamics.bias import bias_forces, body_forces
from pluriverse.dynamics.free_body import implicit_free_acceleration, lone_free_bodies
from pluriverse.dynamics.inertia import body_inertias, mass_matrix, node_dofs
from pluriverse.dynamics.integrate import integrate_positions
from pluriverse.dynamics.kinematics import Pose, bias_accelerations, body_motions, forward_kinematics
from pluriverse.dynamics.passive import passive_forces
from pluriverse.dynamics.spatial import Vector, add, negate, rigid_times
from pluriverse.dynamics.tree import Node, Tree
from pluriverse.model import Model
from pluriverse.trace.expression import is_zero
from pluriverse.trace.functions import absolute

NON_FINITE, UNCONVERGED = 1, 2  # bits of an environment's status word
FAR = 1e18  # beyond: not a state


@dataclass(frozen=True)
class StepSettings:
    """How to step a model. Names are MuJoCo's; `path` is how the solver factors its system."""

    dt: float  # [s]
    integrator: str = "implicitfast"  # Euler | implicitfast | approximate_implicitfast
    iterations: int = 50
    ls_iterations: int = 50
    tolerance: float = 1e-8
    ls_tolerance: float = 0.01
    impratio: float = 1.0
    cone: str = "pyramidal"  # pyramidal | elliptic
    contacts: bool = True
    limits: bool = True
    equalities: bool = True
    friction_loss: bool = True
    actuation: bool = True
    springs: bool = True
    dampers: bool = True
    gravity: bool = True
    eulerdamp: bool = True
    refsafe: bool = True
    path: str = "auto"  # auto | sweep | joint_space


@dataclass(frozen=True)
class Inputs:
    """The buffers that a step reads besides the state; None where the model has no such rows."""

    control: Any
    friction: Any
    gravity: Any
    ctrl: Any
    act: Any
    mocap: Any
    eq_active: Any

    @classmethod
    def of(cls, model: Model, run: Any) -> Inputs:
        """Declares those buffers that the model needs."""
        sizes = {"ctrl": model.nu, "act": model.na, "mocap": model.nmocap, "eq_active": model.neq}
        always = {name: run.buffer(name) for name in ("control", "friction", "gravity")}
        return cls(**always, **{name: run.buffer(name) if size else None for name, size in sizes.items()})


@dataclass(eq=False)
class Smooth:
    """Everything a state determines before constraints: places, inertias, forces. Dicts by dof or by body."""

    poses: dict[Node, Pose]
    velocities: dict[Node, Vector]
    inertias: dict[Node, Vector]
    forces: dict[Node, Vector]  # that the bodies need at zero joint acceleration
    passive: dict[int, Any]
    actuation: dict[int, Any]
    damping: dict[int, Any]  # -d force / d velocity that the integrator treats implicitly
    armature: dict[int, Any]

    def joint_forces(self) -> dict[int, Any]:
        return {d: self.passive[d] + self.actuation[d] for d in self.passive}


def smooth_forces(tree: Tree, qpos: list[Any], qvel: list[Any], inputs: Inputs, settings: StepSettings) -> Smooth:
    """The smooth part of the step: no constraints yet."""
    gravity = [inputs.gravity.read(k) if settings.gravity else 0.0 for k in range(3)]
    poses = forward_kinematics(tree, qpos)
    velocities = body_motions(tree, poses, qvel)
    accelerations = bias_accelerations(tree, poses, qvel, gravity)
    inertias = body_inertias(tree, poses)
    forces = body_forces(tree, poses, inertias, velocities, accelerations, gravity)
    passive = passive_forces(tree, qpos, qvel, springs=settings.springs, dampers=settings.dampers)
    approximate = settings.integrator == "approximate_implicitfast"
    actuation, damping = actuator_forces(tree, inputs.control, qpos, qvel, always_implicit=approximate)
    if not settings.actuation:
        actuation, damping = dict.fromkeys(actuation, 0.0), dict.fromkeys(damping, 0.0)
    if settings.integrator == "Euler":
        damping = dict.fromkeys(damping, 0.0)
    if settings.dampers and (settings.eulerdamp or settings.integrator != "Euler"):
        for d, lanes in lane_dofs(tree).items():
            damping[d] = damping[d] + tree.constant(tree.model.dof_damping, lanes)
    armature = {d: tree.constant(tree.model.dof_armature, lanes) for d, lanes in lane_dofs(tree).items()}
    if approximate:  # the solver itself works with M + dt * damping
        armature = {d: armature[d] + damping[d] * settings.dt for d in armature}
        damping = dict.fromkeys(damping, 0.0)
    return Smooth(poses, velocities, inertias, forces, passive, actuation, damping, armature)


def step(
    tree: Tree, qpos: list[Any], qvel: list[Any], qacc: dict[int, Any], inputs: Inputs, settings: StepSettings
) -> Any:
    """Advances one step. `qacc`: variables by dof with the last acceleration, which become this step's.

    Returns new qpos by row, new qvel by dof, and whether the solver
    ran out.
    """
    smooth = smooth_forces(tree, qpos, qvel, inputs, settings)
    unconverged = constrained_acceleration(tree, smooth, qpos, qvel, qacc, inputs, settings)
    acceleration = {d: variable.value for d, variable in qacc.items()}
    damped = implicit_acceleration(tree, smooth, qvel, acceleration, settings)
    new_qvel = {d: qvel[d] + a * settings.dt for d, a in damped.items()}
    return integrate_positions(tree, qpos, by_dof(tree, new_qvel), settings.dt), new_qvel, unconverged


def constrained_acceleration(
    tree: Tree,
    smooth: Smooth,
    qpos: list[Any],
    qvel: list[Any],
    qacc: dict[int, Any],
    inputs: Inputs,
    settings: StepSettings,
) -> Any:
    """Moves qacc to the solution of the constrained dynamics. Returns whether the solver's iterations ran out."""
    rows = joint_rows(tree, qpos, qvel, settings)
    if settings.equalities and tree.model.neq:
        rows.rows += equality_rows(tree, smooth.poses, smooth.velocities, qpos, qvel, inputs.eq_active, settings)
    contacts = Contacts(tree, candidates(tree) if settings.contacts else [], settings.cone == "elliptic")
    start = by_dof(tree, {d: variable.value for d, variable in qacc.items()})
    if contacts.capacity:
        contacts.detect(smooth.poses)
        contacts.make_rows(smooth.velocities, body_motions(tree, smooth.poses, start), inputs.friction, settings)
    coupled = solver_path(tree.model, settings) == "joint_space"
    long_step = _long_step(tree.model, settings, rows, contacts) if coupled else None
    if coupled:
        solve = _joint_space(tree, smooth, rows, contacts, refines=long_step is not None)
    else:
        solve = _sweep(tree, smooth, rows, contacts)
    problem = Problem(
        tree=tree,
        poses=smooth.poses,
        inertias=smooth.inertias,
        diagonal=smooth.armature,
        joint_rows=rows,
        contacts=contacts,
        long_step=long_step,
        solve=solve,
    )
    if not rows.rows and not contacts.capacity:  # nothing to minimise but the smooth cost
        target, _ = problem.solve({d: variable.value for d, variable in qacc.items()})
        for d, variable in qacc.items():
            variable.value = target[d]
        return False
    scale = 1.0 / (tree.model.stat_meaninertia * max(1, tree.model.nv))
    return minimise(
        problem,
        qacc,
        NewtonOptions(settings.iterations, settings.ls_iterations, settings.tolerance, settings.ls_tolerance, scale),
    )


def _sweep(tree: Tree, smooth: Smooth, rows: JointRows, contacts: Contacts) -> Any:
    """Solves for the active set by an articulated-body sweep."""
    joint_forces = smooth.joint_forces()

    def solve(now: dict[int, Any]) -> Any:
        diagonal, forces = dict(smooth.armature), dict(joint_forces)
        for r in rows.rows:
            (d,), (sign,) = r.dofs, r.coefficients
            D = r.active_weight(r.residual(now))
            diagonal[d], forces[d] = diagonal[d] + D, forces[d] + D * r.reference * sign
        for d, force in rows.constant_forces.items():
            forces[d] = forces[d] + force
        stiffen = contact_stiffness(tree, contacts) if contacts.capacity else None
        return articulated_sweep(tree, smooth.poses, smooth.inertias, smooth.forces, diagonal, forces, stiffen)

    return solve


def _joint_space(tree: Tree, smooth: Smooth, rows: JointRows, contacts: Contacts, refines: bool) -> Any:
    """Solves for the active set in joint coordinates."""
    M = mass_matrix(tree, smooth.poses, smooth.inertias, smooth.armature)
    joint_forces = smooth.joint_forces()

    def forces(now: dict[int, Any] | None) -> dict[int, Any]:
        if now is None:
            bias = bias_forces(tree, smooth.poses, smooth.forces)
            return {d: f - bias[d] for d, f in joint_forces.items()}
        motions = body_motions(tree, smooth.poses, by_dof(tree, now))
        needed = {n: add(smooth.forces[n], rigid_times(smooth.inertias[n], motions[n])) for n in tree.nodes}
        bias = bias_forces(tree, smooth.poses, needed)
        return {d: f - bias[d] - smooth.armature[d] * now[d] for d, f in joint_forces.items()}

    space = JointSpace if tree.model.nv <= UNROLLED else BlockSpace
    return space(tree, smooth.poses, M, forces, rows, contacts, refines).solve


def _long_step(model: Model, settings: StepSettings, rows: JointRows, contacts: Contacts) -> float | None:
    """The share of the acceleration beyond which a step in joint coordinates is solved again, since float32 rounds too
    much; None where the system is well conditioned.

    Measured by how far the joints' inertias depend on each other, M_dd (M^-1)_dd (the variance inflation factor of
    statistics): 3 for an arm with rotors, 20 for a walker, 100 for a humanoid; and by how far connected bodies do.
    """
    inflation = float((model.dof_M0 * model.dof_invweight0).max(initial=1.0))
    connection = connection_stiffness(model) if settings.equalities else 0.0
    coupling = connection > 0.0 or any(len(r.dofs) > 1 and not r.two_sided for r in rows.rows)
    if inflation < WELL_CONDITIONED and not contacts.coupled and not coupling:
        return None
    return min(max(2.0 / max(inflation, connection), 0.02), 0.5)


def implicit_acceleration(
    tree: Tree, smooth: Smooth, qvel: list[Any], qacc: dict[int, Any], settings: StepSettings
) -> dict[int, Any]:
    """The acceleration that damping leaves over the step: (M + dt B)^-1 M qacc (MuJoCo's implicit integrators).

    Not as qacc less what damping takes: under stiff damping the two are large and nearly equal.
    """
    extra = {d: smooth.damping[d] * settings.dt for d in qacc}
    damped = dict(qacc)
    if not all(is_zero(x) for x in extra.values()):
        diagonal = {d: smooth.armature[d] + extra[d] for d in qacc}
        motions = body_motions(tree, smooth.poses, by_dof(tree, qacc))
        pull = {node: negate(rigid_times(smooth.inertias[node], motions[node])) for node in tree.nodes}
        rotors = {d: smooth.armature[d] * a for d, a in qacc.items()}
        if tree.model.nv > SMALL or solver_path(tree.model, settings) == "sweep":  # damping couples nothing
            damped = articulated_sweep(tree, smooth.poses, smooth.inertias, pull, diagonal, rotors)[0]
        else:
            M = mass_matrix(tree, smooth.poses, smooth.inertias, diagonal)
            bias = bias_forces(tree, smooth.poses, pull)
            forces = [rotors[d] - bias[d] for d in range(tree.model.nv)]
            damped = dict(enumerate(solve_joint_space(tree.model.nv, M, forces)))
    for node in lone_free_bodies(tree) if settings.integrator == "implicitfast" else ():
        dofs = node_dofs(node)
        acceleration = implicit_free_acceleration(
            node,
            smooth.poses[node],
            [qacc[d] for d in dofs],
            [qvel[d] for d in dofs[3:]],
            smooth.armature[dofs[0]],
            extra[dofs[0]],
            settings.dt,
        )
        damped |= dict(zip(dofs, acceleration, strict=True))
    return damped


def solver_path(model: Model, settings: StepSettings) -> str:
    """How the solver factors: by sweeps where all rows keep the tree and the model is not small, else in joint
    coordinates."""
    if settings.path != "auto":
        return settings.path
    return "joint_space" if needs_joint_space(model, settings) or model.nv <= SMALL else "sweep"


WELL_CONDITIONED = 10.0
UNROLLED = 36  # dofs beyond which straight-line elimination, which grows as the cube, gives way to loops over blocks
SMALL = 9  # dofs up to which the mass matrix costs less than a sweep (measured: docs/results/solver_path.md)


def needs_joint_space(model: Model, settings: StepSettings) -> bool:
    """Whether some row couples limbs or bodies: an equality, a ball joint's limit, a contact between two moving
    bodies."""
    from pluriverse.collision_pairs import contact_pairs, is_written

    if settings.equalities and model.neq:
        return True
    if settings.limits and any(model.jnt_limited[j] and model.jnt_type[j] == 1 for j in range(model.njnt)):
        return True
    moves = model.body_treeid[model.geom_bodyid] >= 0
    return settings.contacts and any(
        moves[p.geom1] and moves[p.geom2] for p in contact_pairs(model) if is_written(model, p)
    )


def by_dof(tree: Tree, values: dict[int, Any]) -> list[Any]:
    """Values by dof as a list; dofs that the code does not name (those of further lanes) are None."""
    return [values.get(d) for d in range(tree.model.nv)]


def lane_dofs(tree: Tree) -> dict[int, tuple[int, ...]]:
    """Every dof that the code names (those of the first lane) with the dofs that it stands for."""
    return {joint.dofs[0] + k: joint.dof(k) for node in tree.nodes for joint in node.joints for k in range(joint.width)}


def finite(values: list[Any]) -> Any:
    """Whether all values are finite and not absurd; NaN compares false."""
    total: Any = 0.0
    for x in values:
        total = total + absolute(x)
    return total < FAR
