"""The arguments of `gs.init`: their names and values are refused here, in the words of the user's call."""

from __future__ import annotations

import functools
import inspect
import math
import numbers
from collections.abc import Callable
from typing import ParamSpec

import numpy as np

from pluriverse.constants import Backend
from pluriverse.errors import GenesisException, did_you_mean

Arguments = ParamSpec("Arguments")


def known_arguments(init: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """Refuses arguments that `init` does not have as an option does, by the nearest name."""
    signature = inspect.signature(init)
    allowed = [name for name in signature.parameters if name != "self"]

    @functools.wraps(init)
    def checked(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        for name in kwargs:
            if name not in allowed:
                hint = did_you_mean(name, allowed, cutoff=0.5)
                raise GenesisException(f"gs.init has no argument '{name}'. {hint}Allowed: {', '.join(allowed)}.")
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise GenesisException(f"gs.init: {error}. Allowed: {', '.join(allowed)}.") from None
        init(*args, **kwargs)

    return checked


def check_backend(backend: Backend | None) -> Backend | None:
    if backend is None or isinstance(backend, Backend):
        return backend
    raise GenesisException(f"backend={backend!r} is no backend. Give gs.cpu, gs.gpu, gs.cuda or None.")


def check_seed(seed: int | None) -> int | None:
    if seed is None:
        return None
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**32:
        raise GenesisException(f"seed={seed!r} is not allowed: numpy takes integers from 0 to 2**32 - 1.")
    return int(seed)


def check_eps(eps: float) -> float:
    if isinstance(eps, bool) or not isinstance(eps, numbers.Real) or not 0 <= eps < math.inf:
        raise GenesisException(f"eps={eps!r} is not allowed: give a finite number >= 0, such as 1e-15.")
    return float(eps)
