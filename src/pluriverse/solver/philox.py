"""Philox 4x32-10, the counter-based generator of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).

Random numbers are a function of a counter and a key, so that every environment has a sequence of its own, whichever
process, device or batch it lies in. Imported at first use, because Warp is.
"""

from __future__ import annotations

from typing import Any

import torch
import warp as wp

MULTIPLIERS = wp.constant(wp.vec2ul(wp.uint64(0xD2511F53), wp.uint64(0xCD9E8D57)))
KEY_STEPS = wp.constant(wp.vec2ul(wp.uint64(0x9E3779B9), wp.uint64(0xBB67AE85)))
LOW = wp.constant(wp.uint64(0xFFFFFFFF))
HALF = wp.constant(wp.uint64(32))


@wp.kernel(enable_backward=False, module="unique")
def philox_words(
    draws: wp.array(dtype=wp.int64),  # type: ignore[valid-type]
    envs: wp.array(dtype=wp.int64),  # type: ignore[valid-type]
    seed: wp.int64,
    purpose: wp.int64,
    words: wp.array2d(dtype=wp.int64),  # type: ignore[valid-type]
) -> None:
    """Row i of words: 32-bit numbers of the counters (block, draws[i], purpose) under the key (seed, envs[i])."""
    i, block = wp.tid()  # type: ignore[misc]
    c0, c1 = wp.uint64(block), wp.uint64(draws[i]) & LOW
    c2, c3 = wp.uint64(draws[i]) >> HALF, wp.uint64(purpose)
    k0, k1 = wp.uint64(seed), wp.uint64(envs[i])
    for _ in range(10):
        first, second = MULTIPLIERS[0] * c0, MULTIPLIERS[1] * c2
        c0, c1 = (second >> HALF) ^ c1 ^ k0, second & LOW
        c2, c3 = (first >> HALF) ^ c3 ^ k1, first & LOW
        k0 = (k0 + KEY_STEPS[0]) & LOW
        k1 = (k1 + KEY_STEPS[1]) & LOW
    words[i, 4 * block] = wp.int64(c0)
    words[i, 4 * block + 1] = wp.int64(c1)
    words[i, 4 * block + 2] = wp.int64(c2)
    words[i, 4 * block + 3] = wp.int64(c3)


def philox(draws: torch.Tensor, envs: torch.Tensor, seed: int, purpose: int, count: int) -> torch.Tensor:
    """(n, count) int64 below 2**32. draws, envs: (n,) int64. On CUDA queued on torch's current stream."""
    blocks = -(-count // 4)
    words = torch.empty(len(draws), 4 * blocks, dtype=torch.int64, device=draws.device)
    stream: Any = None
    if draws.is_cuda:
        stream = wp.stream_from_torch(torch.cuda.current_stream(draws.device))
    wp.launch(
        philox_words,
        dim=(len(draws), blocks),
        inputs=[wp.from_torch(draws), wp.from_torch(envs), seed, purpose, wp.from_torch(words)],
        device=str(draws.device),
        stream=stream,
    )
    return words[:, :count]
