"""The convex hulls of meshes: vertices and faces in tables, one hull behind the other, so that traced code can look up
any of them by its number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pluriverse.collision_pairs import MESH
from pluriverse.dynamics.spatial import Vector
from pluriverse.model import Model
from pluriverse.trace.functions import select


@dataclass(frozen=True, eq=False)
class Hull:
    """The convex hull of a mesh: vertices, and faces as polygons that turn left around their outward normals."""

    vertices: np.ndarray  # (n, 3) in the geom frame [m]
    faces: tuple[tuple[int, ...], ...]  # indices of vertices
    normals: np.ndarray  # (faces, 3)

    @classmethod
    def from_model(cls, model: Model, mesh: int) -> Hull:
        """The hull of a mesh, with the faces that MuJoCo's compiler made of almost coplanar triangles."""
        first_vertex, first_face = model.mesh_vertadr[mesh], model.mesh_polyadr[mesh]
        vertices = np.asarray(model.mesh_vert[first_vertex : first_vertex + model.mesh_vertnum[mesh]], dtype=np.float64)
        of_mesh = slice(first_face, first_face + model.mesh_polynum[mesh])
        ranges = zip(model.mesh_polyvertadr[of_mesh], model.mesh_polyvertnum[of_mesh], strict=True)
        faces = [model.mesh_polyvert[start : start + count] for start, count in ranges]
        if not faces:  # MuJoCo made no hull: any vertex may be the outermost one, and touches alone
            return cls(vertices, (), np.zeros((0, 3)))
        on_hull, numbers = np.unique(np.concatenate(faces), return_inverse=True)
        ends = np.cumsum([len(face) for face in faces])[:-1]
        return cls(
            vertices[on_hull],
            tuple(tuple(face.tolist()) for face in np.split(numbers, ends)),
            np.asarray(model.mesh_polynormal[of_mesh], dtype=np.float64),
        )

    @cached_property
    def fans(self) -> list[list[int]]:
        """The faces at each vertex, in their order."""
        fans: list[list[int]] = [[] for _ in self.vertices]
        for number, face in enumerate(self.faces):
            for vertex in face:
                fans[vertex].append(number)
        return fans

    def spread(self, vertex: int, face: tuple[int, ...]) -> tuple[int, ...]:
        """Three of the other vertices of a face that span much area with this one; fewer where it has no more.

        As MuJoCo finds them: the last one moves on while the area grows, and after each move of it the others do.
        """
        place = face.index(vertex)
        rest = face[place + 1 :] + face[:place]
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


class Hulls:
    """Several hulls in tables of one program. A vertex, a face or a corner (of a face at a vertex) is named by its
    place among those of all hulls; where that differs between environments it is a float, for `run.gather`.

    One of each more stands in where there is none: `no_vertex` at the origin, `no_corner` of a face without direction.
    """

    def __init__(self, run: Any, hulls: Sequence[Hull]) -> None:
        self.run, self.hulls = run, list(hulls)
        self.first_vertex = np.cumsum([0, *(len(h.vertices) for h in self.hulls)]).tolist()
        self.first_face = np.cumsum([0, *(len(h.faces) for h in self.hulls)]).tolist()
        self.no_vertex = float(self.first_vertex[-1])
        self.no_corner = float(sum(len(face) for h in self.hulls for face in h.faces))
        self._number: dict[int, int] = {}

    @classmethod
    def of(cls, run: Any, model: Model, geoms: Sequence[int]) -> Hulls:
        """The hulls of those of the geoms that are meshes, each mesh once; `number` says which hull a geom has."""
        mesh_of = {g: int(model.geom_dataid[g]) for g in geoms if model.geom_type[g] == MESH}
        meshes = sorted(set(mesh_of.values()))
        hulls = cls(run, [Hull.from_model(model, mesh) for mesh in meshes])
        hulls._number = {g: meshes.index(mesh) for g, mesh in mesh_of.items()}
        return hulls

    def number(self, geom: int) -> int:
        """Which hull a geom has; 0 where it has none, so that a table of these numbers can hold any geom."""
        return self._number.get(geom, 0)

    def view(self, number: Any) -> HullView:
        """One hull, by its number: an int or a traced int."""
        return HullView(self, number)

    @cached_property
    def vertex_axes(self) -> list[Any]:
        """Tables of the coordinates of all vertices [m], geom frames."""
        points = np.concatenate([*(h.vertices for h in self.hulls), np.zeros((1, 3))])
        return [self.run.table(axis) for axis in points.T.tolist()]

    @cached_property
    def vertex_names(self) -> Any:
        """Table of all vertices' places, as floats."""
        return self._floats(range(self.first_vertex[-1] + 1))

    @cached_property
    def normal_axes(self) -> list[Any]:
        """Tables of the normals of all faces."""
        normals = np.concatenate([*(h.normals for h in self.hulls), np.zeros((1, 3))])
        return [self.run.table(axis) for axis in normals.T.tolist()]

    @cached_property
    def fan_start(self) -> Any:
        """Table of the first corner at each vertex; one more is the end of the last."""
        return self._floats(np.cumsum([0, *(len(fan) for h in self.hulls for fan in h.fans)]).tolist())

    @cached_property
    def fan_faces(self) -> Any:
        """Table of the face of each corner."""
        places = zip(self.hulls, self.first_face, strict=False)
        faces = [first + face for h, first in places for fan in h.fans for face in fan]
        return self._floats([*faces, self.first_face[-1]])

    @cached_property
    def fan_others(self) -> list[Any]:
        """Three tables of the vertices that touch a plane together with each corner."""
        corners = []
        for h, first in zip(self.hulls, self.first_vertex, strict=False):
            for vertex, fan in enumerate(h.fans):
                for face in fan:
                    others = [first + v for v in h.spread(vertex, h.faces[face])]
                    corners.append([*others, *[self.no_vertex] * 3][:3])
        corners.append([self.no_vertex] * 3)
        return [self._floats([three[k] for three in corners]) for k in range(3)]

    @cached_property
    def fan_neighbours(self) -> Any:
        """Table of the vertex before each corner along its face: over a fan, all that share an edge with the vertex."""
        before = []
        for h, first in zip(self.hulls, self.first_vertex, strict=False):
            for vertex, fan in enumerate(h.fans):
                before += [first + h.faces[face][h.faces[face].index(vertex) - 1] for face in fan]
        return self._floats([*before, self.no_vertex])

    @cached_property
    def face_offsets(self) -> Any:
        """Table of how far the faces are from their frames' origins [m]: their last corners, as MuJoCo has it."""
        offsets = [
            float(h.vertices[face[-1]] @ normal)
            for h in self.hulls
            for face, normal in zip(h.faces, h.normals, strict=True)
        ]
        return self.run.table([*offsets, 0.0])

    @cached_property
    def face_start(self) -> Any:
        """Table of where the corners of each face start in `face_vertices`; the last is the end."""
        return self._floats(np.cumsum([0, *(len(face) for h in self.hulls for face in h.faces), 0]).tolist())

    @cached_property
    def face_vertices(self) -> Any:
        """Table of the vertices of all faces, left around the normal."""
        places = zip(self.hulls, self.first_vertex, strict=False)
        return self._floats([*(first + v for h, first in places for face in h.faces for v in face), self.no_vertex])

    @property
    def most_corners(self) -> int:
        """The most corners of a face."""
        return max((len(face) for h in self.hulls for face in h.faces), default=0)

    def per_hull(self, values: Sequence[float]) -> Any:
        """A table of one number for each hull."""
        return self.run.table(list(values))

    def _floats(self, values: Any) -> Any:
        return self.run.table([float(v) for v in values])


class HullView:
    """One of the hulls. Its number may be a traced int: then all of this is traced."""

    def __init__(self, hulls: Hulls, number: Any) -> None:
        self.hulls, self.number = hulls, number

    @property
    def start(self) -> Any:
        """The place of the first vertex (int)."""
        return self.hulls.per_hull(self.hulls.first_vertex)[self.number]

    @property
    def stop(self) -> Any:
        """The place after the last vertex (int)."""
        return self.hulls.per_hull(self.hulls.first_vertex[1:])[self.number]

    @property
    def faces(self) -> tuple[Any, Any]:
        """The place of the first face and the place after the last one (ints)."""
        ends = self.hulls.first_face
        return self.hulls.per_hull(ends)[self.number], self.hulls.per_hull(ends[1:])[self.number]

    def vertex(self, place: Any) -> Vector:
        """A vertex by an int [m], geom frame."""
        return [axis[place] for axis in self.hulls.vertex_axes]

    def gather_vertex(self, place: Any) -> Vector:
        """A vertex by a float [m], geom frame."""
        return [self.hulls.run.gather(axis, place) for axis in self.hulls.vertex_axes]

    def gather_normal(self, face: Any) -> Vector:
        """A face's normal, by a float."""
        return [self.hulls.run.gather(axis, face) for axis in self.hulls.normal_axes]

    def fan(self, vertex: Any) -> Iterator[Any]:
        """A traced loop over the corners at a vertex, each a float; both differ between environments. Where the vertex
        has fewer than others, the loop passes over `no_corner`."""
        hulls, run = self.hulls, self.hulls.run
        widths = [max((len(fan) for fan in h.fans), default=0) for h in hulls.hulls]
        counter = run.table([float(k) for k in range(max(widths, default=0) or 1)])
        start, stop = run.gather(hulls.fan_start, vertex), run.gather(hulls.fan_start, vertex + 1.0)
        for k in run.range(hulls.per_hull(widths)[self.number]):
            corner = start + counter[k]
            yield select(corner < stop, corner, hulls.no_corner)

    @property
    def box(self) -> tuple[Vector, Vector]:
        """Centre and half extents of the box around the hull, along the axes of its frame [m]."""
        hulls = self.hulls.hulls
        low, high = (np.array([end(h.vertices, axis=0) for h in hulls]) for end in (np.min, np.max))
        centre, half = ((0.5 * x).T.tolist() for x in (low + high, high - low))
        per_hull, number = self.hulls.per_hull, self.number
        return [per_hull(x)[number] for x in centre], [per_hull(x)[number] for x in half]
