"""The bits of an environment's status word, and their places in the words that alarm the host."""

from __future__ import annotations

NON_FINITE = 1  # met a NaN or an infinity; stands still
UNCONVERGED = 2  # the solver's iterations ran out
CONTACT_OVERFLOW = 4  # the list of contacts was full, and contacts were lost
BITS = (NON_FINITE, UNCONVERGED, CONTACT_OVERFLOW)


def number_of(bit: int) -> int:
    """The place of a bit's word among the alarms."""
    return BITS.index(bit)
