"""Entities from model files."""

from __future__ import annotations

import math
import re
from typing import Any, ClassVar
from xml.etree import ElementTree

from pluriverse.errors import GenesisException
from pluriverse.morphs.base import Morph, Vector
from pluriverse.options.base import ignored
from pluriverse.typing import PathLike

_ROOT = re.compile(r"(?:\ufeff|\s|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>)*<([^\s<>/!?]+)", re.DOTALL)


class MJCF(Morph):
    """A MuJoCo model. It means what MuJoCo says; `pos` and the rotation move it as a whole.

    The file is looked up in the working directory, then among the robots of this package
    (`xml/franka_emika_panda/panda.xml`); `menagerie:NAME` names a robot of the optional package mujoco-menagerie.
    XML text serves as well.
    """

    file: PathLike | ElementTree.Element | ElementTree.ElementTree = ""
    pos: Vector | None = None
    """Shift of the whole model [m]; None: none."""
    use_file_options: bool = False
    """The scene adopts the file's <option>: time step, gravity, integrator, solver settings, flags."""
    default_armature: float | None = None
    """Armature of hinge and slide joints that author none; None: MuJoCo's 0."""
    exclude_ground_plane: bool = False
    """Drop the planes that the file attaches to the world."""
    scale: float = 1.0
    """Must be 1."""

    # preparation of meshes: MuJoCo collides convex hulls
    convexify: bool | None = None
    """None or True: meshes collide as their convex hulls."""
    decompose_object_error_threshold: float = 0.15
    decompose_robot_error_threshold: float = math.inf
    """Must be infinite: meshes are not decomposed."""
    recompute_inertia: bool = False
    """Must be False: masses are the file's."""
    align: bool | None = None
    """None or False: bodies keep the file's frames."""
    decimate: bool | None = None
    decimate_face_num: int = 500
    decimate_aggressiveness: int = 2
    watertighten: int = 5
    coacd_options: Any = None
    file_meshes_are_zup: bool | None = None
    batch_fixed_verts: bool = False

    required: ClassVar = ("file",)
    deprecated: ClassVar = {
        "decompose_nonconvex": ignored("meshes are not decomposed"),
        "parse_glb_with_zup": ignored("MuJoCo reads the meshes"),
        "requires_jac_and_IK": ignored("Jacobians and inverse kinematics need no preparation"),
    }

    def check(self) -> None:
        super().check()
        if isinstance(self.file, str) and not self.file.strip():
            raise self.error("'file' is empty. Give a path, 'menagerie:NAME' or XML text.")
        if isinstance(self.file, str) and self.file.lstrip().startswith("<"):
            check_mjcf_root(root_tag(self.file), "the given text")
        tree = self.file.getroot() if isinstance(self.file, ElementTree.ElementTree) else self.file
        if isinstance(tree, ElementTree.Element):
            check_mjcf_root(tree.tag, "the given tree")
        if self.default_armature is not None and not 0 <= self.default_armature < math.inf:
            raise self.error(f"default_armature={self.default_armature}: expected a number >= 0, or None.")
        for name, allowed, instead in (
            ("scale", self.scale == 1, "Scale the lengths in the file."),
            ("convexify", self.convexify is not False, "Meshes collide as convex hulls; use None or True."),
            ("decompose_robot_error_threshold", math.isinf(self.decompose_robot_error_threshold), "Use inf."),
            ("recompute_inertia", not self.recompute_inertia, "Masses and inertias are the file's; use False."),
            ("align", not self.align, "Bodies keep the file's frames; use None or False."),
        ):
            if not allowed:
                raise self.error(f"{name}={getattr(self, name)} is not supported yet. {instead}")


def root_tag(text: str) -> str | None:
    """The name of the outermost element of XML text; None where there is none."""
    match = _ROOT.match(text)
    return match[1] if match else None


def check_mjcf_root(tag: str | None, what: str) -> None:
    """Raises GenesisException where the outermost element of `what` is another than MJCF's.

    MuJoCo itself takes a URDF too, and gives it a meaning of its own. None passes: MuJoCo has words for that.
    """
    if tag == "robot":
        raise GenesisException(f"MJCF: {what} is a URDF (its root is <robot>), and morphs.URDF is not supported yet.")
    if tag not in ("mujoco", None):
        raise GenesisException(f"MJCF: the root of {what} is <{tag}>; that of an MJCF model is <mujoco>.")
