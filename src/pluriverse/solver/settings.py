"""Options of a compiled scene -> the settings of the step."""

from __future__ import annotations

from pluriverse.errors import GenesisException
from pluriverse.model import Model
from pluriverse.options import RigidOptions, SimOptions
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
        cone="elliptic" if opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC else "pyramidal",
        contacts=constraints and enabled("CONTACT"),
        max_contacts=rigid.max_contacts,
        limits=constraints and enabled("LIMIT"),
        equalities=constraints and enabled("EQUALITY"),
        friction_loss=constraints and enabled("FRICTIONLOSS"),
        actuation=enabled("ACTUATION"),
        clamp_ctrl=enabled("CLAMPCTRL"),
        springs=enabled("SPRING"),
        dampers=enabled("DAMPER"),
        gravity=enabled("GRAVITY"),
        eulerdamp=enabled("EULERDAMP"),
        refsafe=enabled("REFSAFE"),
    )


def substeps_of(model: Model, sim: SimOptions) -> int:
    """Physics steps in one control step of `sim.dt`, at the time step of the model. An error if they do not fit."""
    substeps = round(sim.dt / model.opt.timestep)
    fits = substeps >= 1 and abs(substeps * model.opt.timestep - sim.dt) <= 1e-6 * sim.dt
    if not fits or sim.substeps not in (1, substeps):
        raise GenesisException(
            f"SimOptions(dt={sim.dt:g}, substeps={sim.substeps}) and a physics step of {model.opt.timestep:g} s "
            "(RigidOptions.dt, or the file whose options are used) do not fit: dt must be substeps physics steps. "
            "Leave RigidOptions.dt out, or let it divide SimOptions.dt and leave substeps out."
        )
    return substeps
