"""Real model files from the packages in `robots.txt`; a test that needs a missing one is skipped."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

FILES = {
    "gym_ant": "gymnasium:envs/mujoco/assets/ant.xml",
    "gym_humanoid": "gymnasium:envs/mujoco/assets/humanoid.xml",
    "gym_pusher": "gymnasium:envs/mujoco/assets/pusher_v5.xml",
    "dm_humanoid": "dm_control:suite/humanoid.xml",
    "dm_humanoid_cmu": "dm_control:suite/humanoid_CMU.xml",
    "dm_finger": "dm_control:suite/finger.xml",
    "dm_walker": "dm_control:suite/walker.xml",
    "dm_reacher": "dm_control:suite/reacher.xml",
    "go1": "mjlab:asset_zoo/robots/unitree_go1/xmls/go1.xml",
    "g1": "mjlab:asset_zoo/robots/unitree_g1/xmls/g1.xml",
    "yam": "mjlab:asset_zoo/robots/i2rt_yam/xmls/yam.xml",
}


def robot_file(name: str) -> str:
    """The path of one of `FILES`. The package is not imported."""
    package, _, inside = FILES[name].partition(":")
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        pytest.skip(f"{package} is not installed")
    path = Path(spec.origin).parent / inside
    if not path.is_file():
        pytest.skip(f"{package} holds no {inside}")
    return str(path)
