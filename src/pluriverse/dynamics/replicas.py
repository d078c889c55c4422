"""Trees of equal structure that share one text: a traced loop stands for each of them in turn.

A model of many alike objects is written out once for each kind of tree. In the loop a `Replica` takes the place of the
`Tree`, so that the maths of this folder does not know of it: constants are looked up by the loop's index, and `Shifted`
finds the present tree's rows of qpos and qvel. What one loop computes and a later one needs is kept in arrays (`Kept`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pluriverse.model import Model
from pluriverse.trace.expression import Expr

from .tree import Node, Tree, limb_structure, tidy


@dataclasses.dataclass(frozen=True)
class Group:
    """Trees of equal structure: their bodies, node by node, each a tuple over the trees."""

    nodes: tuple[tuple[int, ...], ...]

    @property
    def count(self) -> int:
        return len(self.nodes[0])

    def first_dofs(self, model: Model) -> tuple[int, ...]:
        """The first dof of each tree."""
        return tuple(int(model.body_dofadr[body]) for body in self.nodes[0])

    def first_rows(self, model: Model) -> tuple[int, ...]:
        """The first row of qpos of each tree."""
        return tuple(int(model.jnt_qposadr[model.body_jntadr[body]]) for body in self.nodes[0])


def tree_groups(tree: Tree) -> list[Group]:
    """All trees of a model, those of equal structure together, in the order of their first ones."""
    model, groups = tree.model, dict[Any, list[list[int]]]()
    children: dict[int, list[int]] = {}
    moving = [body for body in tree.merged if model.body_treeid[body] >= 0]
    for body in moving:
        children.setdefault(tree.merged[body].parent, []).append(body)
    for body in moving:
        if model.body_treeid[tree.merged[body].parent] < 0:
            key = (limb_structure(model, tree.merged, children, body), tree.merged[body].parent)
            groups.setdefault(key, []).append(_depth_first(children, body))
    return [Group(tuple(zip(*trees, strict=True))) for trees in groups.values()]


def _depth_first(children: dict[int, list[int]], body: int) -> list[int]:
    return [body, *(b for child in children.get(body, ()) for b in _depth_first(children, child))]


class Replica(Tree):
    """One tree of a group, told by a traced int."""

    def __init__(self, tree: Tree, group: Group, number: Any) -> None:
        self.model, self.run, self.merged, self.fixed = tree.model, tree.run, tree.merged, tree.fixed
        self.group, self.number = group, number
        self.nodes, self._node_of = [], {}
        for bodies in group.nodes:
            self._add(bodies)

    def _constant(self, values: np.ndarray) -> Any:
        values = np.array([tidy(v) for v in values])
        if (values == values[0]).all():
            return float(values[0])
        return self.pick([float(v) for v in values])

    def pick(self, numbers: Sequence[float]) -> Any:
        """The present tree's number of one for each tree."""
        return self.run.table(list(numbers))[self.number]

    @property
    def dof_shift(self) -> Any:
        """How much further the present tree's dofs are than the first one's."""
        first = self.group.first_dofs(self.model)
        return self.pick([dof - first[0] for dof in first])

    @property
    def row_shift(self) -> Any:
        """How much further the present tree's rows of qpos are than the first one's."""
        first = self.group.first_rows(self.model)
        return self.pick([row - first[0] for row in first])

    def rows(self, array: Any) -> Any:
        """An array by rows of qpos, by the numbers that they have for the first tree."""
        return Shifted(array, self.row_shift)

    def dofs(self, array: Any) -> Any:
        """An array by dof, by the numbers that they have for the first tree."""
        return Shifted(array, self.dof_shift)


class Shifted:
    """Rows of an array by the numbers that they have for the first tree of a group."""

    def __init__(self, array: Any, shift: Any) -> None:
        self.array, self.shift = array, shift

    def __getitem__(self, row: int | slice) -> Any:
        if isinstance(row, slice):
            return [self.array[self.shift + k] for k in range(row.start, row.stop)]
        return self.array[self.shift + row]

    def __setitem__(self, row: int, value: Any) -> None:
        self.array[self.shift + row] = value


class PickedBuffer:
    """A buffer of which each tree reads its own row, where there is one for each."""

    def __init__(self, buffer: Any, replica: Replica) -> None:
        self.buffer, self.replica = buffer, replica

    def read(self, row: Any) -> Any:
        return self.buffer.read(self.replica.pick(row) if isinstance(row, tuple) else row)


class Kept:
    """What a loop over the trees of a group computes, for later loops: numbers in an array, the rest as it is."""

    def __init__(self, run: Any, count: int) -> None:
        self.run, self.count = run, count
        self._array = run.array(0, scratch=True)
        self._slots: list[int | None] = []  # by place in the value; None: the same for all trees
        self._width = 0
        self._nodes: list[Node] = []
        self.value: Any = None  # as the first loop stored it

    def store(self, replica: Replica, value: Any) -> None:
        """To be called in the loop over the trees, in one place of the code."""
        leaves = list(_leaves(value))
        if self.value is None:
            known: dict[int, int] = {}
            self._slots = [known.setdefault(id(x), len(known)) if isinstance(x, Expr) else None for x in leaves]
            if not known:  # plain numbers: each may differ between trees
                self._slots = list(range(len(leaves)))
            self._width, self._nodes, self.value = 1 + max(filter(None, self._slots), default=0), replica.nodes, value
            self.run.resize(self._array, self.count * self._width)
        for slot, x in {slot: x for slot, x in zip(self._slots, leaves, strict=True) if slot is not None}.items():
            self._array[replica.number * self._width + slot] = x

    def load(self, replica: Replica) -> Any:
        """The value of a tree, with its present nodes."""
        loaded: dict[int, Any] = {}
        slots = iter(self._slots)

        def leaf(x: Any) -> Any:
            slot = next(slots)
            if slot is None:
                return x
            if slot not in loaded:
                loaded[slot] = self._array[replica.number * self._width + slot]
            return loaded[slot]

        return _rebuilt(self.value, leaf, dict(zip(self._nodes, replica.nodes, strict=True)))


def _leaves(value: Any) -> Iterator[Any]:
    """The numbers in nested lists, tuples, dicts and dataclasses."""
    if isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from _leaves(getattr(value, field.name))
    else:
        yield value


def _rebuilt(value: Any, leaf: Any, keys: dict[Any, Any]) -> Any:
    """The same structure with other numbers and other keys."""
    if isinstance(value, dict):
        return {keys.get(k, k): _rebuilt(item, leaf, keys) for k, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_rebuilt(item, leaf, keys) for item in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: _rebuilt(getattr(value, f.name), leaf, keys) for f in dataclasses.fields(value)}
        return type(value)(**fields)
    return leaf(value)
