"""What all actuators of a model do: their forces on the dofs, their damping, and how their activations change.

A control law adds clamp(c0 + c1 q + c2 v, lo, hi) to the force of one dof; all five numbers are inputs, per
environment. Position and velocity servos, motors and the commands of users are such laws. General actuators
(`actuators`) add to them, and the joint's range clamps the sum.
"""

from __future__ import annotations

from typing import Any

from pluriverse.control_laws import JOINT, JOINT_IN_PARENT, TENDON, clamped_sums, control_laws
from pluriverse.trace.functions import clamp, select

from .actuators import Drive, slopes, tendon_is_free
from .transmission import Damping, add_damping
from .tree import BALL, FREE, Joint, Tree

LAW_ROWS = 5  # c0, c1, c2, lo, hi


def actuate(
    tree: Tree,
    control: Any,
    qpos: list[Any],
    qvel: list[Any],
    drives: list[Drive],
    lifts: dict[int, Any],
    *,
    genesis: bool,
) -> tuple[dict[int, Any], Damping]:
    """Generalized forces by dof, and -d force / d velocity by pair of dofs.

    lifts: forces of gravity compensation, by dof, that count as actuator forces where a joint's range clamps these.
    A law that clamps its force has no derivative (MuJoCo's `mjd_actuator_vel`); under `genesis` it has, and general
    actuators have none.
    """
    model, sums = tree.model, clamped_sums(tree.model)
    forces, law_slopes = _law_forces(tree, control, qpos, qvel, always_implicit=genesis)
    for drive in drives:
        for output, force in zip(drive.outputs, drive.pulls(), strict=True):
            for dof, lever in output.moment.items():
                forces[dof] = forces[dof] + lever * force
    free: dict[int, Any] = {}
    for dof in sorted(sums & forces.keys()):
        lift = lifts.get(dof, 0.0)
        low, high = (float(x) for x in model.jnt_actfrcrange[model.dof_jntid[dof]])
        total = forces[dof] + lift
        free[dof] = (total > low) & (total < high)
        forces[dof] = clamp(total, low, high) - lift
    damping: Damping = {}
    for dof, slope in law_slopes.items():
        add_damping(damping, dof, dof, slope if genesis else select(free.get(dof, True), slope, 0.0))
    for drive in () if genesis else drives:
        kind, target = model.actuator_trntype[drive.actuator], int(model.actuator_trnid[drive.actuator, 0])
        tendon_free = tendon_is_free(model, drives, target) if kind == TENDON else True
        on_joint = kind in (JOINT, JOINT_IN_PARENT)
        joint_free = free.get(int(model.jnt_dofadr[target]), True) if on_joint else True
        for output, slope in zip(drive.outputs, slopes(drive, tendon_free, joint_free), strict=True):
            output.damp(damping, slope)
    return forces, damping


def _law_forces(
    tree: Tree, control: Any, qpos: list[Any], qvel: list[Any], *, always_implicit: bool
) -> tuple[dict[int, Any], dict[int, Any]]:
    """Forces of the control laws by dof, and their derivatives -d force / d velocity."""
    further: dict[int, list[int]] = {}
    for k, law in enumerate(control_laws(tree.model)):
        if k >= tree.model.nv:
            further.setdefault(law.dof, []).append(k)
    forces: dict[int, Any] = {}
    found: dict[int, Any] = {}
    for node in tree.nodes:
        for joint in node.joints:
            for k in range(joint.width):
                laws = [joint.dof(k)] + [(law,) for law in further.get(joint.dofs[0] + k, [])]
                forces[joint.dofs[0] + k], found[joint.dofs[0] + k] = _dof_force(
                    control, joint, laws, qpos, qvel, always_implicit
                )
    return forces, found


def _dof_force(
    control: Any, joint: Joint, laws: list[tuple[int, ...]], qpos: list[Any], qvel: list[Any], always_implicit: bool
) -> tuple[Any, Any]:
    def value(law: tuple[int, ...], part: int) -> Any:
        rows = tuple(LAW_ROWS * i + part for i in law)
        return control.read(rows if len(set(rows)) > 1 else rows[0])

    if joint.type in (FREE, BALL):
        return clamp(value(laws[0], 0), value(laws[0], 3), value(laws[0], 4)), 0.0
    position, velocity = qpos[joint.qpos[0]], qvel[joint.dofs[0]]
    force: Any = 0.0
    slope: Any = 0.0
    for law in laws:
        c1, c2, low, high = (value(law, part) for part in range(1, LAW_ROWS))
        wanted = value(law, 0) + c1 * position + c2 * velocity
        force = force + clamp(wanted, low, high)
        free = True if always_implicit else (wanted > low) & (wanted < high)
        slope = slope - select(free, c2, 0.0)
    return force, slope
