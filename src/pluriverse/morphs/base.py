"""What all morphs share: where an entity stands and whether it is seen and touched."""

from __future__ import annotations

import math

from pluriverse.errors import GenesisException
from pluriverse.options.base import Options

Vector = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]


class Morph(Options):
    """Base of all morphs. The pose is that of the entity's base in the world; `euler` and `quat` exclude each other."""

    pos: Vector | None = (0.0, 0.0, 0.0)
    """Position [m]."""
    euler: Vector | None = None
    """Rotations about the world's x, then y, then z axis [degree]."""
    quat: Quaternion | None = None
    """Rotation as a quaternion wxyz; it is normalized."""
    visualization: bool = True
    """Seen by cameras."""
    collision: bool = True
    """Touches other things."""
    offset_pos: Vector | None = None
    """Must be None."""
    offset_euler: Vector | None = None
    """Must be None."""
    offset_quat: Quaternion | None = None
    """Must be None."""
    enable_custom_vverts: bool = False
    """Accepted without effect."""
    batch_fixed_verts: bool = True
    """Accepted without effect."""

    def check(self) -> None:
        if self.euler is not None and self.quat is not None:
            raise self.error("give either 'euler' or 'quat', not both.")
        if self.quat is not None and not math.hypot(*self.quat) > 1e-9:
            raise self.error(f"quat={self.quat} has no direction. Identity is (1, 0, 0, 0).")
        for name in ("pos", "euler", "quat"):
            if not all(map(math.isfinite, getattr(self, name) or ())):
                raise self.error(f"{name}={getattr(self, name)} is not finite.")
        if not self.visualization and not self.collision:
            raise self.error("neither 'visualization' nor 'collision' is set: nothing would be left of the entity.")
        for name in ("offset_pos", "offset_euler", "offset_quat"):
            if getattr(self, name) is not None:
                raise self.error(f"'{name}' is not supported yet. Use 'pos' and 'quat'.")

    @property
    def rotation(self) -> Quaternion:
        """The rotation as a unit quaternion wxyz, whichever way it was given."""
        if self.quat is not None:
            length = math.hypot(*self.quat)
            w, x, y, z = (component / length for component in self.quat)
            return w, x, y, z
        if self.euler is not None:
            return quaternion_from_euler(self.euler)
        return 1.0, 0.0, 0.0, 0.0

    def error(self, text: str) -> GenesisException:
        """An exception that names this kind of morph."""
        return GenesisException(f"{type(self).__name__}: {text}")


def quaternion_from_euler(degrees: Vector) -> Quaternion:
    """wxyz of rotations about the fixed axes x, then y, then z [degree]."""
    halves = [math.radians(angle) / 2 for angle in degrees]
    (cx, cy, cz), (sx, sy, sz) = map(math.cos, halves), map(math.sin, halves)
    return (
        cx * cy * cz + sx * sy * sz,
        sx * cy * cz - cx * sy * sz,
        cx * sy * cz + sx * cy * sz,
        cx * cy * sz - sx * sy * cz,
    )
