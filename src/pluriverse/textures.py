"""Textures of surfaces: one colour or an image. Data only; renderers read it."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from pluriverse.errors import GenesisException
from pluriverse.options.base import Options
from pluriverse.options.unsupported import refusing_classes
from pluriverse.typing import PathLike


class Texture(Options):
    """Base of all textures."""


class ColorTexture(Texture):
    """One value for the whole surface."""

    color: float | tuple[float, ...] = (1.0, 1.0, 1.0)
    """A scalar, or 1 to 4 channels, each in [0, 1]."""

    def check(self) -> None:
        channels = self.color if isinstance(self.color, tuple) else (self.color,)
        if not 1 <= len(channels) <= 4:
            raise GenesisException(f"ColorTexture.color: got {len(channels)} channels, expected 1 to 4.")


class ImageTexture(Texture):
    """An image, from a file or from an array (height, width[, channels]) of uint8."""

    image_path: PathLike | None = None
    image_array: np.ndarray | None = None
    image_color: float | tuple[float, ...] | None = None
    """Factor on the image, per channel."""
    encoding: Literal["srgb", "linear"] = "srgb"

    def check(self) -> None:
        if (self.image_path is None) == (self.image_array is None):
            raise GenesisException("ImageTexture needs either 'image_path' or 'image_array'.")
        if self.image_array is not None and self.image_array.ndim not in (2, 3):
            raise GenesisException(
                f"ImageTexture.image_array: got shape {self.image_array.shape}, expected (height, width[, channels])."
            )


UNSUPPORTED_TEXTURES = {"BatchTexture": "textures per environment are not supported yet; use one texture."}
globals().update(refusing_classes("textures", UNSUPPORTED_TEXTURES))


def as_texture(value: Any) -> Texture:
    """A number or colour as a ColorTexture; a texture as itself."""
    return value if isinstance(value, Texture) else ColorTexture(color=value)
