"""A geom as the narrow phase sees it: its shape, and where it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pluriverse.dynamics.spatial import Vector, column
from pluriverse.model import Model

# emit(distance, position, normal, tangent): see `narrow_phase.collide`.
Emit = Callable[[Any, Vector, Vector, Vector | None], None]


class Corner(NamedTuple):
    """A vertex of a hull in one of its faces."""

    vertex: int
    normal: np.ndarray  # the face's, outward
    others: tuple[int, ...]  # vertices of the face that touch a plane with this one: at most 3, in the face's order


@dataclass(frozen=True, eq=False)
class Hull:
    """The convex hull of a mesh: vertices, and faces as polygons that turn left around their outward normals."""

    vertices: np.ndarray  # (n, 3) in the geom frame [m]
    faces: tuple[tuple[int, ...], ...]  # indices of vertices
    normals: np.ndarray  # (faces, 3)

    @classmethod
    def from_model(cls, model: Model, geom: int) -> Hull:
        """The hull of a mesh geom, with the faces that MuJoCo's compiler made of almost coplanar triangles."""
        mesh = int(model.geom_dataid[geom])
        first_vertex, first_face = model.mesh_vertadr[mesh], model.mesh_polyadr[mesh]
        vertices = np.asarray(model.mesh_vert[first_vertex : first_vertex + model.mesh_vertnum[mesh]], dtype=np.float64)
        of_mesh = slice(first_face, first_face + model.mesh_polynum[mesh])
        ranges = zip(model.mesh_polyvertadr[of_mesh], model.mesh_polyvertnum[of_mesh], strict=True)
        faces = [model.mesh_polyvert[start : start + count] for start, count in ranges]
        if not faces:  # MuJoCo made no hull: any vertex may be the lowest one, and touches alone
            return cls(vertices, (), np.zeros((0, 3)))
        on_hull, numbers = np.unique(np.concatenate(faces), return_inverse=True)
        ends = np.cumsum([len(face) for face in faces])[:-1]
        return cls(
            vertices[on_hull],
            tuple(tuple(face.tolist()) for face in np.split(numbers, ends)),
            np.asarray(model.mesh_polynormal[of_mesh], dtype=np.float64),
        )

    def fans(self) -> list[list[Corner]]:
        """The corners at each vertex, in the order of the faces."""
        fans: list[list[Corner]] = [[] for _ in self.vertices]
        for face, normal in zip(self.faces, self.normals, strict=True):
            for k, vertex in enumerate(face):
                fans[vertex].append(Corner(vertex, normal, self._spread(vertex, face[k + 1 :] + face[:k])))
        return fans

    def _spread(self, vertex: int, rest: tuple[int, ...]) -> tuple[int, ...]:
        """Three of the other vertices of a face that span much area with this one.

        As MuJoCo finds them: the last one moves on while the area grows, and after each move of it the others do.
        """
        if len(rest) <= 3:
            return rest
        origin, points = self.vertices[vertex], self.vertices[list(rest)]

        def area(b: int, c: int, d: int) -> float:
            return float(np.linalg.norm(np.cross(points[c] - origin, points[d] - points[b])))

        b, c, d = 0, 1, 2
        while d + 1 < len(rest) and area(b, c, d + 1) > area(b, c, d):
            d += 1
            while c + 1 < d and area(b, c + 1, d) > area(b, c, d):
                c += 1
            while b + 1 < c and area(b + 1, c, d) > area(b, c, d):
                b += 1
        return rest[b], rest[c], rest[d]


@dataclass(frozen=True, eq=False)
class Placed:
    """A geom in world axes, relative to a reference point that the caller chose for both geoms of a pair."""

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
