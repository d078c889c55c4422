"""How values spread over chosen rows and environments, and how tensors are read and written there.

A state tensor has shape (rows, ..., environments). Values are ([n_envs,] rows, ...), as users give and get them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from pluriverse.errors import GenesisException
from pluriverse.solver.indexing import FAULT_COUNT, Envs, Memory, Rows, to_device


@dataclass(frozen=True)
class Allowed:
    """Which numbers an argument takes: those from `lowest` to `highest`, the lowest itself only if not `above`."""

    text: str  # for the message, and why where it is not plain
    lowest: float = -math.inf
    highest: float = math.inf
    above: bool = False
    infinity: bool = False

    def refused(self, values: Any) -> Any:
        """Which entries of a numpy array or torch tensor of finite numbers are not among them; NaN is not."""
        if self.above:
            return ~((values > self.lowest) & (values <= self.highest))
        return ~((values >= self.lowest) & (values <= self.highest))


FINITE = Allowed("finite numbers")
FINITE_OR_INFINITE = Allowed("numbers or infinities", infinity=True)
NOT_NEGATIVE = Allowed("finite numbers >= 0", lowest=0.0)


class Field:
    """A tensor (rows, ..., environments) that stays where it is, read and written in the layout of values.

    The views that calls use are remembered, since on a GPU making a view costs the host as much as launching a kernel.
    """

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        self._by_env = tensor.movedim(-1, 0)
        self._views: Memory[torch.Tensor] = Memory()

    def part(self, rows: Rows, envs: Envs) -> torch.Tensor:
        """(environments, count, ...) of the chosen part; a view where slices allow it.

        A mask on the device chooses all environments here, because only the device knows how many it holds.
        """
        view = self._view(rows, envs)
        return self._by_env[_place(rows, envs)] if view is None else view

    def read(self, rows: Rows, envs: Envs) -> torch.Tensor:
        """A fresh tensor ([n_envs,] count, ...) of the chosen part.

        With a mask on the device the result's size depends on the mask, so this waits for the device.
        """
        chosen = self.part(rows, envs)
        if envs.mask is not None:
            chosen = chosen[envs.mask]
        if not envs.batched:
            chosen = chosen[0]
        # Not contiguous(): of a single row or environment that would be a view, which the next step changes.
        return chosen.clone(memory_format=torch.contiguous_format)

    def write(self, rows: Rows, envs: Envs, value: torch.Tensor | float) -> None:
        """Sets the chosen part to a number or to what `spread` returned."""
        view = self._view(rows, envs)
        if view is not None:
            if isinstance(value, torch.Tensor):
                view.copy_(value)
            else:
                view.fill_(value)
            return
        if not isinstance(value, torch.Tensor):
            # Beside a mask or an index tensor a number could be copied from host memory, and that waits for the device.
            value = self.tensor.new_full((), value)
        if envs.mask is not None:
            mask = envs.mask.view(-1, *(1,) * (self.tensor.ndim - 1))
            value = torch.where(mask, value, self.part(rows, envs))
        self._by_env[_place(rows, envs)] = value

    def write_product(
        self, rows: Rows, envs: Envs, base: torch.Tensor, factor: torch.Tensor, value: torch.Tensor, sign: float = 1.0
    ) -> None:
        """Sets the chosen part to base + sign factor value, where possible in one kernel. base and factor broadcast."""
        view = self._view(rows, envs)
        if view is not None and value.shape == view.shape:
            torch.addcmul(base, factor, value, value=sign, out=view)
        else:
            self.write(rows, envs, torch.addcmul(base, factor, value, value=sign))

    def _view(self, rows: Rows, envs: Envs) -> torch.Tensor | None:
        """The chosen part as a view, or None where an index tensor or a mask chooses."""
        view = self._views.get((rows, envs))
        if view is None and isinstance(rows.where, slice) and isinstance(envs.where, slice):
            with torch.inference_mode(False):  # what is made here outlives the caller's mode
                view = self._by_env[envs.where, rows.where]
            self._views[rows, envs] = view
        return view


def _place(rows: Rows, envs: Envs) -> tuple[Any, Any]:
    """What indexes the first two dimensions, environments and rows."""
    where = envs.where if envs.mask is None else slice(0, envs.total)
    if isinstance(where, torch.Tensor) and isinstance(rows.where, torch.Tensor):
        where = where[:, None]
    return where, rows.where


def copy_envs(target: torch.Tensor, source: torch.Tensor, envs: Envs) -> None:
    """Copies the chosen environments of `source` (rows, ..., environments) to the same places of `target`."""
    if envs.is_all:
        target.copy_(source)  # the padding too
    elif envs.mask is not None:
        inside = target[..., : envs.total]
        torch.where(envs.mask, source[..., : envs.total], inside, out=inside)
    else:
        target[..., envs.where] = source[..., envs.where]


def fill_envs(target: torch.Tensor, envs: Envs, value: float) -> None:
    """Sets the chosen environments of `target` (rows, ..., environments) to one number."""
    if envs.is_all:
        target.fill_(value)
    elif envs.mask is not None:
        target[..., : envs.total].masked_fill_(envs.mask, value)
    elif isinstance(envs.where, torch.Tensor):
        target.index_fill_(-1, envs.where, value)
    else:
        target[..., envs.where].fill_(value)


def column(values: np.ndarray, like: torch.Tensor) -> torch.Tensor:
    """(rows, ...) numbers of the model as (rows, ..., 1): to fill every environment of a tensor `like` this one."""
    return to_device(torch.tensor(values), like.device, like.dtype)[..., None]


def spread(
    value: Any,
    envs: Envs,
    count: int,
    trailing: tuple[int, ...] = (),
    *,
    name: str,
    like: torch.Tensor,
    allowed: Allowed = FINITE,
) -> torch.Tensor:
    """`value` as a tensor that broadcasts to (environments, count, *trailing), in `like`'s dtype and on its device.

    Accepted are a scalar, (count,), (1, count) and (n_envs, count), each followed by `trailing`, and one more: a value
    with a single leading axis that does not fit `count` but has one entry for each chosen environment. Under a boolean
    mask of environments (n_envs, count) has a row for each environment of the scene, of which the masked ones are used;
    fewer rows are the packed ones of the True entries.

    Host values that are not `allowed`, or that `like`'s dtype cannot hold, are an error that says where. Values in a
    CUDA tensor are not looked at, because that would wait for the device: a NaN there shows in the environment's status
    at the next step.
    """
    tensor = _as_tensor(value, name, like, allowed)
    if tensor.shape == (envs.count, count, *trailing) and not envs.from_mask:  # the usual case, told fast
        return tensor
    n_leading = tensor.ndim - len(trailing)
    if n_leading >= 0 and tuple(tensor.shape[n_leading:]) == trailing:
        leading = tensor.shape[:n_leading]
        if n_leading == 0:
            return tensor[None, None]
        if n_leading == 1 and leading[0] in (1, count):
            return tensor[None]
        if n_leading == 1 and _fits_envs(leading[0], envs, packed=False):
            return _by_env(tensor[:, None], envs)
        if n_leading == 2 and leading[1] in (1, count) and _fits_envs(leading[0], envs, packed=True):
            return _by_env(tensor, envs)
    raise _shape_error(name, tensor, envs, count, trailing)


def _fits_envs(rows: int, envs: Envs, *, packed: bool) -> bool:
    if rows == 1 or rows == envs.count or (envs.from_mask and rows == envs.total):
        return True
    return packed and envs.mask is not None and rows < envs.total


def _by_env(tensor: torch.Tensor, envs: Envs) -> torch.Tensor:
    """One row for each environment that `write` will touch; under a device mask, one for each of the scene."""
    rows = tensor.shape[0]
    if not envs.from_mask or rows == 1:
        return tensor
    if envs.mask is None:  # a mask that the host resolved
        return tensor if rows == envs.count else tensor[envs.where]
    if rows == envs.total:
        return tensor
    position = envs.mask.cumsum(0) - 1
    if envs.faults is not None:
        envs.faults[FAULT_COUNT].logical_or_(position[-1] != rows - 1)
    if not rows:
        return tensor.new_zeros(1, *tensor.shape[1:])
    return tensor[position.clamp_(0, rows - 1)]


def _as_tensor(value: Any, name: str, like: torch.Tensor, allowed: Allowed) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        is_dtype = value.dtype == like.dtype
        if not is_dtype and (value.dtype == torch.bool or value.dtype.is_complex):
            raise _dtype_error(name, value.dtype)
        if value.requires_grad:
            value = value.detach()
        if value.is_cpu:
            given, value = value, value.to(like.dtype)
            # The sum is finite only if all numbers are.
            if allowed is not FINITE or not math.isfinite(value.sum().item()):
                _check(given.double().numpy(), name, like.dtype, allowed)
        if is_dtype and value.device == like.device:
            return value
        return to_device(value, like.device, like.dtype)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if isinstance(value, int) and abs(value) > _largest(like.dtype):  # an int may exceed float64 too
            raise _size_error(name, f"an integer of {value.bit_length()} bits", like.dtype)
        if allowed is not FINITE or not abs(value) <= _largest(like.dtype):
            _check(np.asarray(value, dtype=np.float64), name, like.dtype, allowed)
        if math.isfinite(value):  # it may round to the largest number
            value = min(max(value, -_largest(like.dtype)), _largest(like.dtype))
        return torch.full((), value, dtype=like.dtype, device=like.device)
    array = _as_array(value, name)
    _check(array, name, like.dtype, allowed)
    return to_device(torch.from_numpy(array), like.device, like.dtype)


def _check(values: np.ndarray, name: str, dtype: torch.dtype, allowed: Allowed) -> None:
    """Raises for the first of the host's float64 numbers that is not allowed, or that the dtype cannot hold."""
    stored = torch.from_numpy(values).to(dtype).numpy()  # 0.01 in float32 is not below the limit 0.01
    bad = allowed.refused(stored)
    if not allowed.infinity:
        bad |= np.isinf(values)
    too_large = np.isfinite(values) & np.isinf(stored)
    if not (bad | too_large).any():
        return
    where = tuple(int(i) for i in np.argwhere(bad if bad.any() else too_large)[0])
    place = f"{name}[{', '.join(map(str, where))}]" if where else name
    if bad[where]:
        raise GenesisException(f"{place} is {values[where]:g}; allowed are {allowed.text}. Nothing was set.")
    raise _size_error(place, f"{values[where]:g}", dtype)


def _largest(dtype: torch.dtype) -> float:
    return torch.finfo(dtype).max


def _size_error(place: str, number: str, dtype: torch.dtype) -> GenesisException:
    kind = str(dtype).removeprefix("torch.")
    return GenesisException(
        f"{place} is {number}, which does not fit {kind}: the largest number is {_largest(dtype):.3g}. Nothing was set."
    )


def _as_array(value: Any, name: str) -> np.ndarray:
    """A fresh float64 copy, so that the caller's array may change while the copy to the device is under way."""
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, RuntimeError) as error:
        raise GenesisException(
            f"{name}: {type(value).__name__} does not form a rectangular array of numbers ({error}). "
            "Give a number, nested lists, a numpy array or a torch tensor."
        ) from error
    if array.dtype.kind not in "iuf":
        raise _dtype_error(name, array.dtype)
    return np.array(array, dtype=np.float64, order="C")


def _dtype_error(name: str, dtype: Any) -> GenesisException:
    return GenesisException(f"{name}: holds {dtype}; allowed are integers and floating-point numbers.")


def _shape_error(
    name: str, tensor: torch.Tensor, envs: Envs, count: int, trailing: tuple[int, ...]
) -> GenesisException:
    shapes: list[tuple[int, ...]] = [trailing, (count, *trailing), (1, count, *trailing)]
    if envs.batched:
        shapes += [(envs.count, count, *trailing), (envs.count, *trailing)]
    if envs.from_mask:
        shapes.append((envs.total, count, *trailing))
    allowed = ", ".join(str(shape) for shape in dict.fromkeys(shapes))
    over = f"{envs.count} of {envs.total} environments" if envs.batched else "a scene without an environment axis"
    return GenesisException(
        f"{name}: shape {tuple(tensor.shape)} does not fit {count} chosen indices and {over}. Allowed: {allowed}."
    )
