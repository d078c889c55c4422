"""Which rows and environments a call means: every kind of index, resolved in one place.

State tensors are stored as (row, ..., environment). A row (a dof, a link ...) is chosen on the host, because the model
is known there; environments may be chosen by tensors that live on the device, and then nothing here waits for the
device. What that costs: an index outside the range inside a CUDA tensor cannot be seen at the call. It is clamped,
noted in `EnvAxis.faults`, and raised by a later step.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import torch

from pluriverse.errors import GenesisException

_TORCH_INTEGERS = frozenset((torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64))

_LONGEST_KEY = 1024  # entries of an array that is remembered by its content

FAULT_INDEX = 0  # row of `EnvAxis.faults`: an index was out of range
FAULT_COUNT = 1  # row of `EnvAxis.faults`: packed rows and the True entries of a mask differ in number

T = TypeVar("T")


class Memory(dict[Any, T]):
    """What was worked out for the selections of earlier calls: scripts use the same few at every step.

    It forgets everything when it is full, so that a script with ever new selections holds no memory.
    """

    _FULL = 256

    def __setitem__(self, key: Any, value: T) -> None:
        if len(self) >= self._FULL:
            self.clear()
        super().__setitem__(key, value)


@dataclass(frozen=True, eq=False, slots=True)
class Rows:
    """Chosen rows of one axis of the model, in the order in which they were named."""

    indices: np.ndarray  # (count,) int64, global
    where: slice | torch.Tensor  # the same as something that indexes a tensor's first dimension
    argument: str  # the argument they came from, for error messages
    repeated: tuple[int, ...]  # what was named more than once, counted as the argument counts
    _derived: dict[tuple[str, int], tuple[np.ndarray, Any]] = field(default_factory=dict, repr=False)

    @property
    def count(self) -> int:
        return len(self.indices)

    def unique(self) -> Rows:
        """These rows, for a setter: naming one twice is an error, because which value wins would be chance."""
        _require_unique(self.repeated, self.argument)
        return self

    def map(self, table: np.ndarray, device: torch.device) -> Rows:
        """The rows `table[indices]`, remembered: for example the qpos rows that belong to dofs."""
        return self._derive("map", table, lambda: rows_at(table[self.indices], device, self.argument))

    def all(self, table: np.ndarray) -> bool:
        """Whether `table` is true for every row; remembered."""
        return self._derive("all", table, lambda: bool(table[self.indices].all()))

    def _derive(self, what: str, table: np.ndarray, make: Callable[[], T]) -> T:
        known = self._derived.get((what, id(table)))
        if known is None:
            known = self._derived[what, id(table)] = (table, make())  # holds the table, so that its id stays its own
        return known[1]

    def pick(self, positions: np.ndarray, device: torch.device) -> Rows:
        """The rows at these positions of the selection."""
        return rows_at(self.indices[positions], device, self.argument)


@dataclass(frozen=True, eq=False, slots=True)
class Envs:
    """Chosen environments: a slice or an index tensor in `where`, or else a mask on the device."""

    where: slice | torch.Tensor | None
    mask: torch.Tensor | None  # (n_envs,) bool; on the CPU a mask is resolved into `where` at once
    count: int  # environments chosen; for a device mask n_envs, since only the device knows
    total: int  # environments of the scene, at least 1
    batched: bool  # False: built with n_envs=0, values have no environment axis
    from_mask: bool = False  # the caller gave a boolean mask: values may have a row for each environment of the scene
    faults: torch.Tensor | None = None  # (2,) int32, where the device reports what the host could not check
    repeated: tuple[int, ...] = ()  # environments named more than once, as far as the host knows

    @property
    def is_all(self) -> bool:
        return isinstance(self.where, slice) and self.count == self.total

    def unique(self) -> Envs:
        """These environments, for a setter: naming one twice is an error."""
        _require_unique(self.repeated, "envs_idx")
        return self


def rows_at(indices: np.ndarray, device: torch.device, argument: str, named: np.ndarray | None = None) -> Rows:
    """Rows at host indices; ascending runs become slices, because those need no index tensor and read as views.

    named: the same rows as the argument counts them, where that is not how the solver does.
    """
    indices = np.ascontiguousarray(indices, dtype=np.int64)
    if not len(indices):
        return Rows(indices, slice(0, 0), argument, ())
    if np.all(np.diff(indices) == 1):
        return Rows(indices, slice(int(indices[0]), int(indices[-1]) + 1), argument, ())
    values, times = np.unique(indices if named is None else named, return_counts=True)
    repeated = tuple(values[times > 1].tolist())
    return Rows(indices, to_device(torch.from_numpy(indices), device), argument, repeated)


def _require_unique(repeated: tuple[int, ...], argument: str) -> None:
    if repeated:
        raise GenesisException(
            f"{argument} names {', '.join(map(str, repeated))} more than once. A setter takes each index once, because "
            "which of two values stays would be chance."
        )


def to_device(tensor: torch.Tensor, device: torch.device, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Copies a host tensor to the device without waiting for the work that is queued there."""
    if dtype is not None and tensor.dtype != dtype:
        tensor = tensor.to(dtype)
    if device.type != "cpu" and tensor.device.type == "cpu":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


class RowAxis:
    """The dofs, links, geoms ... of a solver or of one entity: turns any index into `Rows`.

    members: (size,) global index of each local one. `argument` and `owner` appear in error messages
    (`dofs_idx_local`, `entity 'panda'`).
    """

    def __init__(self, members: np.ndarray, device: torch.device, *, argument: str, owner: str) -> None:
        self.members = np.asarray(members, dtype=np.int64)
        self.argument = argument
        self._owner = owner
        self._device = device
        self._all = rows_at(self.members, device, argument)
        self._known: Memory[Rows] = Memory()
        self._known_tensors: Memory[tuple[weakref.ref[torch.Tensor], int, Rows]] = Memory()

    def __len__(self) -> int:
        return len(self.members)

    def select(self, index: Any = None) -> Rows:
        """None, int, slice, range, list, tuple, numpy or torch integers or booleans; negatives count from the end.

        An int keeps its axis. A CUDA tensor is copied to the host at its first use, which waits for the device, and
        remembered as long as it lives and torch sees no change in it.
        """
        if index is None:
            return self._all
        if isinstance(index, Rows):
            return index
        if isinstance(index, torch.Tensor) and not index.is_cpu:
            return self._select_on_device(index)
        key = _hashable(index)
        rows = self._known.get(key) if key is not None else None
        if rows is None:
            rows = self._resolve(index)
            if key is not None:
                self._known[key] = rows
        return rows

    def _select_on_device(self, index: torch.Tensor) -> Rows:
        if index.is_inference():  # it has no version
            return self._resolve(index)
        known = self._known_tensors.get(id(index))
        if known is not None and known[0]() is index and known[1] == index._version:
            return known[2]
        rows = self._resolve(index)
        self._known_tensors[id(index)] = (weakref.ref(index), index._version, rows)
        return rows

    def _resolve(self, index: Any) -> Rows:
        local = host_indices(index, len(self.members), self.argument, self._owner)
        return rows_at(self.members[local], self._device, self.argument, named=local)


class EnvAxis:
    """The environments of a scene: turns any `envs_idx` into `Envs`."""

    def __init__(self, n_envs: int, device: torch.device) -> None:
        self.n_envs = n_envs
        self.total = max(n_envs, 1)
        self.faults = torch.zeros(2, dtype=torch.int32, device=device)
        self._device = device
        self._all = Envs(slice(0, self.total), None, self.total, self.total, n_envs > 0, faults=self.faults)
        self.all_batched = replace(self._all, batched=True)  # every environment, with an axis for them even if n_envs=0

    def select(self, index: Any = None) -> Envs:
        """None, int, slice, range, list, tuple, numpy or torch integers, or a boolean mask of shape (n_envs,).

        A tensor on the device is used there, without waiting for it. A getter may name an environment twice.
        """
        if index is None:
            return self._all
        if isinstance(index, Envs):
            return index
        if self.n_envs == 0:
            raise GenesisException(
                f"envs_idx={_shown(index)} is not supported for a non-parallelized scene: it was built with n_envs=0. "
                "Leave envs_idx out, or build with n_envs=1."
            )
        if isinstance(index, torch.Tensor) and index.device.type != "cpu":
            return self._select_on_device(index)
        owner = f"the scene ({self.n_envs} environments)"
        local = host_indices(index, self.total, "envs_idx", owner)
        rows, is_mask = rows_at(local, self._device, "envs_idx"), _is_mask(index)
        return Envs(rows.where, None, rows.count, self.total, True, from_mask=is_mask, repeated=rows.repeated)

    def _select_on_device(self, index: torch.Tensor) -> Envs:
        index = index.detach().to(self._device)
        if index.dtype == torch.bool:
            _check_mask_shape(tuple(index.shape), self.total, "envs_idx")
            return Envs(None, index, self.total, self.total, True, from_mask=True, faults=self.faults)
        _check_integers(index.dtype, index.ndim, "envs_idx", index)
        index = index.reshape(-1).long()
        wrapped = torch.where(index < 0, index + self.total, index)
        inside = wrapped.clamp(0, self.total - 1)
        self.faults[FAULT_INDEX].logical_or_((wrapped != inside).any())
        return Envs(inside, None, len(inside), self.total, True)


def host_indices(index: Any, size: int, argument: str, owner: str) -> np.ndarray:
    """(count,) int64 indices in 0..size-1 meant by a host index of any kind; errors name the argument and the range."""
    if isinstance(index, slice):
        _check_slice(index, size, argument, owner)
        return np.arange(size)[index]
    array = _host_array(index, argument)
    if array.dtype == np.bool_:
        _check_mask_shape(array.shape, size, argument)
        return np.nonzero(array)[0]
    _check_integers(array.dtype if array.size else np.dtype(int), array.ndim, argument, index)
    array = array.reshape(-1).astype(np.int64)
    outside = (array < -size) | (array >= size)
    if outside.any():
        allowed = f"0..{size - 1} (or -{size}..-1 from the end)" if size else "none"
        raise GenesisException(
            f"{argument}={_shown(index)}: index {array[outside][0]} is out of range for {owner}; allowed: {allowed}."
        )
    return np.where(array < 0, array + size, array)


def _host_array(index: Any, argument: str) -> np.ndarray:
    if isinstance(index, torch.Tensor):
        return index.detach().cpu().numpy()
    if isinstance(index, range):
        return np.arange(index.start, index.stop, index.step)
    if isinstance(index, (list, tuple)) and 0 < sum(isinstance(item, (bool, np.bool_)) for item in index) < len(index):
        raise GenesisException(
            f"{argument}={_shown(index)} mixes booleans and numbers. Give integers, or one boolean for each place."
        )
    try:
        return np.asarray(index)
    except (ValueError, TypeError, RuntimeError) as error:
        raise GenesisException(
            f"{argument}={_shown(index)} is no index. Give an int, a slice, a range, or a flat list, tuple, numpy "
            "array or torch tensor of integers or booleans."
        ) from error


def _check_integers(dtype: np.dtype | torch.dtype, ndim: int, argument: str, index: Any) -> None:
    is_integer = dtype in _TORCH_INTEGERS if isinstance(dtype, torch.dtype) else dtype.kind in "iu"
    if is_integer and ndim <= 1:
        return
    problem = f"has {ndim} dimensions" if is_integer else f"holds {dtype}"
    raise GenesisException(
        f"{argument}={_shown(index)} {problem}; an index is an int, a slice, a range, or a flat list, tuple, numpy "
        "array or torch tensor of integers or booleans."
    )


def _check_slice(index: slice, size: int, argument: str, owner: str) -> None:
    parts = (index.start, index.stop, index.step)
    are_integers = all(
        part is None or (isinstance(part, (int, np.integer)) and not isinstance(part, bool)) for part in parts
    )
    if not are_integers or index.step == 0:
        raise GenesisException(f"{argument}={index}: a slice takes integers, and its step cannot be zero.")
    # Python would shorten the slice in silence.
    for bound in parts[:2]:
        if bound is not None and not -size <= bound <= size:
            raise GenesisException(
                f"{argument}={index}: {bound} is out of range for {owner}; a bound lies in -{size}..{size}."
            )


def _check_mask_shape(shape: tuple[int, ...], size: int, argument: str) -> None:
    if shape != (size,):
        raise GenesisException(f"{argument} is a boolean mask of shape {shape}; its shape must be ({size},).")


def _is_mask(index: Any) -> bool:
    if isinstance(index, (torch.Tensor, np.ndarray)):
        return index.dtype in (torch.bool, np.bool_)
    return isinstance(index, (list, tuple)) and len(index) > 0 and isinstance(index[0], (bool, np.bool_))


def _hashable(index: Any) -> Any:
    """A dictionary key that tells indices apart (True is not 1), or None for what is cheaper to resolve again."""
    if isinstance(index, (int, np.integer)) and not isinstance(index, bool):
        return int(index)
    if isinstance(index, slice):
        return ("slice", index.start, index.stop, index.step)
    if isinstance(index, range):
        return index
    if isinstance(index, (list, tuple)) and all(type(item) is int for item in index):
        return tuple(index)
    if isinstance(index, torch.Tensor) and (index.dtype in _TORCH_INTEGERS or index.dtype == torch.bool):
        index = index.numpy()
    if isinstance(index, np.ndarray) and index.dtype.kind in "iub" and index.size <= _LONGEST_KEY:
        return (index.dtype.char, index.shape, index.tobytes())
    return None


def _shown(index: Any) -> str:
    text = repr(index).replace("\n", " ")
    return text if len(text) <= 80 else f"{text[:77]}..."
