"""Options of the whole simulation: time step, gravity."""

from __future__ import annotations

from pluriverse.errors import GenesisException
from pluriverse.options.base import Options


class SimOptions(Options):
    """Time and gravity. One `scene.step()` advances `dt` in `substeps` equal physics steps."""

    dt: float = 1e-2
    """Duration of a step [s]."""
    substeps: int = 1
    """Physics steps per step."""
    substeps_local: int | None = None
    """Only for soft bodies, which are not part of this package."""
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    """Acceleration of gravity, world frame [m/s^2]."""
    floor_height: float = 0.0
    """Height at which soft bodies meet the floor [m]; rigid bodies collide with entities only."""
    requires_grad: bool = False
    """Must be False: the step is not differentiable yet."""

    def check(self) -> None:
        if not 0 < self.dt < float("inf"):
            raise GenesisException(f"SimOptions.dt: got {self.dt}, expected a duration > 0 in seconds.")
        if self.substeps < 1:
            raise GenesisException(f"SimOptions.substeps: got {self.substeps}, expected an integer >= 1.")
        if self.substeps_local is not None:
            raise GenesisException(
                "SimOptions.substeps_local is a setting of soft bodies, which are not part of this package. Remove it."
            )
        if self.requires_grad:
            raise GenesisException(
                "SimOptions.requires_grad=True: gradients through the step are not supported yet. Use False."
            )
