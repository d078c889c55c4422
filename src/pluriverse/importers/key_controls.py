"""Controls of keyframes around the merge of model files.

MuJoCo 4.0 attaches a keyframe only where its ctrl has as many numbers as there are actuators, and some actuators have
several controls. Those keyframes are attached without their ctrl, which is written into the compiled model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import mujoco


def take_key_controls(spec: mujoco.MjSpec) -> dict[int, np.ndarray]:
    """Takes the ctrl that MuJoCo would refuse from the keyframes of a spec: by number of the keyframe."""
    taken = {}
    for number, key in enumerate(spec.keys):
        if len(key.ctrl) not in (0, len(spec.actuators)):
            taken[number] = np.array(key.ctrl)
            key.ctrl = []
    return taken


def put_key_controls(mj_model: mujoco.MjModel, taken: dict[int, np.ndarray], keyframe: int, actuator: int) -> None:
    """Writes them into the compiled model. keyframe, actuator: the first ones of the entity."""
    for number, ctrl in taken.items():
        first = mj_model.actuator_ctrladr[actuator]
        mj_model.key_ctrl[keyframe + number, first : first + len(ctrl)] = ctrl
