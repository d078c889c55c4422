"""Which local arrays of a program lie in a workspace in global memory.

Local arrays are the fastest where they are small. A GPU reserves the memory of all that a thread declares for every
thread that it could run, whether it runs or not, and a CPU's stack is small: what goes beyond BUDGET lies in a buffer
that is as large as it has to be, the largest arrays first.
"""

from __future__ import annotations

from .program import Array, Block, Program

BUDGET = 4096  # elements of local arrays
SMALL = 64  # elements of an array that stays local always


def workspace_rows(program: Program) -> tuple[dict[Array, int], int]:
    """The first row of each array that lies in the workspace, and the number of rows of all of them."""
    if program.lanes > 1:
        return {}, 0
    arrays = _arrays(program.root)
    total, rows, places = sum(a.size for a in arrays), 0, {}
    for array in sorted(arrays, key=lambda a: -a.size):
        if total <= BUDGET or array.size <= SMALL:
            break
        places[array], rows, total = rows, rows + array.size, total - array.size
    return places, rows


def _arrays(block: Block) -> list[Array]:
    """All arrays and fields of records."""
    found: dict[Array, None] = {}
    for statement in block.statements:
        if statement[0] == "array":
            found[statement[1]] = None
        elif statement[0] == "clear":
            found |= dict.fromkeys(statement[1].fields.values())
        elif statement[0] == "block":
            found |= dict.fromkeys(_arrays(statement[1]))
    return list(found)
