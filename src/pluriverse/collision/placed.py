"""A geom as the narrow phase sees it: its shape, and where it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pluriverse.dynamics.spatial import Vector, column
from pluriverse.model import Model

# emit(distance, position, normal, tangent): see `narrow_phase.collide`.
Emit = Callable[[Any, Vector, Vector, Vector | None], None]

_HILL_CLIMB_FROM = 10  # mjMESH_HILLCLIMB_MIN: smaller meshes are searched vertex by vertex


@dataclass(frozen=True, eq=False)
class Hull:
    """The vertices of a mesh among which its lowest point is searched, and each one's neighbours on the convex hull."""

    vertices: np.ndarray  # (n, 3) in the geom frame [m]
    edges: tuple[tuple[int, ...], ...]  # for each vertex, indices of vertices

    @classmethod
    def from_model(cls, model: Model, geom: int) -> Hull:
        """The hull of a mesh geom, in MuJoCo's order of vertices and neighbours."""
        mesh = model.geom_dataid[geom]
        first, count = model.mesh_vertadr[mesh], int(model.mesh_vertnum[mesh])
        vertices = np.asarray(model.mesh_vert[first : first + count], dtype=np.float64)
        if model.mesh_graphadr[mesh] < 0:  # no hull was made: every other vertex counts as a neighbour
            return cls(vertices, tuple(tuple(j for j in range(count) if j != i) for i in range(count)))

        graph = model.mesh_graph[model.mesh_graphadr[mesh] :]
        hull_count = int(graph[0])
        edge_starts, vertex_ids, edge_ends = graph[2:], graph[2 + hull_count :], graph[2 + 2 * hull_count :]

        def neighbours(i: int) -> list[int]:
            ends = edge_ends[edge_starts[i] :]
            return ends[: np.argmax(ends < 0)].tolist()  # a list ends with -1

        if count < _HILL_CLIMB_FROM:
            # MuJoCo 4.0 finds a vertex of the mesh here and reads the neighbours of the hull vertex with the same number.
            return cls(vertices, tuple(tuple(int(vertex_ids[j]) for j in neighbours(i)) for i in range(count)))
        return cls(vertices[vertex_ids[:hull_count]], tuple(tuple(neighbours(i)) for i in range(hull_count)))


@dataclass(frozen=True, eq=False)
class Placed:
    """A geom in world axes, its position relative to a reference point that the caller chose for both geoms of a pair."""

    type: int  # mjtGeom
    position: Vector  # the geom's centre, or a point of the plane [m]
    rotation: Vector  # geom frame to world axes, flat 3x3
    size: Sequence[Any]  # as MuJoCo's geom_size [m]
    rbound: Any  # radius of the bounding sphere [m]; not read for planes
    hull: Hull | None = None  # of a mesh

    @property
    def axis(self) -> Vector:
        """The frame's z-axis: normal of a plane, axis of a capsule or cylinder."""
        return column(self.rotation, 2)
