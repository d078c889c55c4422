"""Actuator forces: one clamped affine law per dof, and further ones where several actuators drive a dof.

A law adds clamp(c0 + c1 q + c2 v, lo, hi); all five numbers are inputs, per environment. Position and velocity
servos, motors and MuJoCo's general actuators with affine bias are such laws.
"""

from __future__ import annotations

from typing import Any

from pluriverse.control_laws import control_laws
from pluriverse.trace.functions import clamp, select

from .tree import BALL, FREE, Joint, Tree

LAW_ROWS = 5  # c0, c1, c2, lo, hi


def actuator_forces(
    tree: Tree, control: Any, qpos: list[Any], qvel: list[Any], *, always_implicit: bool
) -> tuple[dict, dict]:
    """Generalized forces by dof, and their derivatives -d force / d velocity for an implicit integrator.

    A law that clamps its force has no derivative (MuJoCo's `mjd_actuator_vel`), unless `always_implicit` (Genesis
    World).
    """
    further: dict[int, list[int]] = {}
    for k, law in enumerate(control_laws(tree.model)):
        if k >= tree.model.nv:
            further.setdefault(law.dof, []).append(k)
    forces: dict[int, Any] = {}
    damping: dict[int, Any] = {}
    for node in tree.nodes:
        for joint in node.joints:
            for k in range(joint.width):
                laws = [joint.dof(k)] + [(law,) for law in further.get(joint.dofs[0] + k, [])]
                forces[joint.dofs[0] + k], damping[joint.dofs[0] + k] = _dof_force(
                    tree, control, joint, k, laws, qpos, qvel, always_implicit
                )
    return forces, damping


def _dof_force(
    tree: Tree,
    control: Any,
    joint: Joint,
    k: int,
    laws: list[tuple[int, ...]],
    qpos: Any,
    qvel: Any,
    always_implicit: bool,
) -> tuple[Any, Any]:
    def value(law: tuple[int, ...], part: int) -> Any:
        rows = tuple(LAW_ROWS * i + part for i in law)
        return control.read(rows if len(set(rows)) > 1 else rows[0])

    if joint.type in (FREE, BALL):
        return clamp(value(laws[0], 0), value(laws[0], 3), value(laws[0], 4)), 0.0
    position, velocity = qpos[joint.qpos[0]], qvel[joint.dofs[0]]
    force: Any = 0.0
    damping: Any = 0.0
    for law in laws:
        c1, c2, low, high = (value(law, part) for part in range(1, LAW_ROWS))
        wanted = value(law, 0) + c1 * position + c2 * velocity
        force = force + clamp(wanted, low, high)
        free = True if always_implicit else (wanted > low) & (wanted < high)
        damping = damping - select(free, c2, 0.0)
    if len(laws) > 1 and tree.model.jnt_actfrclimited[joint.ids[0]]:
        low, high = (float(x) for x in tree.model.jnt_actfrcrange[joint.ids[0]])
        free = True if always_implicit else (force > low) & (force < high)
        force, damping = clamp(force, low, high), select(free, damping, 0.0)
    return force, damping
