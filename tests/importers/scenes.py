"""Short ways to compile a scene in tests."""

from __future__ import annotations

from pluriverse.importers.scene_spec import CompiledScene, EntitySource, compile_scene
from pluriverse.materials import Rigid
from pluriverse.morphs import MJCF, Morph
from pluriverse.options import RigidOptions, SimOptions
from pluriverse.surfaces import Default

ARM = """
<mujoco model="arm">
  <worldbody>
    <geom name="floor" type="plane" size="1 1 .1"/>
    <body name="base" pos="0 0 1"><freejoint name="root"/><geom size=".1"/>
      <body name="tip" pos="1 0 0"><joint name="j" range="-10 10"/><geom name="g" size=".2"/></body>
    </body>
  </worldbody>
  <actuator><motor name="a" joint="j"/></actuator>
  <equality><joint name="e" joint1="j"/></equality>
  <keyframe><key name="home" qpos="1 2 3 1 0 0 0 .1"/></keyframe>
</mujoco>
"""


def source(morph: Morph, label: str = "it", **material: float) -> EntitySource:
    return EntitySource(label, morph, Rigid(**material), Default())


def compiled(
    *morphs: Morph, sim: SimOptions | None = None, rigid: RigidOptions | None = None, **material: float
) -> CompiledScene:
    """The scene of these morphs, labelled e0, e1 ..."""
    sources = [source(morph, f"e{i}", **material) for i, morph in enumerate(morphs)]
    return compile_scene(sources, sim or SimOptions(), rigid or RigidOptions())


def from_xml(xml: str, **morph: object) -> CompiledScene:
    return compiled(MJCF(file=xml, **morph))
