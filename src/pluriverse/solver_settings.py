"""Options of a compiled scene -> the settings of the step."""

from __future__ import annotations

from pluriverse.constants import integrator
from pluriverse.model import Model
from pluriverse.options import RigidOptions
from pluriverse.step import StepSettings


def step_settings(model: Model, rigid: RigidOptions) -> StepSettings:
    """What `model.opt` says, where the options of scene and files are merged already."""
    import mujoco

    opt = model.opt

    def enabled(name: str) -> bool:
        return not opt.disableflags & int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{name}"))

    constraints = enabled("CONSTRAINT")
    return StepSettings(
        dt=opt.timestep,
        integrator=rigid.integrator.name,
        iterations=opt.iterations,
        ls_iterations=opt.ls_iterations,
        tolerance=opt.tolerance,
        ls_tolerance=opt.ls_tolerance,
        impratio=opt.impratio,
        contacts=constraints and enabled("CONTACT"),
        limits=constraints and enabled("LIMIT"),
        equalities=constraints and enabled("EQUALITY"),
        friction_loss=constraints and enabled("FRICTIONLOSS"),
        actuation=enabled("ACTUATION"),
        springs=enabled("SPRING"),
        dampers=enabled("DAMPER"),
        gravity=enabled("GRAVITY"),
        eulerdamp=enabled("EULERDAMP"),
        refsafe=enabled("REFSAFE"),
    )


def substeps_of(model: Model, dt: float) -> int:
    """Physics steps in a control step of `dt` [s]."""
    return max(1, round(dt / model.opt.timestep))
