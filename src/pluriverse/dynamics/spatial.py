"""Vectors, rotations and spatial algebra over generic scalars (Featherstone 2008, chapter 2).

3-vectors are lists of 3, 3x3 matrices flat lists of 9 (row major), quaternions [w, x, y, z]. Spatial motions are
[angular, linear] and spatial forces [moment, force], lists of 6, about a reference point, in world axes.

A rigid-body inertia about a point is a list of 10: Ixx Iyy Izz Ixy Ixz Iyz, m c (3), m. An articulated inertia is a
triple (A, B, C): rotational block (6, symmetric), coupling block (9), translational block (6, symmetric); force = [A
w + B v; B' w + C v].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pluriverse.trace.functions import maximum, reciprocal, rsqrt, select

Vector = list[Any]
SYMMETRIC = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))  # order of a symmetric 3x3's six numbers
PLACE = {pair: k for k, (i, j) in enumerate(SYMMETRIC) for pair in ((i, j), (j, i))}
IDENTITY = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
ZERO3 = [0.0, 0.0, 0.0]
ZERO6 = [0.0] * 6
MIN_LENGTH2 = 1e-30  # of a quaternion that is a rotation: mjMINVAL squared


def dot(a: Sequence[Any], b: Sequence[Any]) -> Any:
    total: Any = 0.0
    for x, y in zip(a, b, strict=True):
        total = total + x * y
    return total


def cross(a: Sequence[Any], b: Sequence[Any]) -> Vector:
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def add(a: Sequence[Any], b: Sequence[Any]) -> Vector:
    return [x + y for x, y in zip(a, b, strict=True)]


def sub(a: Sequence[Any], b: Sequence[Any]) -> Vector:
    return [x - y for x, y in zip(a, b, strict=True)]


def scale(a: Sequence[Any], s: Any) -> Vector:
    return [x * s for x in a]


def negate(a: Sequence[Any]) -> Vector:
    return [-x for x in a]


def row(A: Sequence[Any], i: int) -> Vector:
    return list(A[3 * i : 3 * i + 3])


def column(A: Sequence[Any], j: int) -> Vector:
    return [A[j], A[3 + j], A[6 + j]]


def transpose(A: Sequence[Any]) -> Vector:
    return [A[3 * j + i] for i in range(3) for j in range(3)]


def matmul(A: Sequence[Any], B: Sequence[Any]) -> Vector:
    return [dot(row(A, i), column(B, j)) for i in range(3) for j in range(3)]


def matvec(A: Sequence[Any], v: Sequence[Any]) -> Vector:
    return [dot(row(A, i), v) for i in range(3)]


def symmetric_matrix(S: Sequence[Any]) -> Vector:
    """The flat 3x3 of six numbers."""
    return [S[PLACE[i, j]] for i in range(3) for j in range(3)]


def skew(v: Sequence[Any]) -> Vector:
    """The matrix of v x ."""
    return [0.0, -v[2], v[1], v[2], 0.0, -v[0], -v[1], v[0], 0.0]


def quaternion_matrix(q: Sequence[Any]) -> Vector:
    """Rotation matrix of a quaternion of any length: better in float32 than to make it a unit one first. A zero
    quaternion is no rotation, as in MuJoCo."""
    w, x, y, z = q
    length2 = dot(q, q)
    s = select(length2 > MIN_LENGTH2, 2.0 * reciprocal(maximum(length2, MIN_LENGTH2)), 0.0)
    xs, ys, zs = x * s, y * s, z * s
    return [
        1.0 - (y * ys + z * zs), x * ys - w * zs, x * zs + w * ys,
        x * ys + w * zs, 1.0 - (x * xs + z * zs), y * zs - w * xs,
        x * zs - w * ys, y * zs + w * xs, 1.0 - (x * xs + y * ys),
    ]  # fmt: skip


def matrix_quaternion(R: Sequence[Any]) -> Vector:
    """The unit quaternion of a rotation matrix whose first number is not negative.

    Of the four rows of 4 q q', the one with the largest number on the diagonal is the most exact multiple of q.
    """
    xx, xy, xz, yx, yy, yz, zx, zy, zz = R
    w, x, y, z = 1.0 + xx + yy + zz, 1.0 + xx - yy - zz, 1.0 - xx + yy - zz, 1.0 - xx - yy + zz
    wx, wy, wz, xy, xz, yz = zy - yz, xz - zx, yx - xy, xy + yx, xz + zx, yz + zy
    best, largest = [w, wx, wy, wz], w
    for candidate, size in (([wx, x, xy, xz], x), ([wy, xy, y, yz], y), ([wz, xz, yz, z], z)):
        better = size > largest
        best = [select(better, new, old) for new, old in zip(candidate, best, strict=True)]
        largest = select(better, size, largest)
    half = 0.5 * rsqrt(largest)
    return scale(best, select(best[0] < 0.0, -half, half))


def quaternion_product(p: Sequence[Any], q: Sequence[Any]) -> Vector:
    a, b, c, d = p
    w, x, y, z = q
    return [
        a * w - b * x - c * y - d * z,
        a * x + b * w + c * z - d * y,
        a * y - b * z + c * w + d * x,
        a * z + b * y - c * x + d * w,
    ]


def axis_angle_matrix(axis: Sequence[Any], cosine: Any, sine: Any) -> Vector:
    """Rotation about a unit axis (Rodrigues)."""
    x, y, z = axis
    t = 1.0 - cosine
    return [
        cosine + t * (x * x), t * (x * y) - sine * z, t * (x * z) + sine * y,
        t * (x * y) + sine * z, cosine + t * (y * y), t * (y * z) - sine * x,
        t * (x * z) - sine * y, t * (y * z) + sine * x, cosine + t * (z * z),
    ]  # fmt: skip


def rotate_symmetric(R: Sequence[Any], S: Sequence[Any]) -> Vector:
    """R S R' for a symmetric S of six numbers."""
    if all(isinstance(x, float) for x in S) and S[0] == S[1] == S[2] and not any(S[3:]):
        return list(S)  # isotropic
    T = matmul(R, symmetric_matrix(S))
    return [dot(row(T, i), row(R, j)) for i, j in SYMMETRIC]


def cross_motion(v: Sequence[Any], s: Sequence[Any]) -> Vector:
    """v x s for spatial motions."""
    return cross(v[:3], s[:3]) + add(cross(v[:3], s[3:]), cross(v[3:], s[:3]))


def cross_force(v: Sequence[Any], f: Sequence[Any]) -> Vector:
    """v x* f for a spatial force."""
    return add(cross(v[:3], f[:3]), cross(v[3:], f[3:])) + cross(v[:3], f[3:])


def shift_motion(v: Sequence[Any], r: Sequence[Any]) -> Vector:
    """The motion about the point that lies at r from the present reference point."""
    return list(v[:3]) + add(v[3:], cross(v[:3], r))


def shift_force(f: Sequence[Any], r: Sequence[Any]) -> Vector:
    """The force about the parent's point, where the present reference point lies at r from it."""
    return add(f[:3], cross(r, f[3:])) + list(f[3:])


def rigid_inertia(mass: Any, centre: Sequence[Any], moments: Sequence[Any]) -> Vector:
    """Inertia about the reference point of a body with its centre of mass at `centre` and moments about it (six
    numbers)."""
    h = scale(centre, mass)
    c = [h[i] * centre[i] for i in range(3)]
    return [
        moments[0] + (c[1] + c[2]), moments[1] + (c[0] + c[2]), moments[2] + (c[0] + c[1]),
        moments[3] - h[0] * centre[1], moments[4] - h[0] * centre[2], moments[5] - h[1] * centre[2], *h, mass,
    ]  # fmt: skip


def rigid_times(inertia: Sequence[Any], v: Sequence[Any]) -> Vector:
    """Rigid inertia times motion: a force."""
    w, u, h = v[:3], v[3:], inertia[6:9]
    rotational = [dot([inertia[PLACE[i, j]] for j in range(3)], w) for i in range(3)]
    return add(rotational, cross(h, u)) + sub(scale(u, inertia[9]), cross(h, w))


Articulated = tuple[Vector, Vector, Vector]


def articulated(inertia: Sequence[Any]) -> Articulated:
    """A rigid inertia as an articulated one."""
    return list(inertia[:6]), skew(inertia[6:9]), [inertia[9]] * 3 + [0.0] * 3


def articulated_sum(P: Articulated, Q: Articulated) -> Articulated:
    return add(P[0], Q[0]), add(P[1], Q[1]), add(P[2], Q[2])


def articulated_times(P: Articulated, v: Sequence[Any]) -> Vector:
    A, B, C = P
    w, u = v[:3], v[3:]
    moment = [dot([A[PLACE[i, k]] for k in range(3)], w) + dot(row(B, i), u) for i in range(3)]
    force = [dot(column(B, i), w) + dot([C[PLACE[i, k]] for k in range(3)], u) for i in range(3)]
    return moment + force


def articulated_shift(P: Articulated, r: Sequence[Any]) -> Articulated:
    """The articulated inertia about the parent's point, where the present point lies at r from it."""
    A, B, C = P
    S = skew(r)
    B2 = add(B, matmul(S, symmetric_matrix(C)))
    A2 = [A[k] + dot(row(S, i), row(B, j)) + dot(row(B2, i), row(S, j)) for k, (i, j) in enumerate(SYMMETRIC)]
    return A2, B2, C


def articulated_minus_outer(P: Articulated, u: Sequence[Any], g: Sequence[Any]) -> Articulated:
    """P - u g' for parallel forces u and g, so that the result is symmetric."""
    A, B, C = P
    return (
        [A[k] - g[i] * u[j] for k, (i, j) in enumerate(SYMMETRIC)],
        [B[3 * i + j] - g[i] * u[3 + j] for i in range(3) for j in range(3)],
        [C[k] - g[3 + i] * u[3 + j] for k, (i, j) in enumerate(SYMMETRIC)],
    )


def articulated_numbers(P: Articulated) -> Vector:
    """The 21 numbers of an articulated inertia in one list."""
    return [*P[0], *P[1], *P[2]]


def articulated_from(numbers: Sequence[Any]) -> Articulated:
    return list(numbers[:6]), list(numbers[6:15]), list(numbers[15:21])
