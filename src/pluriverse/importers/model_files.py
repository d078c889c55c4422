"""Where model files are: the working directory, this package's own robots, MuJoCo's menagerie."""

from __future__ import annotations

import importlib
import os
from pathlib import Path

from pluriverse.errors import GenesisException
from pluriverse.morphs.files import check_mjcf_root, root_tag
from pluriverse.typing import PathLike

ASSETS = Path(__file__).resolve().parents[1] / "assets"

_MENAGERIE = "menagerie:"


def find_model_file(file: PathLike) -> Path:
    """The path of an MJCF file. `menagerie:NAME` or `menagerie:NAME/ENTRY` names a robot of mujoco-menagerie.

    Raises GenesisException where there is none, or it is of another kind by its outermost element.
    """
    name = os.fspath(file)
    if name.startswith(_MENAGERIE):
        return _menagerie_file(name.removeprefix(_MENAGERIE))
    path = _local_file(name)
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise GenesisException(f"The file '{name}' cannot be read: {error}.") from error
    check_mjcf_root(root_tag(text), f"the file '{name}'")
    return path


def _local_file(name: str) -> Path:
    path = Path(name).expanduser()
    candidates = [path] if path.is_absolute() else [Path.cwd() / path, ASSETS / path]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    own = sorted(str(found.relative_to(ASSETS)) for found in ASSETS.rglob("*") if found.suffix in (".xml", ".urdf"))
    raise GenesisException(
        f"There is no file '{name}'. Looked at {', '.join(map(str, candidates))}. "
        f"This package has {', '.join(own)}; 'menagerie:NAME' takes a robot of mujoco-menagerie."
    )


def _menagerie_file(name: str) -> Path:
    try:
        menagerie = importlib.import_module("mujoco_menagerie")
    except ImportError:
        raise GenesisException(
            f"'{_MENAGERIE}{name}' needs the package mujoco-menagerie: pip install 'pluriverse[robots]'."
        ) from None
    robot_name, _, entry = name.partition("/")
    try:
        robot = menagerie.get(robot_name)
        return Path(robot.xml(entry or robot.default_model))
    except menagerie.MenagerieError as error:
        raise GenesisException(f"'{_MENAGERIE}{name}': {error}") from error
