"""Materials: what an entity is made of."""

from __future__ import annotations

from types import SimpleNamespace

from pluriverse.errors import GenesisException
from pluriverse.options.base import Options
from pluriverse.options.unsupported import refusing_classes


class Rigid(Options):
    """A rigid body. What is None stays as the model file says; for primitives it is the value in brackets."""

    rho: float | None = None
    """Density [600 kg/m^3]. Primitives only: a model file has its own masses."""
    friction: float | None = None
    """Sliding friction of all geoms [1.0]. Of two geoms in contact the larger one counts."""
    friction_torsional: float | None = None
    """Torsional friction [0.005 m]; used by contacts of dimension 4 and 6 only."""
    friction_rolling: float | None = None
    """Rolling friction [0.0001 m]; used by contacts of dimension 6 only."""
    gravity_compensation: float = 0.0
    """Share of the weight that is lifted; 1 floats. 0 leaves a model file's gravcomp as it is."""

    # settings of couplings and of signed distance fields, accepted without effect
    needs_coup: bool = True
    coup_friction: float = 0.1
    coup_softness: float = 0.002
    coup_restitution: float = 0.0
    sdf_cell_size: float = 0.005
    sdf_min_res: int = 32
    sdf_max_res: int = 128
    use_visual_raycasting: bool = False

    def check(self) -> None:
        if self.rho is not None and self.rho <= 0:
            raise GenesisException(f"Rigid.rho: got {self.rho}, expected a density > 0 in kg/m^3.")
        if self.friction is not None and not 1e-2 <= self.friction <= 5:
            raise GenesisException(f"Rigid.friction: got {self.friction}, expected a number from 0.01 to 5.")
        for name in ("friction_torsional", "friction_rolling"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise GenesisException(f"Rigid.{name}: got {value}, expected a number >= 0.")


_LATER = "not supported yet. Use materials.Rigid()."
_SOFT = "soft bodies, fluids and smoke are not part of this package, which simulates rigid bodies only."

UNSUPPORTED_MATERIALS = {"Kinematic": _LATER, "Tool": _LATER, "Hybrid": _SOFT}
UNSUPPORTED_FAMILIES = {
    "MPM": ("Elastic", "ElastoPlastic", "Liquid", "Sand", "Snow", "Muscle"),
    "SPH": ("Liquid",),
    "PBD": ("Cloth", "Elastic", "Liquid", "Particle"),
    "FEM": ("Elastic", "Muscle", "Cloth"),
    "SF": ("Smoke",),
}

globals().update(refusing_classes("materials", UNSUPPORTED_MATERIALS))
globals().update(
    {
        family: SimpleNamespace(**refusing_classes(f"materials.{family}", dict.fromkeys(names, _SOFT)))
        for family, names in UNSUPPORTED_FAMILIES.items()
    }
)
