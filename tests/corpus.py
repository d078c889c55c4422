"""All MJCF files of the packages that tests may read, by short name, as MuJoCo compiles them; what is refused."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
from pathlib import Path

import mujoco
import pytest

from pluriverse.errors import GenesisException
from pluriverse.importers.refusals import refuse_unsupported

# Short name -> package and the folder of it that holds the files. The packages are in `robots.txt` and pyproject.toml.
PACKAGES = {
    "own": ("pluriverse", "assets"),
    "gym": ("gymnasium", "envs/mujoco/assets"),
    "dm": ("dm_control", ""),
    "mjlab": ("mjlab", ""),
    "mujoco": ("mujoco", "testdata"),
    "warp": ("mujoco_warp", "test_data"),
    "robotics": ("gymnasium_robotics", "envs"),
    "robosuite": ("robosuite_models", "assets"),
}
# Beginnings of names of files that take seconds to compile or to step on floats: in the long test only.
LARGE = (
    "dm/locomotion/walkers", "dm/suite/dog", "dm/suite/humanoid_CMU", "mjlab/asset_zoo/robots/unitree",
    "warp/aloha_pot", "warp/collision_sdf", "warp/convex_collision", "warp/flex", "warp/humanoid", "warp/primitives",
    "robotics/assets/fetch", "robotics/assets/kitchen", "robosuite/robots", "robosuite/grippers/yumi",
)  # fmt: skip
FURTHER = "PLURIVERSE_CORPUS"  # an environment variable: further folders, `name=path` joined by `:`
WHOLE = re.compile(r"<mujoco[\s>]")  # others are parts that models include
# One line of a refusal: the elements by name (or number, where they have none), or an option, and the reason.
FINDING = re.compile(r"^  - (option \S.*|.*\b[a-z]+ ('.+'|number \d+ \(unnamed).*): \S.*$")


@functools.cache
def files() -> dict[str, Path]:
    """Every MJCF file that may be a whole model, by short name: `dm/suite/dog`."""
    found = {}
    for short, root in _roots().items():
        for path in sorted(root.rglob("*.xml")):
            if WHOLE.search(path.read_text(encoding="utf-8", errors="replace")):
                found[f"{short}/{path.relative_to(root).with_suffix('').as_posix()}"] = path
    return found


def quick() -> list[str]:
    """The names without the large ones and those of further folders."""
    return [name for name in files() if name.partition("/")[0] in PACKAGES and not name.startswith(LARGE)]


@functools.lru_cache(maxsize=1)
def compiled(name: str) -> mujoco.MjModel:
    """The file as MuJoCo compiles it, not to be changed. A test that asks for one that MuJoCo cannot is skipped."""
    try:
        return mujoco.MjModel.from_xml_path(str(files()[name]))
    except ValueError as error:
        pytest.skip(f"MuJoCo does not compile it: {error}")


def refusals(mj_model: mujoco.MjModel) -> list[str]:
    """The findings of a model that is refused, each naming elements; empty where it is accepted."""
    try:
        refuse_unsupported(mj_model)
    except GenesisException as error:
        findings = [line for line in str(error).splitlines() if line.startswith("  - ")]
        assert findings, f"a refusal without a finding: {error}"
        nameless = [line for line in findings if not FINDING.match(line)]
        assert not nameless, f"findings that name no element: {nameless}"
        return [line.removeprefix("  - ") for line in findings]
    return []


def _roots() -> dict[str, Path]:
    roots = {}
    for short, (package, folder) in PACKAGES.items():
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            roots[short] = Path(spec.origin).parent / folder
    for entry in filter(None, os.environ.get(FURTHER, "").split(":")):
        short, _, path = entry.partition("=")
        roots[short] = Path(path)
    return roots
