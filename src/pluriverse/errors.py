"""The one exception root of the package."""

from __future__ import annotations


class GenesisException(Exception):
    """Raised for every fault a user can cause or has to know of.

    The message says what was given, what is allowed, why, and what to do. Nothing that was built before the
    failing call is harmed by it.
    """


PluriverseError = GenesisException
"""The same class under this package's own name."""
