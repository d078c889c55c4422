"""The worlds as a dictionary of tensors, from which they go on bit for bit: what checkpoints store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from pluriverse.errors import GenesisException

FORMAT = 1


def copies(live: Mapping[str, torch.Tensor], n_envs: int) -> dict[str, torch.Tensor]:
    """Tensors (n_envs, ...) of live ones (..., N), environments first, so that they can be cut and joined."""
    return {name: tensor[..., :n_envs].movedim(-1, 0).contiguous().clone() for name, tensor in live.items()}


def restore(live: Mapping[str, torch.Tensor], saved: Mapping[str, Any], n_envs: int) -> None:
    """Writes saved tensors (n_envs, ...) into the live ones, all of them or, where one does not fit, none."""
    if saved.keys() != live.keys():
        raise GenesisException(
            f"The saved state has {sorted(saved.keys() - live.keys())} too much and lacks "
            f"{sorted(live.keys() - saved.keys())}: it was written by another version of this package."
        )
    for name, tensor in live.items():
        shape, given = (n_envs, *tensor.shape[:-1]), saved[name]
        if not isinstance(given, torch.Tensor) or tuple(given.shape) != shape or given.dtype != tensor.dtype:
            found = f"{tuple(given.shape)} {given.dtype}" if isinstance(given, torch.Tensor) else repr(given)
            raise GenesisException(
                f"The saved state's {name!r} is {found}, this scene needs {shape} {tensor.dtype}: it was saved with "
                "another number of environments or another precision."
            )
    for name, tensor in live.items():
        tensor[..., :n_envs].copy_(saved[name].movedim(0, -1))


def check_origin(saved: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    """Raises where the state was saved from another kind of scene: `own` holds its format, model and time step."""
    for name, value in own.items():
        if saved.get(name) != value:
            raise GenesisException(
                f"The saved state is of another scene: its {name} is {saved.get(name)!r}, this scene's is {value!r}. "
                "Add the same entities, in the same order, with the same options."
            )
