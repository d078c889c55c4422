"""Checkpoint files: written whole or not at all, read without running code from them."""

from __future__ import annotations

import contextlib
import os
import pickle
from pathlib import Path
from typing import Any

import torch

from pluriverse.errors import GenesisException


def save_file(path: Path, data: Any) -> None:
    """Write tensors, numbers, strings, lists and dictionaries of them.

    A reader sees the former file or the new one, also after a power cut: the data reach the disk under another name
    first. Raises GenesisException where that fails, with the former file as it was.
    """
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(partial, "wb") as file:
            torch.save(data, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
        _sync_folder(path.parent)
    except (OSError, RuntimeError) as error:  # torch reports a write that fell short as a RuntimeError
        raise GenesisException(
            f"The checkpoint {path} could not be written: {error}. What was there before is unharmed. Is the disk "
            "full? Free some space, or keep fewer checkpoints."
        ) from error
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


def load_file(path: Path, mmap: bool = False) -> Any:
    """What `save_file` wrote, its tensors on the host. mmap: read a tensor when it is used."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=mmap)
    except FileNotFoundError:
        raise GenesisException(f"There is no checkpoint {path}.") from None
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise GenesisException(f"The checkpoint {path} cannot be read: {error}.") from error


def _sync_folder(folder: Path) -> None:
    """Have the file's new name reach the disk too."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
