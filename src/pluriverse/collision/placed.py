"""A geom as the narrow phase sees it: its shape, and where it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pluriverse.collision.height_fields import HeightField
from pluriverse.collision.hulls import HullView
from pluriverse.dynamics.spatial import Vector, column

# emit(distance, position, normal, tangent): see `narrow_phase.collide`.
Emit = Callable[[Any, Vector, Vector, Vector | None], None]


@dataclass(frozen=True, eq=False)
class Placed:
    """A geom in world axes, relative to a reference point that the caller chose for both geoms of a pair."""

    type: int  # mjtGeom
    position: Vector  # the geom's centre, or a point of the plane [m]
    rotation: Vector  # geom frame to world axes, flat 3x3
    size: Sequence[Any]  # as MuJoCo's geom_size [m]
    rbound: Any  # radius of the bounding sphere [m]; not read for planes
    hull: HullView | None = None  # of a mesh
    field: HeightField | None = None  # of a height field

    @property
    def axis(self) -> Vector:
        """The frame's z-axis: normal of a plane, axis of a capsule or cylinder."""
        return column(self.rotation, 2)
