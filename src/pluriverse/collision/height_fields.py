"""Height fields: their sizes and heights in tables, so that traced code can look up any of them by its number."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from pluriverse.collision_pairs import HFIELD
from pluriverse.dynamics.spatial import Vector
from pluriverse.model import Model
from pluriverse.trace.functions import select, sqrt


class HeightFields:
    """Several height fields in tables of one program."""

    def __init__(self, run: Any, model: Model, numbers: Sequence[int]) -> None:
        self.run, self._model, self._numbers = run, model, list(numbers)
        self._number: dict[int, int] = {}

    @classmethod
    def of(cls, run: Any, model: Model, geoms: Sequence[int]) -> HeightFields:
        """Those of the geoms that are height fields, each field once; `number` says which one a geom has."""
        field_of = {g: int(model.geom_dataid[g]) for g in geoms if model.geom_type[g] == HFIELD}
        fields = cls(run, model, sorted(set(field_of.values())))
        fields._number = {g: fields._numbers.index(field) for g, field in field_of.items()}
        return fields

    def number(self, geom: int) -> int:
        """Which height field a geom has; 0 where it has none, so that a table of these numbers can hold any geom."""
        return self._number.get(geom, 0)

    def view(self, number: Any) -> HeightField:
        """One height field, by its number: an int or a traced int."""
        return HeightField(self, number)

    @cached_property
    def heights(self) -> Any:
        """Table of the heights of all fields [m], row by row."""
        parts = [np.zeros(1)]
        for n in self._numbers:
            first, count = self._model.hfield_adr[n], self._model.hfield_nrow[n] * self._model.hfield_ncol[n]
            parts.append(self._model.hfield_data[first : first + count] * self._model.hfield_size[n, 2])
        return self.run.table(np.concatenate(parts).tolist())

    @cached_property
    def starts(self) -> list[float]:
        """Where the heights of each field start."""
        cells = [int(self._model.hfield_nrow[n] * self._model.hfield_ncol[n]) for n in self._numbers]
        return [float(1 + sum(cells[:k])) for k in range(len(cells))]

    def per_field(self, name: str, k: int | None = None) -> list[float]:
        """A number of each field's, by its name in the model."""
        values = getattr(self._model, name)[self._numbers]
        return [float(x) for x in (values if k is None else values[:, k])]

    @property
    def most_prisms(self) -> int:
        """The most prisms of a field."""
        rows, columns = (np.array(self.per_field(name)) for name in ("hfield_nrow", "hfield_ncol"))
        return int(np.max(2 * (rows - 1) * (columns - 1)))


class HeightField:
    """One of the height fields: a grid of points over the plane z = 0 of its frame. Its number may be traced, and so
    are then all sizes, as floats."""

    def __init__(self, fields: HeightFields, number: Any) -> None:
        def of(values: list[float]) -> Any:
            return fields.run.table(values)[number]

        self.fields, self._start = fields, of(fields.starts)
        self.rows, self.columns = of(fields.per_field("hfield_nrow")), of(fields.per_field("hfield_ncol"))
        self.half = [of(fields.per_field("hfield_size", k)) for k in (0, 1)]  # extents along x and y [m]
        self.top, self.base = of(fields.per_field("hfield_size", 2)), of(fields.per_field("hfield_size", 3))  # [m]
        self.step = [
            of([2.0 * s / (n - 1.0) for s, n in zip(sizes, counts, strict=True)])  # between points along x and y [m]
            for sizes, counts in (
                (fields.per_field("hfield_size", 0), fields.per_field("hfield_ncol")),
                (fields.per_field("hfield_size", 1), fields.per_field("hfield_nrow")),
            )
        ]

    @property
    def cell(self) -> Any:
        """Radius of the circle around a cell [m]."""
        return 0.5 * sqrt(self.step[0] * self.step[0] + self.step[1] * self.step[1])

    def point(self, row: Any, column: Any) -> Vector:
        """A point of the surface; row and column are whole numbers that may differ between environments."""
        place = row * self.columns + column
        exists = (place >= 0.0) & (place < self.rows * self.columns)  # else no one asks, but a gather needs a place
        height = self.fields.run.gather(self.fields.heights, select(exists, self._start + place, 0.0))
        return [column * self.step[0] - self.half[0], row * self.step[1] - self.half[1], height]
