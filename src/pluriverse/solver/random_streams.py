"""Random numbers of environments: streams keyed by (seed, global environment number, purpose)."""

from __future__ import annotations

import math
import secrets
import zlib
from collections.abc import Sequence

import torch

from pluriverse.errors import GenesisException
from pluriverse.runtime import runtime
from pluriverse.solver.indexing import EnvAxis, Envs
from pluriverse.typing import IndexLike

Bound = float | torch.Tensor


class RandomStream:
    """Random numbers for one purpose, such as "reset": a sequence of its own for every environment.

    What an environment draws follows from `gs.init`'s seed, its global number, the purpose and how often it drew
    before: not from the number of environments or ranks, nor from what other environments draw. Tensors lie on
    `gs.device`, in `gs.tc_float`; nothing waits for the device. With `envs_idx` a mask on the device, the result has a
    row for every environment, as setters take it, and those outside the mask draw nothing.

    shape: of the numbers of one environment; results are ([n_envs,] *shape).
    """

    def __init__(self, purpose: str, seed: int, first_env: int, axis: EnvAxis, like: torch.Tensor) -> None:
        self._key = zlib.crc32(purpose.encode())
        self._seed, self._axis, self._dtype = seed, axis, like.dtype
        self._envs = torch.arange(first_env, first_env + axis.total, device=like.device)
        self.draws = torch.zeros(axis.total, dtype=torch.int64, device=like.device)  # how often each has drawn

    def uniform(
        self, shape: int | Sequence[int] = (), low: Bound = 0.0, high: Bound = 1.0, envs_idx: IndexLike = None
    ) -> torch.Tensor:
        """Uniform from low up to high: numbers, or tensors that broadcast to the result."""
        shape = _checked(shape)
        envs = self._axis.select(envs_idx).unique()
        return self._shaped(self._unit(envs, math.prod(shape)), shape, envs) * (high - low) + low

    def normal(
        self, shape: int | Sequence[int] = (), mean: Bound = 0.0, std: Bound = 1.0, envs_idx: IndexLike = None
    ) -> torch.Tensor:
        """Normal with mean and standard deviation: numbers, or tensors that broadcast to the result."""
        shape = _checked(shape)
        envs, count = self._axis.select(envs_idx).unique(), math.prod(shape)
        radius, angle = self._unit(envs, 2 * count).split(count, dim=1)
        # Box and Muller, 1958; 1 - u lies in (0, 1]
        normal = torch.sqrt(-2.0 * torch.log1p(-radius)) * torch.cos(2 * math.pi * angle)
        return self._shaped(normal, shape, envs) * std + mean

    def integers(
        self, low: int, high: int, shape: int | Sequence[int] = (), envs_idx: IndexLike = None
    ) -> torch.Tensor:
        """int64 from low to high - 1."""
        shape = _checked(shape)
        if not 0 < high - low <= 2**31:
            raise GenesisException(f"integers({low}, {high}): high must lie above low, by at most 2**31.")
        envs = self._axis.select(envs_idx).unique()
        words = self._words(envs, math.prod(shape))
        return self._shaped((words * (high - low)) >> 32, shape, envs) + low

    def _unit(self, envs: Envs, count: int) -> torch.Tensor:
        """(environments, count) in [0, 1), as fine as the float type."""
        if self._dtype == torch.float64:
            high, low = self._words(envs, 2 * count).split(count, dim=1)
            return ((high >> 5) * 2**26 + (low >> 6)).to(self._dtype) * 2.0**-53
        return (self._words(envs, count) >> 8).to(self._dtype) * 2.0**-24

    def _words(self, envs: Envs, count: int) -> torch.Tensor:
        runtime.warp()
        from pluriverse.solver.philox import philox

        if envs.mask is not None:
            words = philox(self.draws, self._envs, self._seed, self._key, count)
            self.draws += envs.mask
            return words
        words = philox(self.draws[envs.where], self._envs[envs.where], self._seed, self._key, count)
        if isinstance(envs.where, torch.Tensor):
            self.draws.index_add_(0, envs.where, torch.ones_like(envs.where))
        else:
            self.draws[envs.where] += 1
        return words

    def restart(self, seed: int) -> None:
        """Begin the sequences of this seed."""
        self._seed = seed
        self.draws.zero_()

    def _shaped(self, numbers: torch.Tensor, shape: tuple[int, ...], envs: Envs) -> torch.Tensor:
        return numbers.reshape(-1, *shape) if envs.batched else numbers.reshape(shape)


class RandomStreams:
    """The streams of one scene, by purpose."""

    def __init__(self, axis: EnvAxis, like: torch.Tensor, first_env: int) -> None:
        self.first_env = first_env
        self.seed = runtime.seed if runtime.seed is not None else secrets.randbits(32)
        self._axis, self._like = axis, like
        self._streams: dict[str, RandomStream] = {}

    @torch.inference_mode(False)  # its counters outlive the caller's mode
    def stream(self, purpose: str) -> RandomStream:
        """The stream of this purpose: the same object at every call."""
        if not isinstance(purpose, str) or not purpose:
            raise GenesisException(f"random_stream: purpose={purpose!r}; give a string such as 'reset'.")
        if purpose not in self._streams:
            self._streams[purpose] = RandomStream(purpose, self.seed, self.first_env, self._axis, self._like)
        return self._streams[purpose]

    def counters(self) -> dict[str, torch.Tensor]:
        """(n_envs,) int64 of every purpose: how often each environment has drawn."""
        return {purpose: stream.draws for purpose, stream in self._streams.items()}

    def restore(self, seed: int, counters: dict[str, torch.Tensor]) -> None:
        """Goes on with the streams of a saved state; those that it does not know start anew."""
        self.seed = seed
        for stream in self._streams.values():
            stream.restart(seed)
        for purpose, draws in counters.items():
            self.stream(purpose).draws.copy_(draws)


def _checked(shape: int | Sequence[int]) -> tuple[int, ...]:
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if not all(isinstance(size, int) and size >= 0 for size in sizes):
        raise GenesisException(f"shape={shape!r}; give a size or a tuple of sizes, those of one environment.")
    return sizes
