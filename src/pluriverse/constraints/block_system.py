"""A symmetric positive definite system by blocks of dofs, with traced loops over those blocks that are not zero.

Dofs are cut into blocks: runs along the kinematic tree that do not branch. Two blocks are coupled where one carries the
other, where a row has dofs of both, or where bodies that they move touch. The elimination goes from the last dof up to
the first, so that a tree fills nothing in (Featherstone 2008, section 6.5), and what contacts add is found first, by
blocks (George and Liu 1981, chapter 5). Bodies that touch nothing of each other stay apart: islands need no code.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from pluriverse.model import Model
from pluriverse.trace.functions import reciprocal

LONGEST = 6  # dofs of a block: those of a free body


def dof_blocks(model: Model) -> list[range]:
    """The dofs of each block."""
    parents = model.dof_parentid.tolist()
    children = [parents.count(d) for d in range(model.nv)]
    starts = [
        d for d, parent in enumerate(parents) if parent != d - 1 or parent < 0 or children[parent] > 1
    ]  # fmt: skip
    blocks = []
    for start, stop in zip(starts, [*starts[1:], model.nv], strict=True):
        count = -(-(stop - start) // LONGEST)
        cuts = [start + (stop - start) * k // count for k in range(count + 1)]
        blocks += [range(a, b) for a, b in pairwise(cuts)]
    return blocks


class BlockSystem:
    """H x = y, assembled in `H` (n x n, lower triangle, row after row) and `y`."""

    def __init__(self, run: Any, model: Model, places: Iterable[tuple[int, int]]) -> None:
        """places: the entries (i, j), j <= i, that may always be other than zero."""
        self.run, self.n = run, model.nv
        self.blocks = dof_blocks(model)
        self.block_of = [b for b, block in enumerate(self.blocks) for _ in block]
        count, n = len(self.blocks), self.n
        self.H, self.y, self._pivots = (run.array(size, scratch=True) for size in (n * n, n, n))
        self._panel, self._scaled = (run.array(LONGEST * n, scratch=True) for _ in range(2))
        self._columns = run.array(n, kind="int")
        self._coupled = run.array(count * count, kind="int")
        self._start = run.table([block.start for block in self.blocks])
        self._stop = run.table([block.stop for block in self.blocks])
        static = {(self.block_of[i], self.block_of[j]) for i, j in places} | {(b, b) for b in range(count)}
        table = run.table([int((i, j) in static) for i in range(count) for j in range(count)])
        for p in run.range(count * count):
            self._coupled[p] = table[p]

    def couple(self, i: Any, j: Any) -> None:
        """Marks blocks i and j <= i (ints or traced ints) as coupled."""
        self._coupled[i * len(self.blocks) + j] = 1

    def fill_in(self) -> None:
        """Marks what the elimination will couple."""
        run, count = self.run, len(self.blocks)
        for down in run.range(count):
            k = (count - 1) - down
            for i in run.range(k):
                for _ in run.when(run.same(self._coupled[k * count + i], 1)):
                    for j in run.range(i):
                        for _ in run.when(run.same(self._coupled[k * count + j], 1)):
                            self.couple(i, j)

    def clear(self) -> None:
        """Puts zeros into all coupled blocks."""
        for i, j in self._coupled_blocks():
            for r in self.run.range(self._start[i], self._stop[i]):
                for c in self.run.range(self._start[j], self._stop[j]):
                    self.H[r * self.n + c] = 0.0

    def _coupled_blocks(self) -> Any:
        run, count = self.run, len(self.blocks)
        for i in run.range(count):
            for j in run.range(i + 1):
                for _ in run.when(run.same(self._coupled[i * count + j], 1)):
                    yield i, j

    def solve(self) -> list[Any]:
        """x. H and y are overwritten."""
        run, n, count = self.run, self.n, len(self.blocks)
        for down in run.range(count):
            k = (count - 1) - down
            start, stop = self._start[k], self._stop[k]
            outer = self._list_columns(k)
            self._eliminate_within(start, stop, outer)
            self._eliminate_outside(start, stop, outer)
        for r in run.range(n):
            self.y[r] = self.y[r] * self._pivots[r]
        for k in run.range(count):
            for j in run.range(k):
                for _ in run.when(run.same(self._coupled[k * count + j], 1)):
                    self._substitute(k, self._start[j], self._stop[j])
            for r in run.range(self._start[k], self._stop[k]):
                self._substitute_row(r, self._start[k], r)
        return [self.y[r] for r in range(n)]

    def _list_columns(self, k: Any) -> Any:
        """Lists the columns outside block k in which its rows are not zero, and then its own; the number of the
        former."""
        run, count = self.run, len(self.blocks)
        outer = run.variable(0, kind="int")
        for j in run.range(k):
            for _ in run.when(run.same(self._coupled[k * count + j], 1)):
                for c in run.range(self._start[j], self._stop[j]):
                    self._columns[outer.value] = c
                    outer.value = outer.value + 1
        return outer.value

    def _eliminate_within(self, start: Any, stop: Any, outer: Any) -> None:
        """Gathers the block's rows into the panel, and eliminates each from those above it in the block."""
        run, n = self.run, self.n
        size = stop - start
        for c in run.range(start, stop):
            self._columns[outer + (c - start)] = c
        for r in run.range(size):
            for a in run.range(outer + r + 1):
                self._panel[r * n + a] = self.H[(start + r) * n + self._columns[a]]
        for down in run.range(size):
            r = (size - 1) - down
            pivot = reciprocal(self._panel[r * n + outer + r])
            self._pivots[start + r] = pivot
            rhs = self.y[start + r]
            for s in run.range(r):
                factor = self._panel[r * n + outer + s] * pivot
                for a in run.range(outer + s + 1):
                    self._panel[s * n + a] = self._panel[s * n + a] - factor * self._panel[r * n + a]
                self.y[start + s] = self.y[start + s] - factor * rhs

    def _eliminate_outside(self, start: Any, stop: Any, outer: Any) -> None:
        """Stores the block's eliminated rows, and takes them out of the rows above the block."""
        run, n = self.run, self.n
        size = stop - start
        for r in run.range(size):
            pivot = self._pivots[start + r]
            for a in run.range(outer + r):
                scaled = self._panel[r * n + a] * pivot
                self._scaled[r * n + a] = scaled
                self.H[(start + r) * n + self._columns[a]] = scaled
        for r in run.range(size, LONGEST):  # a short block: rows of zeros
            for a in run.range(outer):
                self._panel[r * n + a] = 0.0
                self._scaled[r * n + a] = 0.0
        for a in run.range(outer):
            row = self._columns[a]
            left = [self._scaled[r * n + a] for r in range(LONGEST)]
            for b in run.range(a + 1):
                place = row * n + self._columns[b]
                total = self.H[place]
                for r in range(LONGEST):
                    total = total - left[r] * self._panel[r * n + b]
                self.H[place] = total
            rhs = run.variable(self.y[row], scratch=True)
            for r in run.range(size):
                rhs.value = rhs.value - self._scaled[r * n + a] * self.y[start + r]
            self.y[row] = rhs.value

    def _substitute(self, k: Any, start: Any, stop: Any) -> None:
        """Takes what these entries of x say out of block k."""
        for r in self.run.range(self._start[k], self._stop[k]):
            self._substitute_row(r, start, stop)

    def _substitute_row(self, r: Any, start: Any, stop: Any) -> None:
        total = self.run.variable(self.y[r], scratch=True)
        for c in self.run.range(start, stop):
            total.value = total.value - self.H[r * self.n + c] * self.y[c]
        self.y[r] = total.value
