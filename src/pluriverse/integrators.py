"""What an integrator makes of the acceleration of a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pluriverse.constraints.joint_space import solve_joint_space
from pluriverse.constraints.sweep import articulated_sweep
from pluriverse.control_laws import general_actuators
from pluriverse.dynamics.activation import next_activations, own_rows
from pluriverse.dynamics.actuators import activation_rates_by_row
from pluriverse.dynamics.bias import bias_forces
from pluriverse.dynamics.chain_solve import solve_in_chains
from pluriverse.dynamics.free_body import implicit_free_acceleration, lone_free_bodies
from pluriverse.dynamics.inertia import mass_matrix, node_dofs
from pluriverse.dynamics.integrate import integrate_positions, turning_rates
from pluriverse.dynamics.kinematics import body_motions
from pluriverse.dynamics.spatial import Vector, negate, rigid_times
from pluriverse.dynamics.tendons import tendon_inertia
from pluriverse.dynamics.tree import Node, Tree
from pluriverse.dynamics.velocity_slopes import bias_damping, chain_columns, fluid_damping
from pluriverse.smooth import Smooth, by_dof
from pluriverse.trace.functions import select

if TYPE_CHECKING:
    from pluriverse.step import StepSettings


def implicit_acceleration(
    tree: Tree, smooth: Smooth, qvel: list[Any], qacc: dict[int, Any], settings: StepSettings, *, by_sweep: bool
) -> dict[int, Any]:
    """The acceleration that damping leaves over the step: (M + dt B)^-1 M qacc (MuJoCo's implicit integrators).

    Not as qacc less what damping takes: under stiff damping the two are large and nearly equal.
    """
    implicit = settings.integrator in ("implicit", "implicitfast")
    coupled = settings.integrator == "implicit" or smooth.medium or any(i != j for i, j in smooth.damping)
    inertia = tendon_inertia(tree.model, smooth.tendons)
    if (implicit and coupled) or (inertia and (implicit or smooth.damping)):
        return _coupled_acceleration(tree, smooth, qvel, qacc, inertia, settings)
    extra = {d: smooth.damping.get((d, d), 0.0) * settings.dt for d in qacc}
    damped = dict(qacc)
    if smooth.damping:
        diagonal = {d: smooth.armature[d] + extra[d] for d in qacc}
        pull, rotors = _momentum_forces(tree, smooth, qacc)
        if by_sweep:
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


def _coupled_acceleration(
    tree: Tree,
    smooth: Smooth,
    qvel: list[Any],
    qacc: dict[int, Any],
    tendons: dict[tuple[int, int], Any],
    settings: StepSettings,
) -> dict[int, Any]:
    """The same where damping, or the inertia of tendons, couples dofs. The derivative of bias forces belongs to it: of
    all bodies under `implicit`, of lone free bodies under `implicitfast`. Dofs of different branches stay uncoupled, as
    in MuJoCo."""
    damping, columns = dict(smooth.damping), chain_columns(tree, smooth.poses)
    if smooth.medium:
        fluid_damping(tree, smooth.poses, columns, smooth.medium, damping)
    whole = {"implicit": tree.nodes, "implicitfast": lone_free_bodies(tree)}.get(settings.integrator, [])
    bias_damping(tree, smooth.poses, smooth.inertias, smooth.velocities, qvel, columns, damping, of=whole)
    M = mass_matrix(tree, smooth.poses, smooth.inertias, smooth.armature)
    system = {}
    for (i, j), inertia in M.items():
        for place in ((i, j), (j, i)):
            system[place] = inertia + tendons.get(place, 0.0) + damping.get(place, 0.0) * settings.dt
    pull, rotors = _momentum_forces(tree, smooth, qacc)
    bias = bias_forces(tree, smooth.poses, pull)
    forces = [rotors[d] - bias[d] for d in range(tree.model.nv)]
    for i, j in system:
        forces[i] = forces[i] + tendons.get((i, j), 0.0) * qacc[j]
    return dict(enumerate(solve_in_chains(tree.run, tree.model.nv, system, forces)))


def _momentum_forces(tree: Tree, smooth: Smooth, qacc: dict[int, Any]) -> tuple[dict[Node, Vector], dict[int, Any]]:
    """M qacc in parts: what the bodies' inertias pull on them, and what accelerates the rotors."""
    motions = body_motions(tree, smooth.poses, by_dof(tree, qacc))
    pull = {node: negate(rigid_times(smooth.inertias[node], motions[node])) for node in tree.nodes}
    return pull, {d: smooth.armature[d] * a for d, a in qacc.items()}


Forward = Callable[[list[Any], list[Any], list[Any], Any], tuple[Smooth, Any]]
"""Moves qacc to the acceleration at qpos, qvel, act and the share of the step that has passed; returns the smooth part,
and whether the solver ran out."""


def runge_kutta_step(
    tree: Tree,
    qpos: list[Any],
    qvel: list[Any],
    act: list[Any],
    qacc: dict[int, Any],
    forward: Forward,
    settings: StepSettings,
) -> tuple[dict[int, Any], dict[int, Any], list[Any], Any]:
    """One step of the classical Runge-Kutta method, on rotations that of Munthe-Kaas (MuJoCo's `mj_RungeKutta`): rates
    of rotations are those of the rotation vector from where the step began.

    One loop over the four stages, so that the solver's code is there once. Returns new qpos by row, new qvel by dof,
    new act, and whether the solver ran out. qacc becomes the mean over the stages.
    """
    run, model, dofs, dt = tree.run, tree.model, list(qacc), settings.dt
    q = {k: run.variable(x) for k, x in enumerate(qpos) if x is not None}
    v, turned = ({d: run.variable(qvel[d]) for d in dofs} for _ in range(2))
    mean_v, mean_a = ({d: run.variable(0.0) for d in dofs} for _ in range(2))
    w, mean_w = [run.variable(x) for x in act], [run.variable(0.0) for _ in act]
    stateful = [u for u in general_actuators(model) if model.actuator_actnum[u]]
    lengths, speeds = ({u: run.variable(0.0) for u in stateful} for _ in range(2))  # at the beginning
    exhausted = run.variable(False)
    since, share, weight = (run.table(x) for x in (SINCE, SHARE, WEIGHT))
    for i in run.range(len(WEIGHT)):
        now = [q[k].value if k in q else None for k in range(model.nq)]
        speed = by_dof(tree, {d: x.value for d, x in v.items()})
        smooth, ran_out = forward(now, speed, [x.value for x in w], since[i])
        exhausted.value = exhausted.value | ran_out
        for drive in smooth.drives:
            if drive.actuator in lengths:
                begins = since[i] <= 0.0
                length, velocity = lengths[drive.actuator], speeds[drive.actuator]
                length.value = select(begins, drive.length, length.value)
                velocity.value = select(begins, drive.velocity, velocity.value)
        rates = turning_rates(tree, speed, by_dof(tree, {d: x.value for d, x in turned.items()}), since[i] * dt)
        reach = share[i] * dt
        for d in dofs:
            turned[d].value = rates[d]
            mean_v[d].value = mean_v[d].value + rates[d] * weight[i]
            mean_a[d].value = mean_a[d].value + qacc[d].value * weight[i]
            v[d].value = qvel[d] + qacc[d].value * reach
        for k, x in integrate_positions(tree, qpos, by_dof(tree, rates), reach).items():
            q[k].value = x
        for k, rate in enumerate(activation_rates_by_row(smooth.drives, len(act))):
            mean_w[k].value = mean_w[k].value + rate * weight[i]
            w[k].value = act[k] + rate * reach
    for d in dofs:
        qacc[d].value = mean_a[d].value
    new_qvel = {d: qvel[d] + x.value * dt for d, x in mean_a.items()}
    new_qpos = integrate_positions(tree, qpos, by_dof(tree, {d: x.value for d, x in mean_v.items()}), dt)
    new_act = list(act)
    for u in stateful if settings.actuation else ():
        rows = own_rows(model, u)
        means = [mean_w[k].value for k in rows]
        new = next_activations(model, u, [act[k] for k in rows], means, lengths[u].value, speeds[u].value, dt)
        new_act[rows.start : rows.stop] = new
    return new_qpos, new_qvel, new_act, exhausted.value


SINCE = (0.0, 0.5, 0.5, 1.0)  # of a step, how far the stage lies from its beginning
SHARE = (0.5, 0.5, 1.0, 0.0)  # how far the next stage does
WEIGHT = (1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0)
