"""The one exception root of the package."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class GenesisException(Exception):
    """Raised for every fault a user can cause or has to know of.

    The message says what was given, what is allowed, why, and what to do. Nothing that was built before the
    failing call is harmed by it.
    """


PluriverseError = GenesisException
"""The same class under this package's own name."""


def did_you_mean(name: object, allowed: Iterable[str], cutoff: float = 0.6) -> str:
    """`Did you mean 'x'? ` with the allowed name nearest to a wrong one; empty where none is near."""
    nearest = difflib.get_close_matches(str(name), list(allowed), n=1, cutoff=cutoff)
    return f"Did you mean '{nearest[0]}'? " if nearest else ""
