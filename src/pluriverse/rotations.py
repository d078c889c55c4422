"""Unit quaternions (wxyz) as torch tensors whose first axis holds the components: (4, ...), vectors (3, ...)."""

from __future__ import annotations

import torch


def multiply(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """(4, ...) the product ab: rotate by b, then by a."""
    aw, ax, ay, az = a
    bw, bx, by, bz = b
    return torch.stack(
        (
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        )
    )


def rotate(q: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """(3, ...) the vector v rotated by q."""
    w, axis = q[:1], q[1:]
    t = 2 * torch.linalg.cross(axis, v, dim=0)
    return v + w * t + torch.linalg.cross(axis, t, dim=0)


def from_euler(angles: torch.Tensor) -> torch.Tensor:
    """(4, ...) from (3, ...) angles [rad] about the fixed axes x, then y, then z."""
    cx, cy, cz = torch.cos(angles / 2)
    sx, sy, sz = torch.sin(angles / 2)
    return torch.stack(
        (
            cx * cy * cz + sx * sy * sz,
            sx * cy * cz - cx * sy * sz,
            cx * sy * cz + sx * cy * sz,
            cx * cy * sz - sx * sy * cz,
        )
    )


def to_euler(q: torch.Tensor) -> torch.Tensor:
    """(3, ...) angles [rad] about the fixed axes x, then y in [-pi/2, pi/2], then z."""
    w, x, y, z = q
    return torch.stack(
        (
            torch.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)),
            torch.asin((2 * (w * y - x * z)).clamp(-1, 1)),
            torch.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)),
        )
    )
