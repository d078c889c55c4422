"""What the keyframes of a model file hold of one entity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pluriverse.model import Model

if TYPE_CHECKING:
    from pluriverse.importers.scene_spec import EntityLayout


def keyframe_values(model: Model, layout: EntityLayout, key: int) -> dict[str, np.ndarray]:
    """The numbers of a keyframe, an index over the scene, by MuJoCo's names."""
    mocap = [int(i) for i in model.body_mocapid[list(layout.bodies)] if i >= 0]
    return {
        "qpos": model.key_qpos[key, list(layout.qpos)],
        "qvel": model.key_qvel[key, list(layout.dofs)],
        "ctrl": model.key_ctrl[key, list(layout.controls)],
        "act": model.key_act[key, list(layout.activations)],
        "mocap_pos": model.key_mpos[key].reshape(-1, 3)[mocap],
        "mocap_quat": model.key_mquat[key].reshape(-1, 4)[mocap],
    }
