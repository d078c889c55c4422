"""The smooth part of a step in traced loops over alike trees, kept in arrays for the solver and the integrator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pluriverse.constraints.rows import JointRows, joint_rows
from pluriverse.dynamics.inertia import mass_matrix
from pluriverse.dynamics.kinematics import body_motions
from pluriverse.dynamics.replicas import Group, Kept, PickedBuffer, Replica, tree_groups
from pluriverse.dynamics.spatial import Vector
from pluriverse.dynamics.tree import Node, Tree
from pluriverse.smooth import Smooth, smooth_forces

if TYPE_CHECKING:
    from pluriverse.step import Inputs, StepSettings

Matrix = dict[tuple[int, int], Any]


class LoopedSmooth:
    """Of each tree: the smooth part, its rows on joint coordinates, and its mass matrix."""

    def __init__(self, tree: Tree, qpos: Any, qvel: Any, inputs: Inputs, settings: StepSettings) -> None:
        """qpos, qvel: arrays by row and by dof."""
        self.tree, self.run = tree, tree.run
        self.groups = tree_groups(tree)
        self._kept: dict[Group, Kept] = {group: Kept(tree.run, group.count) for group in self.groups}
        for replica in self.each():
            q, v = replica.rows(qpos), replica.dofs(qvel)
            own_inputs = replace(inputs, control=PickedBuffer(inputs.control, replica))
            smooth = smooth_forces(replica, q, v, [], own_inputs, settings)
            rows = joint_rows(replica, q, v, settings)
            M = mass_matrix(replica, smooth.poses, smooth.inertias, smooth.armature)
            self._kept[replica.group].store(replica, (smooth, rows, M))

    def each(self) -> Iterator[Replica]:
        """Every tree."""
        for group in self.groups:
            for number in self.run.range(group.count) if group.count > 1 else (0,):
                yield Replica(self.tree, group, number)

    def load(self, replica: Replica) -> tuple[Smooth, JointRows, Matrix]:
        """What was kept of a tree, with its present nodes."""
        return self._kept[replica.group].load(replica)

    def templates(self) -> Iterator[tuple[Group, JointRows, Matrix]]:
        """Rows and mass matrix of one tree of each group, as a structure."""
        for group, kept in self._kept.items():
            yield group, *kept.value[1:]

    def motions(self, values: Any) -> Iterator[tuple[Replica, dict[Node, Vector]]]:
        """Each tree's body motions J times values (an array by dof)."""
        for replica in self.each():
            poses = self.load(replica)[0].poses
            yield replica, body_motions(replica, poses, replica.dofs(values))
