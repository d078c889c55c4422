"""One physics step: kinematics, forces, constraints, integration. This is what every kernel runs and what the
reference runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from pluriverse.constraints.block_space import BlockSpace
from pluriverse.constraints.candidates import candidates
from pluriverse.constraints.contacts import Contacts
from pluriverse.constraints.equalities import connection_stiffness, equality_rows
from pluriverse.constraints.joint_space import JointSpace
from pluriverse.constraints.newton import NewtonOptions, minimise
from pluriverse.constraints.rows import JointRows, joint_rows
from pluriverse.constraints.sweep import articulated_sweep, contact_stiffness
from pluriverse.constraints.tendon_rows import add_tendon_rows, couples_dofs
from pluriverse.constraints.tree_problem import TreeProblem
from pluriverse.dynamics.actuators import activations_after, remember_controls
from pluriverse.dynamics.bias import bias_forces
from pluriverse.dynamics.inertia import mass_matrix
from pluriverse.dynamics.integrate import integrate_positions
from pluriverse.dynamics.kinematics import body_motions
from pluriverse.dynamics.spatial import add, rigid_times
from pluriverse.dynamics.tree import Tree
from pluriverse.integrators import implicit_acceleration, runge_kutta_step
from pluriverse.model import Model
from pluriverse.smooth import FAR, Smooth, by_dof, smooth_forces
from pluriverse.trace.functions import absolute


@dataclass(frozen=True)
class StepSettings:
    """How to step a model. Names are MuJoCo's; `path` is how the solver factors its system."""

    dt: float  # [s]
    integrator: str = "implicitfast"  # Euler | RK4 | implicit | implicitfast | approximate_implicitfast
    iterations: int = 50
    ls_iterations: int = 50
    tolerance: float = 1e-8
    ls_tolerance: float = 0.01
    impratio: float = 1.0
    cone: str = "pyramidal"  # pyramidal | elliptic
    contacts: bool = True
    max_contacts: int | None = None  # of an environment; None: by a rule (`constraints.capacity`)
    limits: bool = True
    equalities: bool = True
    friction_loss: bool = True
    actuation: bool = True
    clamp_ctrl: bool = True
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
    mocap: Any
    eq_active: Any

    @classmethod
    def of(cls, model: Model, run: Any) -> Inputs:
        """Declares those buffers that the model needs."""
        sizes = {"ctrl": model.nu, "mocap": model.nmocap, "eq_active": model.neq}
        always = {name: run.buffer(name) for name in ("control", "friction", "gravity")}
        return cls(**always, **{name: run.buffer(name) if size else None for name, size in sizes.items()})


def step(
    tree: Tree,
    qpos: list[Any],
    qvel: list[Any],
    act: list[Any],
    qacc: dict[int, Any],
    inputs: Inputs,
    settings: StepSettings,
) -> tuple[dict[int, Any], dict[int, Any], list[Any], Any]:
    """Advances one step. act: activations by row, then past controls (`control_delays`). `qacc`: variables by dof with
    the last acceleration, which become this step's.

    Returns new qpos by row, new qvel by dof, new act, and whether the solver ran out.
    """

    def forward(q: list[Any], v: list[Any], w: list[Any], elapsed: Any) -> tuple[Smooth, Any]:
        smooth = smooth_forces(tree, q, v, w, inputs, settings, elapsed)
        return smooth, constrained_acceleration(tree, smooth, q, v, qacc, inputs, settings)

    if settings.integrator == "RK4":
        new_qpos, new_qvel, new_act, unconverged = runge_kutta_step(tree, qpos, qvel, act, qacc, forward, settings)
        return new_qpos, new_qvel, remember_controls(tree.model, inputs.ctrl, new_act), unconverged
    smooth, unconverged = forward(qpos, qvel, act, 0.0)
    acceleration = {d: variable.value for d, variable in qacc.items()}
    by_sweep = tree.model.nv > SMALL or solver_path(tree.model, settings) == "sweep"
    damped = implicit_acceleration(tree, smooth, qvel, acceleration, settings, by_sweep=by_sweep)
    new_qvel = {d: qvel[d] + a * settings.dt for d, a in damped.items()}
    new_qpos = integrate_positions(tree, qpos, by_dof(tree, new_qvel), settings.dt)
    new_act = activations_after(smooth.drives, act, settings.dt) if settings.actuation else act
    return new_qpos, new_qvel, remember_controls(tree.model, inputs.ctrl, new_act), unconverged


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
        motion = (smooth.poses, smooth.velocities, qpos, qvel, smooth.tendons)
        rows.rows += equality_rows(tree, *motion, inputs.eq_active, settings)
    add_tendon_rows(tree, qvel, smooth.tendons, settings, rows)
    pairs = candidates(tree) if settings.contacts else []
    contacts = Contacts(tree, pairs, settings.cone == "elliptic", settings.max_contacts)
    start = by_dof(tree, {d: variable.value for d, variable in qacc.items()})
    if contacts.capacity:
        contacts.detect(smooth.poses)
        velocities = partial(contacts.motion_table, smooth.velocities)
        accelerations = partial(contacts.motion_table, body_motions(tree, smooth.poses, start))
        contacts.make_rows(velocities, accelerations, inputs.friction, settings)
    coupled = solver_path(tree.model, settings) == "joint_space"
    long_step = _long_step(tree.model, settings, rows, contacts) if coupled else None
    if coupled:
        solve = _joint_space(tree, smooth, rows, contacts, refines=long_step is not None)
    else:
        solve = _sweep(tree, smooth, rows, contacts)
    problem = TreeProblem(
        tree=tree,
        poses=smooth.poses,
        inertias=smooth.inertias,
        diagonal=smooth.armature,
        joint_rows=rows,
        contacts=contacts,
        long_step=long_step,
        find_target=solve,
        qacc=qacc,
    )
    if not rows.rows and not contacts.capacity:  # nothing to minimise but the smooth cost
        problem.solve()
        problem.advance(1.0)
        return False
    scale = 1.0 / (tree.model.stat_meaninertia * max(1, tree.model.nv))
    return minimise(
        problem,
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
    """Whether some row couples limbs or bodies: an equality, a tendon, a ball joint's limit, a contact between two
    moving bodies."""
    from pluriverse.collision_pairs import contact_pairs

    if (settings.equalities and model.neq) or couples_dofs(model, settings):
        return True
    if settings.limits and any(model.jnt_limited[j] and model.jnt_type[j] == 1 for j in range(model.njnt)):
        return True
    moves = model.body_treeid[model.geom_bodyid] >= 0
    return settings.contacts and any(moves[p.geom1] and moves[p.geom2] for p in contact_pairs(model))


def finite(values: list[Any]) -> Any:
    """Whether all values are finite and not absurd; NaN compares false."""
    total: Any = 0.0
    for x in values:
        total = total + absolute(x)
    return total < FAR
