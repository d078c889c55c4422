"""Entities of one body with one simple shape."""

from __future__ import annotations

import math

from pluriverse.morphs.base import Morph, Vector

ALL_BITS = 0xFFFFFFFF


class Primitive(Morph):
    """Base of the simple shapes. Two of them touch if `contype` of one and `conaffinity` of the other share a bit."""

    pos: Vector = (0.0, 0.0, 0.0)
    fixed: bool = False
    """Stands still; otherwise it moves freely (6 degrees of freedom)."""
    contype: int = 0xFFFF
    conaffinity: int = 0xFFFF

    def check(self) -> None:
        super().check()
        for name in ("contype", "conaffinity"):
            if not 0 <= getattr(self, name) <= ALL_BITS:
                raise self.error(f"{name}={getattr(self, name)} does not fit 32 bits: 0 to 2**32 - 1 is allowed.")

    def check_positive(self, name: str) -> None:
        """Raises unless the length, or all lengths, of that name are > 0 and finite."""
        value = getattr(self, name)
        if not all(0 < length < math.inf for length in (value if isinstance(value, tuple) else (value,))):
            raise self.error(f"{name}={value}: expected lengths > 0 in metres.")


class Plane(Primitive):
    """An infinite plane that never moves. It is solid below: its normal points to the free side."""

    fixed: bool = True
    batch_fixed_verts: bool = False
    normal: Vector = (0.0, 0.0, 1.0)
    """Direction of the free side, of any length, in the frame that `quat` or `euler` turns."""
    plane_size: tuple[float, float] = (1000.0, 1000.0)
    """The part that is drawn [m]."""
    tile_size: tuple[float, float] = (1.0, 1.0)
    """Size of a drawn tile [m]."""

    def check(self) -> None:
        super().check()
        if not self.fixed:
            raise self.error("a plane is infinite and cannot move. Remove fixed=False, or use a Box.")
        if not 1e-9 < math.hypot(*self.normal) < math.inf:
            raise self.error(f"normal={self.normal} has no direction.")
        self.check_positive("plane_size")
        self.check_positive("tile_size")


class Box(Primitive):
    """A box, given by its size at `pos`, or by two opposite corners."""

    size: Vector | None = None
    """Full edge lengths [m]."""
    lower: Vector | None = None
    """Corner with the smallest coordinates, world frame [m]."""
    upper: Vector | None = None
    """Corner with the largest coordinates, world frame [m]."""

    def check(self) -> None:
        super().check()
        if (self.lower is None) != (self.upper is None):
            raise self.error("'lower' and 'upper' belong together; one is missing.")
        if (self.size is None) == (self.lower is None):
            raise self.error("give either 'size' or both 'lower' and 'upper'.")
        if self.lower is not None and self.upper is not None:
            (x0, y0, z0), (x1, y1, z1) = self.lower, self.upper
            if x0 >= x1 or y0 >= y1 or z0 >= z1:
                raise self.error(f"lower={self.lower} must be below upper={self.upper} in each coordinate.")
            self.pos = ((x0 + x1) / 2, (y0 + y1) / 2, (z0 + z1) / 2)
            self.size = (x1 - x0, y1 - y0, z1 - z0)
        self.check_positive("size")


class Sphere(Primitive):
    """A ball."""

    radius: float = 0.5
    """[m]"""

    def check(self) -> None:
        super().check()
        self.check_positive("radius")


class Cylinder(Primitive):
    """A cylinder about the z axis."""

    radius: float = 0.5
    """[m]"""
    height: float = 1.0
    """Whole height [m]."""

    def check(self) -> None:
        super().check()
        self.check_positive("radius")
        self.check_positive("height")


class Capsule(Primitive):
    """A cylinder about the z axis with round ends."""

    radius: float = 0.1
    """[m]"""
    height: float = 1.0
    """Height of the cylindrical part [m]; with its ends the capsule is 2 radius higher."""

    def check(self) -> None:
        super().check()
        self.check_positive("radius")
        self.check_positive("height")


class Ellipsoid(Primitive):
    """An ellipsoid along the axes."""

    radii: Vector = (0.5, 0.5, 0.5)
    """Half lengths along x, y, z [m]."""

    def check(self) -> None:
        super().check()
        self.check_positive("radii")
