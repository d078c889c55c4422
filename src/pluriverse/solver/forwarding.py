"""Methods that pass a call on to a part of an object, so that signatures and docstrings are written once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any


def to_part(part: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that calls `method` on `self.<part>`."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return method(getattr(self, part), *args, **kwargs)

    return call


def with_local_index(axis: str, index: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that calls `self.solver`'s method of this name with indices that count within the entity.

    The parameter `index` (`dofs_idx`) becomes `<index>_local`; `self.<axis>` translates it.
    """
    name, local = method.__name__, f"{index}_local"
    parameters = list(inspect.signature(method).parameters.values())
    position = [p.name for p in parameters].index(index) - 1  # without self

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        target = getattr(self.solver, name)
        if index in kwargs:
            raise TypeError(f"{name}() got an unexpected keyword argument '{index}'; an entity takes '{local}'")
        if len(args) > position:
            args = (*args[:position], getattr(self, axis).select(args[position]), *args[position + 1 :])
        else:
            kwargs[index] = getattr(self, axis).select(kwargs.pop(local, None))
        return target(*args, **kwargs)

    renamed = [p.replace(name=local) if p.name == index else p for p in parameters]
    call.__signature__ = inspect.signature(method).replace(parameters=renamed)  # type: ignore[attr-defined]
    call.__doc__ = (method.__doc__ or "").replace(index, local)
    return call
