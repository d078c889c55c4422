"""Which actuators are control laws of a dof, which are general ones, and which dofs these drive.

The simplest actuators (on a hinge or slide, without activation, of constant gain and affine bias) are control laws,
whose coefficients are inputs of the step: users' commands are laws of the same kind. All others are general
actuators, which read their controls in the step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pluriverse.model import Model

JOINT, JOINT_IN_PARENT, SLIDER_CRANK, TENDON, SITE, BODY, ORIENTATION = range(7)  # mjtTrn
SLIDE = 2  # mjtJoint: it and the hinge, 3, have one dof
WRAPPED_JOINT, WRAPPED_SITE, WRAPPED_SPHERE, WRAPPED_CYLINDER = 1, 3, 4, 5  # mjtWrap
NO_DYNAMICS, FIXED_GAIN, AFFINE_GAIN, AFFINE_BIAS = 0, 0, 1, 1  # mjtDyn, mjtGain, mjtBias
GROUPS = range(31)  # that can be disabled
DISABLE_CLAMPCTRL = 1 << 8  # mjtDisableBit


@dataclass(frozen=True)
class ControlLaw:
    """A law adds clamp(c0 + c1 q + c2 v, lo, hi) to the generalized force of one degree of freedom."""

    dof: int
    actuator: int  # -1: none


def control_laws(model: Model) -> tuple[ControlLaw, ...]:
    """The model's laws. Law d < nv belongs to dof d and to its first actuator; the others follow in actuator order."""
    first = [-1] * model.nv
    further = []
    for actuator in range(model.nactuator):
        if not is_law(model, actuator):
            continue
        dof = int(model.jnt_dofadr[model.actuator_trnid[actuator, 0]])
        if first[dof] < 0:
            first[dof] = actuator
        else:
            further.append(ControlLaw(dof, actuator))
    return (*(ControlLaw(dof, actuator) for dof, actuator in enumerate(first)), *further)


def is_law(model: Model, actuator: int) -> bool:
    """Whether an actuator is a control law."""
    if model.actuator_trntype[actuator] not in (JOINT, JOINT_IN_PARENT) or is_disabled(model, actuator):
        return False
    gain, bias = model.actuator_gaintype[actuator], model.actuator_biastype[actuator]
    constant_gain = gain == FIXED_GAIN or (gain == AFFINE_GAIN and not model.actuator_gainprm[actuator, 1:3].any())
    return bool(
        model.jnt_type[model.actuator_trnid[actuator, 0]] >= SLIDE
        and model.actuator_dyntype[actuator] == NO_DYNAMICS
        and not model.actuator_delay[actuator]
        and constant_gain
        and bias <= AFFINE_BIAS
    )


def is_disabled(model: Model, actuator: int) -> bool:
    """Whether the options switch off the actuator's group."""
    group = int(model.actuator_group[actuator])
    return group in GROUPS and bool(model.opt.disableactuator & (1 << group))


def general_actuators(model: Model) -> tuple[int, ...]:
    """The actuators that are no control laws, disabled ones among them."""
    return tuple(actuator for actuator in range(model.nactuator) if not is_law(model, actuator))


def clamps_controls(model: Model) -> bool:
    """Whether controls are clamped to their ranges."""
    return not model.opt.disableflags & DISABLE_CLAMPCTRL


def actuator_of_control(model: Model) -> np.ndarray:
    """(nu,) the actuator that each control belongs to."""
    return np.repeat(np.arange(model.nactuator), model.actuator_ctrlnum)


def one_law_each(model: Model) -> bool:
    """Whether no dof has more than its one law: no further laws, no general actuators, no sums that are clamped."""
    return len(control_laws(model)) == model.nv and not general_actuators(model) and not clamped_sums(model)


def clamped_sums(model: Model) -> frozenset[int]:
    """Dofs whose actuator forces are clamped by the joint's range in the step, since they are more than one law."""
    laws = [law.dof for law in control_laws(model)]
    driven = {dof for actuator in general_actuators(model) for dof in _driven_dofs(model, actuator)}
    limited = (dof for dof in range(model.nv) if model.jnt_actfrclimited[model.dof_jntid[dof]])
    return frozenset(
        dof for dof in limited if dof in driven or laws.count(dof) > 1 or model.jnt_actgravcomp[model.dof_jntid[dof]]
    )


def _driven_dofs(model: Model, actuator: int) -> Iterator[int]:
    """The dofs that a general actuator may push."""
    kind, targets = model.actuator_trntype[actuator], model.actuator_trnid[actuator].tolist()
    if kind in (JOINT, JOINT_IN_PARENT):
        yield from np.flatnonzero(model.dof_jntid == targets[0]).tolist()
    elif kind == TENDON:
        first = model.tendon_adr[targets[0]]
        for step in range(first, first + model.tendon_num[targets[0]]):
            wrapped, target = model.wrap_type[step], model.wrap_objid[step]
            if wrapped == WRAPPED_JOINT:
                yield int(model.jnt_dofadr[target])
            elif wrapped == WRAPPED_SITE:
                yield from _carrying_dofs(model, model.site_bodyid[target])
            elif wrapped in (WRAPPED_SPHERE, WRAPPED_CYLINDER):
                yield from _carrying_dofs(model, model.geom_bodyid[target])
    elif kind == ORIENTATION and targets[1] < 0:
        yield from np.flatnonzero(model.dof_jntid == targets[0]).tolist()
    else:
        for site in targets if kind in (SLIDER_CRANK, SITE, ORIENTATION) else ():
            if site >= 0:
                yield from _carrying_dofs(model, model.site_bodyid[site])


def _carrying_dofs(model: Model, body: int) -> Iterator[int]:
    """The dofs that move a body."""
    weld = int(model.body_weldid[body])
    dof = int(model.body_dofadr[weld] + model.body_dofnum[weld]) - 1
    while dof >= 0 and model.body_dofnum[weld]:
        yield dof
        dof = int(model.dof_parentid[dof])
