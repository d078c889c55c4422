"""Vectors in storage that changes: arrays, and lists of variables."""

from __future__ import annotations

from typing import Any

from pluriverse.dynamics.spatial import Vector


def array_of(run: Any, values: Vector) -> Any:
    """A new array of these values."""
    array = run.array(len(values))
    for k, x in enumerate(values):
        array[k] = x
    return array


def variables(run: Any, count: int) -> list[Any]:
    """New variables, all 0."""
    return [run.variable(0.0) for _ in range(count)]


def values_of(slots: list[Any]) -> Vector:
    """What variables hold."""
    return [slot.value for slot in slots]


def assign(slots: list[Any], values: Vector) -> None:
    """Sets variables."""
    for slot, value in zip(slots, values, strict=True):
        slot.value = value
