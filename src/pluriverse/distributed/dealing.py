"""Dealing saved worlds out to another number of ranks, by the global numbers of their environments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from pluriverse.errors import GenesisException

OF_ALL = ("format", "model", "dt", "seed", "steps", "holders", "step_of_reset")
"""What a saved scene holds beside its environments; ranks must agree in it."""


def saved_envs(state: Mapping[str, Any]) -> range:
    """The global numbers of the environments in what `Scene.state_dict` returned."""
    return range(state["first_env"], state["first_env"] + len(state["envs"]["motion"]))


def deal(
    states: Sequence[Mapping[str, Any]], extras: Sequence[Any], wanted: range, device: torch.device
) -> tuple[dict[str, Any], Any]:
    """The saved scene of the environments `wanted`, out of those of all ranks, and what else was saved with them.

    extras: one tree for each rank, of tensors (n_envs, ...) in dictionaries, lists and tuples.

    Raises GenesisException where an environment is missing or saved twice, or ranks had not made the same steps.
    """
    pieces = _pieces([saved_envs(state) for state in states], wanted)
    for name in OF_ALL:
        values = [state[name] for state in states]
        if any(value != values[0] for value in values):
            raise GenesisException(
                f"The ranks of the checkpoint differ in {name!r}: {values}. Their worlds cannot be dealt out to "
                "another number of ranks; go on with as many as before."
            )
    names = set.intersection(*(set(state["envs"]) for state in states))
    lost = set.union(*(set(state["envs"]) for state in states)) - names
    if lost:
        raise GenesisException(
            f"Not all ranks of the checkpoint have {sorted(lost)}: random streams that some ranks only have used. Go "
            "on with as many ranks as before."
        )
    envs = {name: _joined([state["envs"][name] for state in states], pieces, device) for name in states[0]["envs"]}
    return {**states[0], "first_env": wanted.start, "envs": envs}, _joined(extras, pieces, device)


def _pieces(sources: Sequence[range], wanted: range) -> list[tuple[int, slice]]:
    """Which part of which source to take, in the order of the environments."""
    pieces = []
    for number, source in enumerate(sources):
        first, stop = max(source.start, wanted.start), min(source.stop, wanted.stop)
        if first < stop:
            pieces.append((first, stop, number, slice(first - source.start, stop - source.start)))
    pieces.sort()
    ends = [wanted.start, *(stop for _, stop, _, _ in pieces)]
    if [first for first, *_ in pieces] != ends[:-1] or ends[-1] != wanted.stop:
        held = ", ".join(f"{source.start} to {source.stop - 1}" for source in sources)
        raise GenesisException(
            f"Environments {wanted.start} to {wanted.stop - 1} are wanted here, and the checkpoint's ranks hold "
            f"{held}. Build each rank's scene with n_envs and first_env from Rank.envs(total), total being the same as "
            "before."
        )
    return [(number, cut) for _, _, number, cut in pieces]


def _joined(trees: Sequence[Any], pieces: Sequence[tuple[int, slice]], device: torch.device) -> Any:
    """Trees of the same form, whose tensors are cut along their first dimension and joined."""
    first = trees[0]
    if isinstance(first, torch.Tensor):
        return torch.cat([trees[number][cut] for number, cut in pieces]).to(device)
    if isinstance(first, Mapping):
        return {key: _joined([tree[key] for tree in trees], pieces, device) for key in first}
    if isinstance(first, (list, tuple)):
        return type(first)(_joined([tree[i] for tree in trees], pieces, device) for i in range(len(first)))
    return first
