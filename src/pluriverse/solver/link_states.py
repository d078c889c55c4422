"""Poses and velocities of links, geoms and sites, computed when they are read and not before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from pluriverse import rotations
from pluriverse.constants import link_ref_frame
from pluriverse.dynamics.body_states import BODY_STATE_ROWS
from pluriverse.errors import GenesisException
from pluriverse.model import Model
from pluriverse.solver.axes import JOINT_FREE, Axes
from pluriverse.solver.broadcasting import Field, column, spread
from pluriverse.solver.element_names import ElementNames
from pluriverse.solver.indexing import Envs, Rows, rows_at, to_device
from pluriverse.solver.state import State, mocap_rest
from pluriverse.typing import ArrayLike, IndexLike

if TYPE_CHECKING:
    from pluriverse.step_kernel import KinematicsKernel

# Rows of a body's state; axes of the world.
_POSITION, _QUATERNION, _ANGULAR, _LINEAR = slice(0, 3), slice(3, 7), slice(7, 10), slice(10, 13)


@dataclass(frozen=True, eq=False)
class _Base:
    """Where the pose of a body lies that can be put anywhere: in qpos or in mocap."""

    field: Field
    position: Rows
    quaternion: Rows
    rest: np.ndarray  # (7,)

    @classmethod
    def at(cls, field: Field, first: int, rest: np.ndarray) -> _Base:
        """Of seven rows from `first` on, of which `rest` holds the model's numbers."""
        place, turn = (
            rows_at(np.arange(start, stop) + first, field.tensor.device, "links_idx")
            for start, stop in ((0, 3), (3, 7))
        )
        return cls(field, place, turn, rest[first : first + 7])


class LinkStates:
    """Link frames over the bodies of the model. Whoever changes the motion says so by `motion_changes`.

    make_kernel: compiles the kinematics, at the first read. on_change is told which environments a setter changed.
    """

    def __init__(
        self,
        model: Model,
        state: State,
        axes: Axes,
        names: ElementNames,
        make_kernel: Callable[[], KinematicsKernel],
        on_change: Callable[[Envs], None],
    ) -> None:
        self._stale, self._replayed = True, False
        self._model, self._state, self._axes, self._names = model, state, axes, names
        self._make_kernel, self._on_change = make_kernel, on_change
        self._kernel: KinematicsKernel | None = None
        self._qpos, self._mocap = Field(state.qpos), Field(state.mocap)
        free, mocap = np.flatnonzero(model.jnt_type == JOINT_FREE), np.flatnonzero(model.body_mocapid >= 0)
        self._bases = {
            int(model.jnt_bodyid[j]): _Base.at(self._qpos, int(model.jnt_qposadr[j]), model.qpos0) for j in free
        }
        self._free_links = axes.links.select([body - 1 for body in sorted(self._bases)])
        rest = mocap_rest(model)
        self._bases |= {int(b): _Base.at(self._mocap, 7 * int(model.body_mocapid[b]), rest) for b in mocap}
        self._poses = state.qpos.new_zeros(model.nbody, BODY_STATE_ROWS, state.n_padded)
        self._position, self._quaternion, self._angular, self._linear = (
            Field(self._poses[:, rows]) for rows in (_POSITION, _QUATERNION, _ANGULAR, _LINEAR)
        )
        self._com = column(model.body_ipos, state.qpos)  # (nbody, 3, 1) in body axes
        self._body_of_geom, self._body_of_site = (
            to_device(torch.tensor(bodies, dtype=torch.int64), state.qpos.device)
            for bodies in (model.geom_bodyid, model.site_bodyid)
        )

    def motion_changes(self) -> None:
        """Poses are to be computed anew; from then on at every read if a CUDA graph is captured, which changes motion
        unseen."""
        self._stale = True
        if self._qpos.tensor.is_cuda and torch.cuda.is_current_stream_capturing():
            self._replayed = True

    def get_links_pos(self, links_idx: IndexLike = None, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,] n_links, 3) origins of the link frames in the world [m]."""
        return self._read(self._position, links_idx, envs_idx)

    def get_links_quat(self, links_idx: IndexLike = None, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,] n_links, 4) orientations of the link frames in the world, wxyz."""
        return self._read(self._quaternion, links_idx, envs_idx)

    def get_links_vel(
        self,
        links_idx: IndexLike = None,
        envs_idx: IndexLike = None,
        *,
        ref: link_ref_frame | str = link_ref_frame.link_origin,
    ) -> torch.Tensor:
        """([n_envs,] n_links, 3) linear velocities in world axes [m/s].

        ref: the point whose velocity is meant: `gs.link_ref_frame.link_origin`, or `link_COM`, the link's centre of
        mass. A name serves as well.
        """
        if _ref_frame(ref) is link_ref_frame.link_origin:
            return self._read(self._linear, links_idx, envs_idx)
        poses = self._fresh_poses()
        velocity = poses[:, _LINEAR] + torch.linalg.cross(poses[:, _ANGULAR], _rotated(poses, self._com), dim=1)
        return Field(velocity).read(self._axes.links.select(links_idx), self._axes.envs.select(envs_idx))

    def get_links_ang(self, links_idx: IndexLike = None, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,] n_links, 3) angular velocities in world axes [rad/s]."""
        return self._read(self._angular, links_idx, envs_idx)

    def get_geoms_pos(self, geoms_idx: IndexLike = None, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,] n_geoms, 3) origins of the geom frames in the world [m]."""
        pos = self._carried_pos(self._body_of_geom, self._model.geom_pos)
        return Field(pos).read(self._axes.geoms.select(geoms_idx), self._axes.envs.select(envs_idx))

    def get_geoms_quat(self, geoms_idx: IndexLike = None, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,] n_geoms, 4) orientations of the geom frames in the world, wxyz."""
        quat = self._carried_quat(self._body_of_geom, self._model.geom_quat)
        return Field(quat).read(self._axes.geoms.select(geoms_idx), self._axes.envs.select(envs_idx))

    def get_sites_pos(self, sites_idx: IndexLike = None, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,] n_sites, 3) origins of the sites in the world [m]."""
        pos = self._carried_pos(self._body_of_site, self._model.site_pos)
        return Field(pos).read(self._axes.sites.select(sites_idx), self._axes.envs.select(envs_idx))

    def get_sites_quat(self, sites_idx: IndexLike = None, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,] n_sites, 4) orientations of the sites in the world, wxyz."""
        quat = self._carried_quat(self._body_of_site, self._model.site_quat)
        return Field(quat).read(self._axes.sites.select(sites_idx), self._axes.envs.select(envs_idx))

    def set_base_links_pos(
        self,
        pos: ArrayLike,
        links_idx: IndexLike = None,
        envs_idx: IndexLike = None,
        *,
        relative: bool = False,
        skip_forward: bool = False,
    ) -> None:
        """Move free bodies and mocap bodies. pos: ([n_envs,] n_links, 3), world frame [m].

        links_idx: None is every link with a free joint. relative: `pos` counts from where the link starts in the
        model. `skip_forward` has no effect: link poses are computed when they are read.
        """
        rows, envs = self._bases_of(links_idx, envs_idx)
        value = spread(pos, envs, rows.count, (3,), name="pos", like=self._qpos.tensor).expand(-1, rows.count, -1)
        for k, body in enumerate(rows.indices.tolist()):
            base = self._bases[body]
            start = column(base.rest[:3], value)[:, 0] if relative else 0.0
            base.field.write(base.position, envs, value[:, k] + start)
        self._bases_changed(rows, envs)

    def set_base_links_quat(
        self,
        quat: ArrayLike,
        links_idx: IndexLike = None,
        envs_idx: IndexLike = None,
        *,
        relative: bool = False,
        skip_forward: bool = False,
    ) -> None:
        """Turn free bodies and mocap bodies. quat: ([n_envs,] n_links, 4), world frame, wxyz of any length but zero.

        links_idx: None is every link with a free joint. relative: the link's orientation in the model comes first,
        then `quat`. `skip_forward` has no effect: link poses are computed when they are read.
        """
        rows, envs = self._bases_of(links_idx, envs_idx)
        value = spread(quat, envs, rows.count, (4,), name="quat", like=self._qpos.tensor).expand(-1, rows.count, -1)
        largest = value.abs().amax(dim=-1, keepdim=True)  # the square of a large number does not fit the dtype
        if largest.is_cpu and bool((largest == 0).any()):
            raise GenesisException("quat: a quaternion of zeros has no direction; identity is (1, 0, 0, 0).")
        value = value / largest
        value = value / value.norm(dim=-1, keepdim=True)
        for k, body in enumerate(rows.indices.tolist()):
            base, turned = self._bases[body], value[:, k]
            if relative:
                turned = rotations.multiply(turned.movedim(-1, 0), column(base.rest[3:], value)).movedim(0, -1)
            base.field.write(base.quaternion, envs, turned)
        self._bases_changed(rows, envs)

    def _read(self, what: Field, links_idx: IndexLike, envs_idx: IndexLike) -> torch.Tensor:
        rows, envs = self._axes.links.select(links_idx), self._axes.envs.select(envs_idx)
        self._fresh_poses()
        return what.read(rows, envs)

    def _fresh_poses(self) -> torch.Tensor:
        """(nbody, 13, N) of the present motion."""
        if self._kernel is None:
            self._kernel = self._make_kernel()
        if self._stale or self._replayed:
            self._kernel.launch(self._state, self._poses)
            self._stale = False
        return self._poses

    def _carried_pos(self, bodies: torch.Tensor, local: np.ndarray) -> torch.Tensor:
        """(n, 3, N) world positions of points `local` (n, 3) of bodies (n,)."""
        poses = self._fresh_poses()[bodies]
        return poses[:, _POSITION] + _rotated(poses, column(local, poses))

    def _carried_quat(self, bodies: torch.Tensor, local: np.ndarray) -> torch.Tensor:
        """(n, 4, N) world orientations of what has the orientations `local` (n, 4) in bodies (n,)."""
        turns = self._fresh_poses()[bodies][:, _QUATERNION]
        own = column(local, turns).expand_as(turns)
        return rotations.multiply(turns.movedim(1, 0), own.movedim(1, 0)).movedim(0, 1)

    def _bases_of(self, links_idx: IndexLike, envs_idx: IndexLike) -> tuple[Rows, Envs]:
        rows = self._free_links if links_idx is None else self._axes.links.select(links_idx).unique()
        fixed = [body for body in rows.indices.tolist() if body not in self._bases]
        if fixed:
            raise GenesisException(
                f"No free joint moves {self._names.of_links(rows, fixed)}, so the pose follows from the model. Move "
                "the base of a free entity or a mocap link, or give a fixed entity its place through its morph's pos "
                "and quat."
            )
        return rows, self._axes.envs.select(envs_idx).unique()

    def _bases_changed(self, rows: Rows, envs: Envs) -> None:
        """A mocap body has no motion: what moves goes on from where it was, with its warm start."""
        if any(self._bases[body].field is self._qpos for body in rows.indices.tolist()):
            self._on_change(envs)
        self.motion_changes()


def _rotated(poses: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    """(n, 3, N) body-frame vectors (n, 3, 1 or N) in world axes."""
    vectors = vectors.expand(-1, -1, poses.shape[-1])
    return rotations.rotate(poses[:, _QUATERNION].movedim(1, 0), vectors.movedim(1, 0)).movedim(0, 1)


def _ref_frame(ref: link_ref_frame | str) -> link_ref_frame:
    for allowed in (link_ref_frame.link_origin, link_ref_frame.link_COM):
        if ref == allowed or (isinstance(ref, str) and ref.lower() == allowed.name.lower()):
            return allowed
    raise GenesisException(f"ref={ref!r} is not supported; allowed are link_origin and link_COM.")
