"""Strict options: keyword arguments with a type and a default; anything unknown or of a wrong type is an error."""

from __future__ import annotations

import dataclasses
import enum
import functools
import numbers
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, Self, dataclass_transform

from pluriverse.errors import GenesisException, did_you_mean
from pluriverse.logging import logger

Converted = tuple[str, Any]  # the present name and value


@dataclasses.dataclass(frozen=True)
class Deprecated:
    """A former keyword. `convert` maps its value to a present (name, value); without it the keyword is ignored."""

    note: str
    convert: Callable[[Any], Converted] | None = None


def renamed(name: str) -> Deprecated:
    """A keyword that only changed its name."""
    return Deprecated(f"use '{name}'", lambda value: (name, value))


def ignored(why: str) -> Deprecated:
    """A keyword that has no effect here."""
    return Deprecated(f"it has no effect: {why}")


@dataclass_transform(kw_only_default=True)
class Options:
    """Base of all options. A subclass declares its fields as annotated class attributes with defaults.

    Names and types are checked when the object is made and whenever an attribute is set. `deprecated` names keywords of
    earlier versions; they are accepted with a note in the log. A subclass may extend `check` for rules that
    involve several fields.
    """

    deprecated: ClassVar[Mapping[str, Deprecated]] = {}
    required: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        dataclasses.dataclass(init=False, eq=False, repr=False)(cls)

    def __init__(self, **given: Any) -> None:
        given = self._modernized(given)
        for name in given:
            if name not in self.field_names():
                raise self._unknown(name)
        for name in self.required:
            if name not in given:
                raise GenesisException(f"{type(self).__name__} needs '{name}'.")
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            setattr(self, field.name, given.get(field.name, field.default))
        self.check()

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.field_names():
            raise self._unknown(name)
        try:
            value = convert(value, _hints(type(self))[name])  # type: ignore[arg-type]  # mypy: a class is no Hashable
        except TypeError as error:
            raise GenesisException(f"{type(self).__name__}.{name}: {error}") from None
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        changed = (f for f in dataclasses.fields(self) if getattr(self, f.name) != f.default)  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in changed)})"

    @classmethod
    def field_names(cls) -> tuple[str, ...]:
        """The keywords that are accepted."""
        return tuple(field.name for field in dataclasses.fields(cls))  # type: ignore[arg-type]

    def replaced(self, **changes: Any) -> Self:
        """A copy with other values."""
        return type(self)(**{name: getattr(self, name) for name in self.field_names()} | changes)

    def check(self) -> None:
        """Raises a GenesisException if the values do not fit each other."""

    def _modernized(self, given: dict[str, Any]) -> dict[str, Any]:
        result = {}
        for name, value in given.items():
            former = self.deprecated.get(name)
            if former is None:
                result[name] = value
                continue
            logger.warning(f"{type(self).__name__}: '{name}' is deprecated: {former.note}.")
            if former.convert is not None:
                present, value = former.convert(value)
                if present in given:
                    raise GenesisException(
                        f"{type(self).__name__}: '{name}' is the former name of '{present}'; give only '{present}'."
                    )
                result[present] = value
        return result

    def _unknown(self, name: str) -> GenesisException:
        hint = did_you_mean(name, self.field_names(), cutoff=0.5)
        return GenesisException(
            f"{type(self).__name__} has no option '{name}'. {hint}Allowed: {', '.join(self.field_names())}."
        )


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def convert(value: Any, hint: Any) -> Any:
    """The value as the annotated type. Raises a TypeError that says what was given and what is expected.

    Numbers of numpy and of 0-d arrays count as numbers; a bool is no number and a number no bool; any sequence
    serves as a tuple; an enum member may be given by name.
    """
    if hint is Any:
        return value
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _convert_union(value, hint, arguments)
    if origin is Literal:
        if value in arguments:
            return value
        raise TypeError(f"got {value!r}, expected one of {', '.join(map(repr, arguments))}.")
    if origin is tuple:
        return _convert_tuple(value, hint, arguments)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _convert_enum(value, hint)
    return _convert_plain(value, origin or hint)


def _convert_union(value: Any, hint: Any, arguments: tuple[Any, ...]) -> Any:
    if value is None and types.NoneType in arguments:
        return None
    errors = []
    for argument in arguments:
        if argument is types.NoneType:
            continue
        try:
            return convert(value, argument)
        except TypeError as error:
            errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    raise TypeError(f"got {_show(value)}, expected {_spell(hint)}.")


def _convert_tuple(value: Any, hint: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__iter__"):
        raise TypeError(f"got {_show(value)}, expected {_spell(hint)}.")
    values = value.tolist() if hasattr(value, "tolist") else list(value)
    if not isinstance(values, list):
        raise TypeError(f"got {_show(value)}, expected {_spell(hint)}.")
    if arguments[-1] is not Ellipsis and len(values) != len(arguments):
        raise TypeError(f"got {len(values)} values {values!r}, expected {len(arguments)}.")
    kinds = [arguments[0]] * len(values) if arguments[-1] is Ellipsis else arguments
    return tuple(convert(item, kind) for item, kind in zip(values, kinds, strict=True))


def _convert_enum(value: Any, hint: type[enum.Enum]) -> enum.Enum:
    if isinstance(value, hint):
        return value
    if isinstance(value, str) and value in hint.__members__:
        return hint[value]
    raise TypeError(f"got {_show(value)}, expected one of {', '.join(hint.__members__)}.")


def _convert_plain(value: Any, hint: type) -> Any:
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        value = value.item()
    if hint is float and isinstance(value, numbers.Real) and not isinstance(value, bool):
        if value != value:
            raise TypeError("got NaN, expected a number.")
        return float(value)
    if hint is int and isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return int(value)
    if hint not in (int, float) and isinstance(value, hint):
        return value
    raise TypeError(f"got {_show(value)}, expected {_spell(hint)}.")


def _show(value: Any) -> str:
    return f"{value!r} ({type(value).__name__})"


def _spell(hint: Any) -> str:
    """A type as a user would say it: `(float, float, float)`, `int or None`."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_spell(argument) for argument in arguments)
    if origin is tuple:
        inner = f"{_spell(arguments[0])}, ..." if arguments[-1] is Ellipsis else ", ".join(map(_spell, arguments))
        return f"({inner})"
    if origin is Literal:
        return " or ".join(map(repr, arguments))
    return "None" if hint is types.NoneType else getattr(hint, "__name__", str(hint))
