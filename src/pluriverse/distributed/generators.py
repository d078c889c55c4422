"""The generators of one process: those of torch, numpy and `random`, which differ from rank to rank."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch


def seed_generators(*key: int) -> None:
    """Seed them all by (seed of the job, rank, ...): no two keys share a sequence, as seed + rank would."""
    torch_seed, numpy_seed, python_seed = np.random.SeedSequence(key).generate_state(3).tolist()
    torch.manual_seed(torch_seed)  # its CUDA generators too
    np.random.seed(numpy_seed)
    random.seed(python_seed)


def generator_states(device: torch.device) -> dict[str, Any]:
    """From which they go on, in tensors, numbers and lists."""
    kind, keys, position, has_gauss, cached = np.random.get_state()
    version, numbers, gauss = random.getstate()
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state(device) if device.type == "cuda" else None,
        "numpy": [kind, torch.from_numpy(np.asarray(keys).astype(np.int64)), position, has_gauss, cached],
        "random": [version, torch.tensor(numbers), gauss],
    }


def restore_generators(states: dict[str, Any], device: torch.device) -> None:
    """Go on from saved states, which lie on the host."""
    torch.set_rng_state(states["torch"])
    if states["cuda"] is not None and device.type == "cuda":
        torch.cuda.set_rng_state(states["cuda"], device)
    kind, keys, position, has_gauss, cached = states["numpy"]
    np.random.set_state((kind, keys.numpy().astype(np.uint32), position, has_gauss, cached))
    version, numbers, gauss = states["random"]
    random.setstate((version, tuple(numbers.tolist()), gauss))
