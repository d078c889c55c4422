"""The folder that keeps compiled kernels between runs: where it is, and what takes its place if it cannot be used."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "PLURIVERSE_CACHE_DIR"


@dataclass(frozen=True)
class CacheFolder:
    """A place for compiled kernels, as the environment names it.

    path: absolute, whatever the working directory becomes; None where the user's home is not known.
    named_by: the variable and its value in words, for messages.
    """

    path: Path | None
    named_by: str

    def fault(self) -> str | None:
        """Why nothing can be written here, None where it can. Makes the folder."""
        if self.path is None:
            return "this user has no home directory"
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            # Folders inside may belong to another user: those of this package and Warp's, one for each of its versions.
            for folder in (self.path, *self.path.glob("*/"), *self.path.glob("warp/*/")):
                with tempfile.TemporaryFile(dir=folder):
                    pass
        except OSError as error:
            return str(error)
        return None


def cache_folder(environ: Mapping[str, str]) -> CacheFolder:
    """$PLURIVERSE_CACHE_DIR, else `pluriverse` in the user's cache directory."""
    if environ.get(VARIABLE):
        return CacheFolder(_absolute(environ[VARIABLE]), f"{VARIABLE}={environ[VARIABLE]!r}")
    root = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME"
    given = environ.get(root)
    path = _absolute(os.path.join(given or "~/.cache", "pluriverse"))
    return CacheFolder(path, f"{root}={given!r}" if given else f"{VARIABLE} is not set: the user's cache directory")


def temporary_folder() -> Path:
    """A folder of this process, removed at its exit."""
    folder = Path(tempfile.mkdtemp(prefix="pluriverse-"))
    atexit.register(_remove, folder, os.getpid())
    return folder


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # forked children come here too
        shutil.rmtree(folder, ignore_errors=True)


def _absolute(path: str) -> Path | None:
    try:
        return Path(os.path.abspath(Path(path).expanduser()))
    except RuntimeError:  # no home directory
        return None
