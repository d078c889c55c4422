"""The smooth part of a step: everything that a state determines before constraints act."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pluriverse.dynamics.actuation import actuate
from pluriverse.dynamics.actuators import Drive, drives
from pluriverse.dynamics.bias import bias_forces, body_forces, gravity_lifts
from pluriverse.dynamics.fluid import Medium, fluid_forces, has_medium
from pluriverse.dynamics.free_body import lone_free_bodies
from pluriverse.dynamics.inertia import body_inertias
from pluriverse.dynamics.kinematics import Pose, bias_accelerations, body_motions, forward_kinematics
from pluriverse.dynamics.passive import add_joint_damping, add_tendon_damping, passive_forces
from pluriverse.dynamics.spatial import Vector, sub
from pluriverse.dynamics.tendons import tendon_bias, tendon_transmission
from pluriverse.dynamics.transmission import Damping, Transmission
from pluriverse.dynamics.tree import Node, Tree

if TYPE_CHECKING:
    from pluriverse.step import Inputs, StepSettings


FAR = 1e18  # beyond: not a state


@dataclass(eq=False)
class Smooth:
    """Places, inertias, forces. Dicts by dof, by pair of dofs or by body."""

    poses: dict[Node, Pose]
    velocities: dict[Node, Vector]
    inertias: dict[Node, Vector]
    forces: dict[Node, Vector]  # that the bodies need at zero joint acceleration
    passive: dict[int, Any]
    actuation: dict[int, Any]
    damping: Damping  # {(i, j): -d force_i / d velocity_j} that the integrator takes into the step
    armature: dict[int, Any]
    tendons: list[Transmission]
    tendon_bias: dict[int, Any]  # forces that the tendons' own inertia needs at zero joint acceleration
    drives: list[Drive]  # the general actuators
    medium: Medium | None

    def joint_forces(self) -> dict[int, Any]:
        return {d: self.passive[d] + self.actuation[d] - self.tendon_bias.get(d, 0.0) for d in self.passive}


def smooth_forces(
    tree: Tree,
    qpos: list[Any],
    qvel: list[Any],
    act: list[Any],
    inputs: Inputs,
    settings: StepSettings,
    elapsed: Any = 0.0,
) -> Smooth:
    """The smooth part of the step: no constraints yet.

    act: activations by row, then past controls (`control_delays`); elapsed: share of the step that has passed.
    """
    gravity = [inputs.gravity.read(k) if settings.gravity else 0.0 for k in range(3)]
    poses = forward_kinematics(tree, qpos)
    velocities = body_motions(tree, poses, qvel)
    accelerations = bias_accelerations(tree, poses, qvel, gravity)
    inertias = body_inertias(tree, poses)
    forces = body_forces(tree, inertias, velocities, accelerations)
    tendons = [tendon_transmission(tree, poses, qpos, tendon) for tendon in range(tree.model.ntendon)]
    lifts, medium = {}, None
    if settings.springs or settings.dampers:  # MuJoCo computes no passive force at all where both are disabled
        lifts = gravity_lifts(tree, poses, gravity)
        medium = _medium(tree, poses, velocities, settings) if has_medium(tree.model) else None
    for node, lift in lifts.items():
        forces[node] = sub(forces[node], lift)
    for node, push in (medium.forces if medium else {}).items():
        forces[node] = sub(forces[node], push)
    passive = passive_forces(tree, qpos, qvel, tendons, springs=settings.springs, dampers=settings.dampers)
    running = drives(
        tree,
        poses,
        qpos,
        qvel,
        act,
        tendons,
        inputs.ctrl,
        settings.dt,
        clamp_ctrl=settings.clamp_ctrl,
        elapsed=elapsed,
    )
    approximate = settings.integrator == "approximate_implicitfast"
    lifted = _lifted_by_actuators(tree, poses, lifts)
    acting = settings.actuation and tree.model.nactuator > 0  # otherwise MuJoCo forgets what actuators should lift
    actuation, damping = actuate(
        tree, inputs.control, qpos, qvel, running, lifted if acting else {}, genesis=approximate
    )
    if not settings.actuation:
        actuation, damping = dict.fromkeys(actuation, 0.0), {}
    if not acting:
        actuation = {d: force - lifted.get(d, 0.0) for d, force in actuation.items()}
    if settings.integrator in ("Euler", "RK4"):
        damping = {}
    implicit_damper = settings.eulerdamp if settings.integrator == "Euler" else settings.integrator != "RK4"
    if settings.dampers and implicit_damper:
        add_joint_damping(tree, qvel, damping)
    if settings.dampers and settings.integrator not in ("Euler", "RK4"):
        add_tendon_damping(tree, qvel, tendons, damping)
    armature = {d: tree.constant(tree.model.dof_armature, lanes) for d, lanes in lane_dofs(tree).items()}
    if approximate:  # the solver itself works with M + dt * damping
        armature = {d: armature[d] + damping.get((d, d), 0.0) * settings.dt for d in armature}
        damping = {}
    return Smooth(
        poses=poses,
        velocities=velocities,
        inertias=inertias,
        forces=forces,
        passive=passive,
        actuation=actuation,
        damping=damping,
        armature=armature,
        tendons=tendons,
        tendon_bias=tendon_bias(tree, poses, velocities, qvel, tendons),
        drives=running,
        medium=medium,
    )


def _medium(tree: Tree, poses: dict[Node, Pose], velocities: dict[Node, Vector], settings: StepSettings) -> Medium:
    """The medium's forces. Its slopes are made symmetric for implicitfast, which solves lone free bodies apart."""
    lone = lone_free_bodies(tree)
    return fluid_forces(
        tree, poses, velocities, lambda node: settings.integrator == "implicitfast" and node not in lone
    )


def _lifted_by_actuators(tree: Tree, poses: dict[Node, Pose], lifts: dict[Node, Vector]) -> dict[int, Any]:
    """Forces of gravity compensation that count as actuator forces (actuatorgravcomp), by dof."""
    counts = tree.model.jnt_actgravcomp
    if not lifts or not counts.any():
        return {}
    return {d: x for d, x in bias_forces(tree, poses, lifts).items() if counts[tree.model.dof_jntid[d]]}


def by_dof(tree: Tree, values: dict[int, Any]) -> list[Any]:
    """Values by dof as a list; dofs that the code does not name (those of further lanes) are None."""
    return [values.get(d) for d in range(tree.model.nv)]


def lane_dofs(tree: Tree) -> dict[int, tuple[int, ...]]:
    """Every dof that the code names (those of the first lane) with the dofs that it stands for."""
    return {joint.dofs[0] + k: joint.dof(k) for node in tree.nodes for joint in node.joints for k in range(joint.width)}
