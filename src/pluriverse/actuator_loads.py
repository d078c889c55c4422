"""What actuators add to the damping and the armature of the joints and tendons that they drive."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import mujoco

JOINT, JOINT_IN_PARENT, TENDON = 0, 1, 3  # mjtTrn


def add_actuator_loads(arrays: dict[str, np.ndarray], mj_model: mujoco.MjModel) -> None:
    """Adds gear^2 times the actuators' damping and armature to the arrays of what they drive (MuJoCo's
    mj_actuatorDamping and mj_actuatorArmature). `arrays`: the fields of a Model, by name."""
    if not hasattr(mj_model, "actuator_armature"):
        return
    for actuator in range(mj_model.nactuator):
        loads = {
            "damping": mj_model.actuator_damping[actuator],
            "dampingpoly": mj_model.actuator_dampingpoly[actuator],
            "armature": mj_model.actuator_armature[actuator],
        }
        if not any(np.any(load) for load in loads.values()):
            continue
        kind, target = mj_model.actuator_trntype[actuator], mj_model.actuator_trnid[actuator, 0]
        gear = mj_model.actuator_gear[mj_model.actuator_outadr[actuator], 0]
        owner = {JOINT: "dof", JOINT_IN_PARENT: "dof", TENDON: "tendon"}.get(kind)
        if owner is None:
            continue
        rows = mj_model.dof_jntid == target if owner == "dof" else target
        for name, load in loads.items():
            changed = arrays[f"{owner}_{name}"].copy()
            changed[rows] += gear**2 * load
            changed.setflags(write=False)
            arrays[f"{owner}_{name}"] = changed
