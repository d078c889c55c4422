"""Surfaces: how an entity looks. Data only; renderers read it."""

from __future__ import annotations

from typing import Any, Literal

from pluriverse.errors import GenesisException
from pluriverse.options.base import Options
from pluriverse.textures import Texture


class Surface(Options):
    """Base of all surfaces. A short form (`color=`) and the texture of the same meaning exclude each other."""

    color: tuple[float, ...] | None = None
    """Red, green, blue and, if wished, alpha, each in [0, 1]."""
    opacity: float | None = None
    roughness: float | None = None
    metallic: float | None = None
    emissive: tuple[float, ...] | None = None
    ior: float | None = None
    """Index of refraction."""
    diffuse_texture: Texture | None = None
    opacity_texture: Texture | None = None
    roughness_texture: Texture | None = None
    metallic_texture: Texture | None = None
    normal_texture: Texture | None = None
    emissive_texture: Texture | None = None
    default_roughness: float = 1.0
    vis_mode: Literal["visual", "collision", "particle", "sdf", "recon"] | None = None
    """What is drawn: the visual shapes or the collision shapes; the others belong to soft bodies."""
    smooth: bool = True
    """Normals are interpolated over faces."""
    double_sided: bool | None = None
    cutoff: float = 180.0
    """Opening angle of emitted light [degree]."""
    normal_diff_clamp: float = 180.0
    recon_backend: str = "splashsurf"
    generate_foam: bool = False
    foam_options: Any = None

    def check(self) -> None:
        for name in ("color", "emissive"):
            value = getattr(self, name)
            if value is not None and len(value) not in (3, 4):
                raise GenesisException(f"{type(self).__name__}.{name}: got {value}, expected 3 or 4 numbers in [0, 1].")
        for short in ("color", "opacity", "roughness", "metallic", "emissive"):
            texture = f"{'diffuse' if short == 'color' else short}_texture"
            if getattr(self, short) is not None and getattr(self, texture) is not None:
                raise GenesisException(f"{type(self).__name__}: give either '{short}' or '{texture}', not both.")


class BSDF(Surface):
    """A general surface: dielectric, metal, or in between."""

    specular_texture: Texture | None = None
    specular_transmission: float = 0.0


class Default(BSDF):
    """The surface of an entity that names none."""


class Plastic(Surface):
    """A dielectric with a coat."""

    ior: float | None = 1.0
    specular_texture: Texture | None = None


class Rough(Plastic):
    """Dull."""

    roughness: float | None = 1.0


class Smooth(Plastic):
    """A slight gloss."""

    roughness: float | None = 0.1
    ior: float | None = 1.2


class Reflective(Plastic):
    """Almost a mirror."""

    roughness: float | None = 0.01
    ior: float | None = 2.0


class Collision(Plastic):
    """How collision shapes are drawn."""

    color: tuple[float, ...] | None = (0.5, 0.5, 0.5)


class Metal(Surface):
    """A metal of a given kind."""

    roughness: float | None = 0.1
    metallic: float | None = 1.0
    metal_type: Literal["iron", "aluminium", "copper", "gold"] = "iron"


class Iron(Metal):
    metal_type: Literal["iron", "aluminium", "copper", "gold"] = "iron"


class Aluminium(Metal):
    metal_type: Literal["iron", "aluminium", "copper", "gold"] = "aluminium"


class Copper(Metal):
    metal_type: Literal["iron", "aluminium", "copper", "gold"] = "copper"


class Gold(Metal):
    metal_type: Literal["iron", "aluminium", "copper", "gold"] = "gold"


class Glass(Surface):
    """Lets light through and bends it."""

    roughness: float | None = 0.1
    ior: float | None = 1.5
    subsurface: bool = False
    thickness: float | None = None
    specular_texture: Texture | None = None
    transmission_texture: Texture | None = None


class Water(Glass):
    """Clear water."""

    color: tuple[float, ...] | None = (0.61, 0.98, 0.93)
    roughness: float | None = 0.2
    ior: float | None = 1.2


class Emission(Surface):
    """Gives light."""
