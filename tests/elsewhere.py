"""A device that is not this one, on any machine: what would wait for a GPU, or copy to it by a slow path, is an error.

State tensors lie on torch's 'meta' device, which has shapes and no numbers: whatever needs a number of the device at
the host (`item`, `bool`, `nonzero`, `cpu`) raises there by itself. What a GPU would take by waiting and 'meta' takes
without a word is found in the calls of torch: host numbers and host tensors that meet device tensors.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import kernel_doubles
from pluriverse.solver import rigid_solver

DEVICE = torch.device("meta")

_FROM_HOST_DATA = (torch.tensor, torch.as_tensor, torch.asarray, torch.Tensor.new_tensor)


class NoLaunch:
    """A kernel that does nothing."""

    def __init__(self, *args: Any) -> None:
        pass

    def launch(self, *args: Any) -> None:
        pass


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has solvers built from now on lie elsewhere. Pinned memory becomes host memory that `Guard` knows."""
    kernel_doubles.install(monkeypatch)
    monkeypatch.setattr(rigid_solver, "runtime", SimpleNamespace(device=DEVICE, tc_float=torch.float32))
    monkeypatch.setattr(rigid_solver, "StepKernel", NoLaunch)
    monkeypatch.setattr(rigid_solver, "KinematicsKernel", NoLaunch)
    monkeypatch.setattr(torch.Tensor, "pin_memory", _pin)


def _pin(tensor: torch.Tensor) -> torch.Tensor:
    pinned = tensor.clone()
    pinned.is_pinned_double = True  # type: ignore[attr-defined]
    return pinned


class Guard(TorchFunctionMode):
    """Within it, a call of torch that would wait for the device raises AssertionError."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        given = list(_flat((args, kwargs)))
        result = func(*args, **kwargs)
        tensors = [x for x in given if isinstance(x, torch.Tensor)]
        meets_device = any(x.device == DEVICE for x in (*tensors, result) if isinstance(x, torch.Tensor))
        if meets_device:
            name = getattr(func, "__name__", str(func))
            for x in tensors:
                if x.device != DEVICE:
                    pinned = getattr(x, "is_pinned_double", False) and kwargs.get("non_blocking")
                    assert pinned, f"{name}: a host tensor meets the device by a copy that waits"
            assert func not in _FROM_HOST_DATA, f"{name}: host data are copied to the device from unpinned memory"
            if func in (torch.where, torch.Tensor.where):
                assert all(isinstance(x, torch.Tensor) for x in args), f"{name}: a number is copied from the host"
            if func in (torch.Tensor.__getitem__, torch.Tensor.__setitem__):
                _check_index(name, args[1], args[2:])
        return result


class Kernels(TorchDispatchMode):
    """Counts what a device would launch: every operation of torch but views and empty allocations."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not func.is_view and "empty" not in func.name():
            self.names.append(func.name())
        return func(*args, **(kwargs or {}))


def _check_index(name: str, index: Any, value: tuple[Any, ...]) -> None:
    entries = index if isinstance(index, tuple) else (index,)
    assert not any(isinstance(x, (list, np.ndarray)) for x in entries), f"{name}: a host index meets the device"
    tensors = [x for x in entries if isinstance(x, torch.Tensor)]
    assert not any(x.dtype == torch.bool for x in tensors), f"{name}: a mask as an index waits for its number of True"
    if tensors and value:
        assert isinstance(value[0], torch.Tensor), f"{name}: a number beside an index tensor is copied from the host"


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from _flat(item)
    elif isinstance(value, dict):
        yield from _flat(list(value.values()))
    else:
        yield value
