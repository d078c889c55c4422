"""An entity: what one `add_entity` put into the scene, addressed by names and local indices."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch

from pluriverse.entities.entity_parts import EntityParts
from pluriverse.entities.keyframes import keyframe_values
from pluriverse.entities.rigid_equality import RigidEquality
from pluriverse.entities.rigid_geom import RigidGeom
from pluriverse.entities.rigid_joint import RigidJoint
from pluriverse.entities.rigid_link import RigidLink
from pluriverse.entities.rigid_site import RigidSite
from pluriverse.errors import GenesisException, did_you_mean
from pluriverse.not_yet import refuse_names_not_written
from pluriverse.runtime import runtime
from pluriverse.solver.forwarding import with_local_index
from pluriverse.solver.indexing import RowAxis, to_device
from pluriverse.solver.rigid_solver import RigidSolver
from pluriverse.solver.states import RigidEntityState
from pluriverse.typing import ArrayLike, IndexLike

if TYPE_CHECKING:
    from pluriverse.importers.scene_spec import EntityLayout, EntitySource

Part = TypeVar("Part", RigidLink, RigidJoint, RigidGeom, RigidSite, RigidEquality)


@refuse_names_not_written
class RigidEntity:
    """A robot or an object. Its methods are those of `RigidSolver` with indices that count within the entity.

    What the entity consists of is known once the scene is built.
    """

    def __init__(self, source: EntitySource, idx: int, uid: str, *, visualize_contact: bool = False) -> None:
        self.name = source.label
        self.morph = source.morph
        self.material = source.material
        self.surface = source.surface
        self.idx = idx
        self.uid = uid
        self.visualize_contact = visualize_contact
        self.source = source
        self._solver: RigidSolver | None = None

    def __repr__(self) -> str:
        return f"<RigidEntity {self.idx} '{self.name}'>"

    def bind(self, solver: RigidSolver, layout: EntityLayout) -> None:
        """Called by the scene when it is built: finds the entity's parts in the model."""
        self._solver = solver
        self._layout = layout
        self._parts = EntityParts.of(self, layout, solver.model)
        device, owner = solver.device, f"entity '{self.name}'"

        def axis(members: Any, argument: str, kind: str) -> RowAxis:
            text = f"{owner} ({len(members)} {kind})"
            return RowAxis(np.array(members, dtype=np.int64), device, argument=argument, owner=text)

        self._dof_axis = axis(layout.dofs, "dofs_idx_local", "dofs")
        self._q_axis = axis(layout.qpos, "qs_idx_local", "coordinates")
        self._link_axis = axis(layout.bodies, "links_idx_local", "links")
        self._geom_axis = axis(layout.geoms, "geoms_idx_local", "geoms")
        self._actuator_axis = axis(layout.controls, "actuators_idx_local", "controls of actuators")
        self._activation_axis = axis(layout.activations, "activations_idx_local", "activations")
        self._site_axis = axis(layout.sites, "sites_idx_local", "sites")
        self._equality_axis = axis(layout.equalities, "equalities_idx_local", "equality constraints")

    # structure --------------------------------------------------------------------------------------------------------

    @property
    def solver(self) -> RigidSolver:
        """The solver of the scene. An error before the scene is built."""
        if self._solver is None:
            raise GenesisException(f"Entity '{self.name}' is part of no built scene yet. Call scene.build() first.")
        return self._solver

    @property
    def layout(self) -> EntityLayout:
        """Where the entity lies in the model."""
        self.require_built()
        return self._layout

    @property
    def is_built(self) -> bool:
        """Whether the scene is built."""
        return self._solver is not None

    @property
    def parts(self) -> EntityParts:
        """Its links, joints, geoms, sites and equality constraints."""
        self.require_built()
        return self._parts

    links = property(lambda self: self.parts.links, doc="Its links, parents first.")
    joints = property(lambda self: self.parts.joints, doc="Its joints, in the order of their links.")
    geoms = property(lambda self: self.parts.geoms, doc="Its collision shapes.")
    sites = property(lambda self: self.parts.sites, doc="The sites of its model file.")
    equalities = property(lambda self: self.parts.equalities, doc="Its equality constraints.")

    @property
    def joints_by_links(self) -> list[list[RigidJoint]]:
        """For each link the joints between it and its parent."""
        return [link.joints for link in self.links]

    @property
    def base_link(self) -> RigidLink:
        """Its first link."""
        if not self.links:
            raise GenesisException(
                f"Entity '{self.name}' has no link: its model file attaches everything to the world."
            )
        return self.links[0]

    @property
    def base_joint(self) -> RigidJoint:
        """The first joint of its first link."""
        if not self.base_link.joints:
            raise GenesisException(f"Entity '{self.name}' is fixed: there is no joint between its base and the world.")
        return self.base_link.joints[0]

    @property
    def is_free(self) -> bool:
        """Whether its base has a free joint."""
        return self.base_link.is_free

    @property
    def init_qpos(self) -> np.ndarray:
        """(n_qs,) qpos in the model's rest pose."""
        return self.solver.model.qpos0[self.q_start : self.q_end].copy()

    @property
    def keyframes(self) -> Mapping[str, torch.Tensor]:
        """The keyframes of its model file by name, each a fresh (n_qs,) qpos for `set_qpos`; none acts by itself.

        The numbers are those of the file: a free joint stands where the file has it, not where the morph moves the
        entity. A keyframe without a name is `keyframe_0`, `keyframe_1` ..., counted over the keyframes of the file.
        """
        return MappingProxyType({name: self.get_keyframe(name) for name in self._keyframe_names})

    def get_keyframe(self, name: str, quantity: str = "qpos") -> torch.Tensor:
        """A quantity of a keyframe, see `keyframes`: `entity.set_qpos(entity.get_keyframe("home"))`.

        quantity: "qpos" (n_qs,), "qvel" (n_dofs,), "ctrl" (controls,), "act" (activations,), "mocap_pos" (n, 3) or
        "mocap_quat" (n, 4) of its n mocap links.
        """
        if name not in self._keyframe_names:
            raise self._unknown(name, self._keyframe_names, "keyframe")
        key = self.layout.keyframes[self._keyframe_names.index(name)]
        values = keyframe_values(self.solver.model, self.layout, key)
        if quantity not in values:
            raise GenesisException(f"A keyframe holds no {quantity!r}. It holds: {', '.join(values)}.")
        return to_device(torch.tensor(values[quantity]), self.solver.device, runtime.tc_float).clone()

    base_link_idx = property(lambda self: self.base_link.idx, doc="Index of its first link over the scene.")
    n_links = property(lambda self: len(self.layout.bodies), doc="Number of links.")
    n_joints = property(lambda self: len(self.layout.joints), doc="Number of joints.")
    n_geoms = property(lambda self: len(self.layout.geoms), doc="Number of collision shapes.")
    n_dofs = property(lambda self: len(self.layout.dofs), doc="Degrees of freedom.")
    n_qs = property(lambda self: len(self.layout.qpos), doc="Numbers in qpos.")
    n_actuators = property(lambda self: len(self.layout.actuators), doc="Actuators of its model file.")
    n_sites = property(lambda self: len(self.layout.sites), doc="Sites of its model file.")
    n_equalities = property(lambda self: len(self.layout.equalities), doc="Equality constraints.")
    link_start = property(lambda self: self.layout.bodies.start - 1, doc="Its first link over the scene.")
    link_end = property(lambda self: self.layout.bodies.stop - 1, doc="Behind its last link.")
    joint_start = property(lambda self: self.layout.joints.start, doc="Its first joint over the scene.")
    joint_end = property(lambda self: self.layout.joints.stop, doc="Behind its last joint.")
    dof_start = property(lambda self: self.layout.dofs.start, doc="Its first dof over the scene.")
    dof_end = property(lambda self: self.layout.dofs.stop, doc="Behind its last dof.")
    q_start = property(lambda self: self.layout.qpos.start, doc="Its first number in qpos over the scene.")
    q_end = property(lambda self: self.layout.qpos.stop, doc="Behind its last number in qpos.")

    def get_link(self, name: str) -> RigidLink:
        """The link of this name."""
        return self._named(name, self.links, "link")

    def get_joint(self, name: str) -> RigidJoint:
        """The joint of this name."""
        return self._named(name, self.joints, "joint")

    def get_site(self, name: str) -> RigidSite:
        """The site of this name."""
        return self._named(name, self.sites, "site")

    def get_equality(self, name: str) -> RigidEquality:
        """The equality constraint of this name."""
        return self._named(name, self.equalities, "equality constraint")

    # the base ---------------------------------------------------------------------------------------------------------

    def get_pos(self, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,] 3) position of the base link's frame in the world [m]."""
        return self.base_link.get_pos(envs_idx)

    def get_quat(self, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,] 4) orientation of the base link's frame in the world, wxyz."""
        return self.base_link.get_quat(envs_idx)

    def get_vel(self, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,] 3) velocity of the base link's frame, world axes [m/s]."""
        return self.base_link.get_vel(envs_idx)

    def get_ang(self, envs_idx: IndexLike = None) -> torch.Tensor:
        """([n_envs,] 3) angular velocity of the base link, world axes [rad/s]."""
        return self.base_link.get_ang(envs_idx)

    def set_pos(
        self,
        pos: ArrayLike,
        envs_idx: IndexLike = None,
        *,
        zero_velocity: bool = True,
        relative: bool = False,
        skip_forward: bool = False,
    ) -> None:
        """Move the free or mocap base. pos: ([n_envs,] 3), world frame [m]; with `relative` from the model's place.

        zero_velocity: stop all dofs of the entity. `skip_forward` has no effect: poses are computed when they are read.
        """
        solver, base = self.solver, self._link_axis.select(self.base_link.idx_local)
        solver.set_base_links_pos(pos, base, envs_idx, relative=relative)
        self._stop(zero_velocity, envs_idx)

    def set_quat(
        self,
        quat: ArrayLike,
        envs_idx: IndexLike = None,
        *,
        zero_velocity: bool = True,
        relative: bool = False,
        skip_forward: bool = False,
    ) -> None:
        """Turn the free or mocap base. quat: ([n_envs,] 4), world frame, wxyz; with `relative` on top of the model's.

        zero_velocity: stop all dofs of the entity. `skip_forward` has no effect: poses are computed when they are read.
        """
        solver, base = self.solver, self._link_axis.select(self.base_link.idx_local)
        solver.set_base_links_quat(quat, base, envs_idx, relative=relative)
        self._stop(zero_velocity, envs_idx)

    # dofs -------------------------------------------------------------------------------------------------------------

    def set_qpos(
        self,
        qpos: ArrayLike,
        qs_idx_local: IndexLike = None,
        envs_idx: IndexLike = None,
        *,
        zero_velocity: bool = True,
        skip_forward: bool = False,
    ) -> None:
        """Set positions. qpos: ([n_envs,] n_qs), [m] or [rad]; a free joint is xyz + wxyz.

        zero_velocity: stop all dofs of the entity. `skip_forward` has no effect: poses are computed when they are read.
        """
        solver = self.solver
        solver.set_qpos(qpos, self._q_axis.select(qs_idx_local), envs_idx)
        self._stop(zero_velocity, envs_idx)

    def set_dofs_position(
        self,
        position: ArrayLike,
        dofs_idx_local: IndexLike = None,
        envs_idx: IndexLike = None,
        *,
        zero_velocity: bool = True,
    ) -> None:
        """Set positions. position: ([n_envs,] n_dofs), [m] or [rad]; rotations as angles about fixed x, y, z.

        zero_velocity: stop all dofs of the entity.
        """
        solver = self.solver
        solver.set_dofs_position(position, self._dof_axis.select(dofs_idx_local), envs_idx)
        self._stop(zero_velocity, envs_idx)

    def zero_all_dofs_velocity(self, envs_idx: IndexLike = None, *, skip_forward: bool = False) -> None:
        """Stop all its dofs."""
        self._stop(True, envs_idx)

    get_qpos = with_local_index("_q_axis", "qs_idx", RigidSolver.get_qpos)
    get_dofs_position = with_local_index("_dof_axis", "dofs_idx", RigidSolver.get_dofs_position)
    get_dofs_velocity = with_local_index("_dof_axis", "dofs_idx", RigidSolver.get_dofs_velocity)
    set_dofs_velocity = with_local_index("_dof_axis", "dofs_idx", RigidSolver.set_dofs_velocity)
    get_dofs_acc = with_local_index("_dof_axis", "dofs_idx", RigidSolver.get_dofs_acc)
    get_dofs_limit = with_local_index("_dof_axis", "dofs_idx", RigidSolver.get_dofs_limit)
    get_dofs_armature = with_local_index("_dof_axis", "dofs_idx", RigidSolver.get_dofs_armature)
    get_dofs_damping = with_local_index("_dof_axis", "dofs_idx", RigidSolver.get_dofs_damping)
    get_dofs_stiffness = with_local_index("_dof_axis", "dofs_idx", RigidSolver.get_dofs_stiffness)
    get_dofs_frictionloss = with_local_index("_dof_axis", "dofs_idx", RigidSolver.get_dofs_frictionloss)
    get_dofs_invweight = with_local_index("_dof_axis", "dofs_idx", RigidSolver.get_dofs_invweight)

    control_dofs_position = with_local_index("_dof_axis", "dofs_idx", RigidSolver.control_dofs_position)
    control_dofs_velocity = with_local_index("_dof_axis", "dofs_idx", RigidSolver.control_dofs_velocity)
    control_dofs_position_velocity = with_local_index(
        "_dof_axis", "dofs_idx", RigidSolver.control_dofs_position_velocity
    )
    control_dofs_force = with_local_index("_dof_axis", "dofs_idx", RigidSolver.control_dofs_force)
    control_actuators = with_local_index("_actuator_axis", "actuators_idx", RigidSolver.control_actuators)
    get_act = with_local_index("_activation_axis", "activations_idx", RigidSolver.get_act)
    set_act = with_local_index("_activation_axis", "activations_idx", RigidSolver.set_act)
    get_dofs_control_force = with_local_index("_dof_axis", "dofs_idx", RigidSolver.get_dofs_control_force)

    set_dofs_kp = with_local_index("_dof_axis", "dofs_idx", RigidSolver.set_dofs_kp)
    get_dofs_kp = with_local_index("_dof_axis", "dofs_idx", RigidSolver.get_dofs_kp)
    set_dofs_kv = with_local_index("_dof_axis", "dofs_idx", RigidSolver.set_dofs_kv)
    get_dofs_kv = with_local_index("_dof_axis", "dofs_idx", RigidSolver.get_dofs_kv)
    set_dofs_act_gain = with_local_index("_dof_axis", "dofs_idx", RigidSolver.set_dofs_act_gain)
    get_dofs_act_gain = with_local_index("_dof_axis", "dofs_idx", RigidSolver.get_dofs_act_gain)
    set_dofs_act_bias = with_local_index("_dof_axis", "dofs_idx", RigidSolver.set_dofs_act_bias)
    get_dofs_act_bias = with_local_index("_dof_axis", "dofs_idx", RigidSolver.get_dofs_act_bias)
    set_dofs_force_range = with_local_index("_dof_axis", "dofs_idx", RigidSolver.set_dofs_force_range)
    get_dofs_force_range = with_local_index("_dof_axis", "dofs_idx", RigidSolver.get_dofs_force_range)

    # links and geoms --------------------------------------------------------------------------------------------------

    get_links_pos = with_local_index("_link_axis", "links_idx", RigidSolver.get_links_pos)
    get_links_quat = with_local_index("_link_axis", "links_idx", RigidSolver.get_links_quat)
    get_links_vel = with_local_index("_link_axis", "links_idx", RigidSolver.get_links_vel)
    get_links_ang = with_local_index("_link_axis", "links_idx", RigidSolver.get_links_ang)
    get_links_mass = with_local_index("_link_axis", "links_idx", RigidSolver.get_links_mass)

    # sites, equality constraints --------------------------------------------------------------------------------------

    get_sites_pos = with_local_index("_site_axis", "sites_idx", RigidSolver.get_sites_pos)
    get_sites_quat = with_local_index("_site_axis", "sites_idx", RigidSolver.get_sites_quat)
    get_equalities_active = with_local_index("_equality_axis", "equalities_idx", RigidSolver.get_equalities_active)
    set_equalities_active = with_local_index("_equality_axis", "equalities_idx", RigidSolver.set_equalities_active)

    # mass, friction, state --------------------------------------------------------------------------------------------

    def get_mass(self) -> float:
        """Mass of all its links [kg]."""
        return sum(link.get_mass() for link in self.links)

    def set_friction(self, friction: float) -> None:
        """Set the sliding friction coefficient of all its shapes, 0.01 to 5. Of two in contact the larger counts."""
        solver = self.solver
        solver.set_geoms_friction(friction, self._geom_axis.select())

    def set_friction_ratio(
        self, friction_ratio: ArrayLike, links_idx_local: IndexLike = None, envs_idx: IndexLike = None
    ) -> None:
        """Set factors of the friction of links, 1 at first and after a reset.

        friction_ratio: ([n_envs,] n_links), above 0 and up to 200.
        """
        solver = self.solver
        solver.set_links_friction_ratio(friction_ratio, self._link_axis.select(links_idx_local), envs_idx)

    def get_state(self) -> RigidEntityState:
        """A copy of the pose of its base and of its joints' state; the environment axis is always there."""
        every: Any = self.solver.every_env
        return RigidEntityState(
            pos=self.get_pos(every),
            quat=self.get_quat(every),
            qpos=self.get_qpos(None, every),
            dofs_vel=self.get_dofs_velocity(None, every),
        )

    # ------------------------------------------------------------------------------------------------------------------

    def require_built(self) -> None:
        """Raises a GenesisException before the scene is built."""
        self.solver  # noqa: B018

    def _stop(self, wanted: bool, envs_idx: IndexLike) -> None:
        solver = self.solver
        if wanted and self.n_dofs:
            solver.set_dofs_velocity(None, self._dof_axis.select(), envs_idx)

    def _named(self, name: str, parts: list[Part], kind: str) -> Part:
        for part in parts:
            if part.name and part.name == name:  # an unnamed part is found by its index only
                return part
        raise self._unknown(name, [part.name for part in parts if part.name], kind)

    def _unknown(self, name: object, names: list[str], kind: str) -> GenesisException:
        hint = did_you_mean(name, names)
        return GenesisException(
            f"Entity '{self.name}' has no {kind} {name!r}. {hint}It has: {', '.join(names) or 'none'}."
        )

    @property
    def _keyframe_names(self) -> list[str]:
        return list(self.layout.keyframe_names)
