"""The enumerations of the public API, with Genesis World's names and values."""

from __future__ import annotations

from enum import IntEnum


class Backend(IntEnum):
    """What computes: chosen in `gs.init`. Only `cpu` and `cuda` (and `gpu`, the first GPU kind there is) run here."""

    cpu = 0
    gpu = 1
    cuda = 2
    amdgpu = 3
    metal = 4

    def __str__(self) -> str:
        return f"gs.{self.name}"

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


class JOINT_TYPE(IntEnum):
    """Kinds of joint."""

    FIXED = 0
    REVOLUTE = 1
    PRISMATIC = 2
    SPHERICAL = 3
    FREE = 4


class GEOM_TYPE(IntEnum):
    """Kinds of collision shape."""

    PLANE = 0
    SPHERE = 1
    ELLIPSOID = 2
    CYLINDER = 3
    CAPSULE = 4
    BOX = 5
    MESH = 6
    TERRAIN = 7


class EQUALITY_TYPE(IntEnum):
    """Kinds of equality constraint."""

    CONNECT = 0
    WELD = 1
    JOINT = 2
    SCREW = 3
    TENDON = 4  # Genesis has none


class CTRL_MODE(IntEnum):
    """How a dof is driven."""

    POSITION = 0
    VELOCITY = 1
    FORCE = 2


class IMAGE_TYPE(IntEnum):
    """Kinds of camera image."""

    RGB = 0
    DEPTH = 1
    SEGMENTATION = 2
    NORMAL = 3


class PARA_LEVEL(IntEnum):
    """Genesis's levels of parallelisation, for scripts that name them; they choose nothing here."""

    NEVER = 0
    PARTIAL = 1
    ALL = 2


class integrator(IntEnum):
    """How velocities and positions advance over a step."""

    Euler = 0
    implicitfast = 1
    approximate_implicitfast = 2
    RK4 = 3
    implicit = 4


class constraint_solver(IntEnum):
    """What minimises the constraint cost."""

    CG = 0
    Newton = 1


class friction_cone(IntEnum):
    """The set of contact forces that friction allows."""

    pyramidal = 0
    elliptic = 1


class contact_resolution(IntEnum):
    """The law of contact."""

    convex = 0
    signorini = 1


class broadphase_traversal(IntEnum):
    """How pairs of shapes that may touch are found."""

    SAP = 0
    ALL_VS_ALL = 1


class link_ref_frame(IntEnum):
    """The point of a link that a velocity or a force refers to."""

    root_COM = 0
    link_COM = 1
    link_origin = 2


INACTIVE, ACTIVE = 0, 1
