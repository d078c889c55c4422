"""Options of the rigid-body solver."""

from __future__ import annotations

import enum
from typing import Any, ClassVar

from pluriverse import constants
from pluriverse.errors import GenesisException
from pluriverse.options.base import Options, ignored, renamed


class RigidOptions(Options):
    """How rigid bodies move and touch. Names and defaults are Genesis's, with two exceptions:

    `integrator` defaults to MuJoCo's implicitfast (Genesis's scheme is `approximate_implicitfast`) and `iterations`
    to 50. An option that would change the physics in a way that is not supported is an error.
    """

    # integration
    integrator: constants.integrator = constants.integrator.implicitfast
    """Euler, RK4, implicit, implicitfast, or approximate_implicitfast."""
    iterations: int = 50
    """Newton iterations at most; the solver stops when no constraint row changes sign."""
    dt: float | None = None
    """Duration of a physics step [s]; None: SimOptions.dt / substeps."""
    gravity: tuple[float, float, float] | None = None
    """Acceleration of gravity [m/s^2]; None: SimOptions.gravity."""

    # which constraints act
    enable_collision: bool = True
    """Bodies touch."""
    enable_joint_limit: bool = True
    """Joints stop at their limits."""
    enable_self_collision: bool = True
    """Bodies of one kinematic tree touch each other."""
    enable_neutral_collision: bool | None = None
    """Bodies that overlap at the rest pose touch, as in MuJoCo. False (Genesis drops such pairs) is not supported."""
    enable_adjacent_collision: bool = False
    """Parent and child touch."""
    disable_constraint: bool = False
    """No constraint acts: no contact, limit, equality or friction loss."""

    # solver
    constraint_solver: constants.constraint_solver = constants.constraint_solver.Newton
    """Newton."""
    tolerance: float | None = None
    """Improvement of the scaled cost below which the solver stops; None: by the precision."""
    ls_iterations: int = 50
    """Line-search iterations at most."""
    ls_tolerance: float = 1e-2
    """Relative slope at which the line search stops."""
    strict: bool = False
    """Raise, some steps later, where an environment met a NaN or the solver its limit; else a warning says it once."""
    noslip_iterations: int = 0
    """Must be 0."""
    noslip_tolerance: float = 1e-6
    """No effect without noslip iterations."""
    constraint_timeconst: float | None = None
    """Must be None: a constraint without its own solref uses MuJoCo's default, (0.02, 1)."""

    # contact model
    friction_cone: constants.friction_cone = constants.friction_cone.pyramidal
    """pyramidal or elliptic."""
    contact_resolution: constants.contact_resolution | None = None
    """None or convex."""
    impratio: float | None = None
    """Frictional over normal impedance of contacts; None: 1 with pyramidal, 100 with elliptic cones."""
    enable_torsional_friction: bool = False
    """Geoms with sliding friction resist turning about the contact normal too (condim 4)."""
    enable_rolling_friction: bool = False
    """Geoms with sliding friction resist turning and rolling too (condim 6)."""
    max_contacts: int | None = None
    """Contacts of an environment for which there is room; what is beyond is lost, and said. None: all that can be, or
    in scenes of many geoms what a heap of them has."""

    # hints to Genesis's algorithms and capacities of its buffers, accepted without effect
    max_collision_pairs: int = 150
    multiplier_collision_broad_phase: int = 8
    max_dynamic_constraints: int = 8
    IK_max_targets: int = 6
    batch_links_info: bool = False
    batch_joints_info: bool = False
    batch_dofs_info: bool = False
    contact_pruning_tolerance: float = 0.02
    sparse_solve: bool | None = None
    box_box_detection: bool = False
    use_gjk_collision: bool | None = None
    enable_multi_contact: bool = True
    enable_contact_patch: bool | None = None
    enable_mujoco_compatibility: bool = False
    broadphase_traversal: constants.broadphase_traversal | None = None
    hibernation_thresh_vel: float | None = None
    use_hibernation: bool = False
    """Must be False."""

    deprecated: ClassVar = {
        "contact_resolve_time": renamed("constraint_timeconst"),
        "use_contact_island": ignored("constraints are solved by their structure"),
        "prefer_parallel_linesearch": ignored("the line search is exact"),
        "hibernation_thresh_acc": ignored("bodies do not sleep"),
    }

    def check(self) -> None:
        for name, expected, allowed in (
            ("dt", "a duration > 0 in seconds", self.dt is None or 0 < self.dt < float("inf")),
            ("iterations", "an integer >= 1", self.iterations >= 1),
            ("ls_iterations", "an integer >= 1", self.ls_iterations >= 1),
            ("tolerance", "a number >= 0", self.tolerance is None or self.tolerance >= 0),
            ("ls_tolerance", "a number >= 0", self.ls_tolerance >= 0),
            ("max_contacts", "an integer >= 1", self.max_contacts is None or self.max_contacts >= 1),
            ("impratio", "a number > 0", self.impratio is None or self.impratio > 0),
        ):
            if not allowed:
                raise GenesisException(f"RigidOptions.{name}: got {getattr(self, name)}, expected {expected}.")
        unsupported = [f"{name}={_spell(getattr(self, name))} ({use})" for name, wrong, use in self._limits() if wrong]
        if unsupported:
            raise GenesisException(f"RigidOptions: not supported yet: {'; '.join(unsupported)}.")

    def _limits(self) -> tuple[tuple[str, bool, str], ...]:
        """Options, whether they are set to something unsupported, and what to do instead."""
        return (
            ("constraint_solver", self.constraint_solver is not constants.constraint_solver.Newton, "use Newton"),
            ("contact_resolution", self.contact_resolution is constants.contact_resolution.signorini, "use convex"),
            ("noslip_iterations", self.noslip_iterations != 0, "use 0"),
            ("constraint_timeconst", self.constraint_timeconst is not None, "author solref in the model file"),
            ("enable_neutral_collision", self.enable_neutral_collision is False, "exclude the pairs in the model file"),
            ("use_hibernation", self.use_hibernation, "use False"),
        )


def _spell(value: Any) -> str:
    return value.name if isinstance(value, enum.Enum) else str(value)


class KinematicOptions(Options):
    """Options of entities that are only shown and queried. Accepted without effect."""

    batch_links_info: bool = False
    batch_joints_info: bool = False
    batch_dofs_info: bool = False
    IK_max_targets: int = 6
