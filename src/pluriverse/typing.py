"""Types that the public signatures share."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import torch

ArrayLike: TypeAlias = torch.Tensor | np.ndarray | Sequence | float
"""Numbers in any of the forms that a setter accepts."""

IndexLike: TypeAlias = int | slice | range | Sequence[int] | np.ndarray | torch.Tensor | None
"""Which dofs, links or environments: an index, a slice, a list of indices or a boolean mask; None is all of them."""

PathLike: TypeAlias = str | os.PathLike[str]
"""The path of a file."""

DeviceLike: TypeAlias = str | torch.device
"""A torch device, or its name: "cpu", "cuda", "cuda:1"."""
