"""Scenes as data: which model, how its robot starts, what its actuators are told. One file for all engines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import mujoco

ASSETS = Path(__file__).resolve().parents[1] / "src" / "pluriverse" / "assets" / "xml"
MASKED = "_masked"  # ends the name of a written file
PERIOD = 20  # physics steps between new controls


CONTROLS = ("hold", "near", "full")


@dataclass(frozen=True)
class Scene:
    """A model and its protocol. What is None is taken from the model: see `home_qpos` and `control_centre`.

    The robot starts at `home` with uniform noise on its joints, its free base tilted and at `height`. Every PERIOD
    physics steps each actuator gets a fresh uniform control around the centre, `control_width` to either side.
    """

    name: str
    file: Path
    home: tuple[float, ...] | None = None  # joints without the free base [rad] or [m]
    height: float | None = None  # of the free base [m]
    joint_noise: float = 0.05  # [rad] or [m]
    tilt: float = 0.0  # of the free base [rad]
    control_width: float | None = None  # None: the whole ctrlrange
    own_options: bool = False  # the file has no <option>: the benchmark's is used


_HOME_OF_PANDA = (0, 0, 0, -1.57079, 0, 1.57079, -0.7853, 0.04, 0.04)

OWN = {
    scene.name: scene
    for scene in (
        Scene("franka_emika_panda", ASSETS / "franka_emika_panda/panda.xml", control_width=0.5, own_options=True),
        Scene("go2", ASSETS / "go2/go2.xml", joint_noise=0.1, tilt=0.1, control_width=0.5, own_options=True),
        Scene("humanoid", ASSETS / "humanoid/humanoid.xml", tilt=0.2, control_width=1.0, own_options=True),
    )
}
"""The package's own models, by the name that --scene takes."""

KNOWN_FILES = {
    str(scene.file): scene
    for scene in (
        Scene("franka", Path("franka.xml"), home=_HOME_OF_PANDA, control_width=0.5),
        Scene("quad", Path("quad.xml"), (0, 0.8, -1.5) * 4, height=0.36, joint_noise=0.1, tilt=0.1, control_width=0.5),
        Scene("humanoid.xml", Path("humanoid.xml"), height=1.3, tilt=0.2, control_width=1.0),
    )
}
"""Protocols of files that are not part of the package, by file name. Any other file gets what its model says."""


def find_scene(given: str) -> Scene:
    """A scene by the name of one of the package's models, or by the path of any MJCF file."""
    if given in OWN:
        return OWN[given]
    path = Path(given)
    if not path.is_file():
        raise SystemExit(f"--scene {given}: neither a file nor one of {', '.join(OWN)}.")
    return replace(KNOWN_FILES.get(path.name, Scene(path.stem, path)), file=path)


def write_model(scene: Scene, folder: Path, *, mask: bool) -> Path:
    """Writes the model that all engines load: with a floor, and with `mask` the robot meets nothing but the floor.

    mask: every geom but those of the world body gets contype 0.
    """
    import mujoco

    spec = mujoco.MjSpec.from_file(str(scene.file))
    if scene.own_options:
        option = spec.option
        option.timestep, option.iterations, option.ls_iterations = 0.005, 10, 20
        option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    world = list(spec.worldbody.geoms)
    if not any(geom.type == mujoco.mjtGeom.mjGEOM_PLANE for geom in world):
        spec.worldbody.add_geom(name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 0.05])
    if mask:
        for body in spec.bodies[1:]:
            for geom in body.geoms:
                geom.contype = 0
    if list(spec.meshes):
        spec.meshdir = str((scene.file.parent / spec.meshdir).resolve())
    spec.compile()
    path = folder / f"{scene.name}{MASKED if mask else ''}.xml"
    path.write_text(spec.to_xml())
    return path


@dataclass(frozen=True)
class Case:
    """One scene at one batch size: the start state and the controls, the same for every engine.

    All numbers are float32 values, so that no engine starts from a rounded copy of what another has.
    """

    scene: Scene
    file: Path
    model: mujoco.MjModel
    n_envs: int
    steps: int  # physics steps of a window
    substeps: int  # physics steps of a scene.step()
    masked: bool
    qpos: np.ndarray  # (n_envs, nq)
    controls: tuple[np.ndarray, ...]  # of each block (n_envs, nu)
    lengths: tuple[int, ...]  # physics steps of each block

    def blocks(self) -> list[tuple[int, int]]:
        """Index and number of physics steps of each block."""
        return list(enumerate(self.lengths))


def make_case(
    scene: Scene, file: Path, n_envs: int, steps: int, substeps: int, *, controls: str, seed: int = 0
) -> Case:
    """Draws start states and controls. Environment i gets the same numbers in every batch size."""
    import mujoco

    if steps % substeps:
        raise SystemExit(f"--steps {steps} is no multiple of --substeps {substeps}.")
    model = mujoco.MjModel.from_xml_path(str(file))
    period = -(-PERIOD // substeps) * substeps
    lengths = tuple(min(period, steps - start) for start in range(0, steps, period))
    centre, width = control_centre(scene, model), control_width(scene, model, controls)
    drawn = []
    for block in range(len(lengths)):
        noise = np.random.default_rng([seed, 1 + block]).uniform(-1, 1, (n_envs, model.nu))
        control = centre + width * noise
        limited = model.actuator_ctrllimited.astype(bool)
        low, high = np.where(limited[:, None], model.actuator_ctrlrange, (-np.inf, np.inf)).T
        drawn.append(np.clip(control, low, high).astype(np.float32))
    qpos = start_states(scene, model, n_envs, seed).astype(np.float32)
    masked = file.stem.endswith(MASKED)
    return Case(scene, file, model, n_envs, steps, substeps, masked, qpos, tuple(drawn), lengths)


def home_qpos(scene: Scene, model: mujoco.MjModel) -> np.ndarray:
    """(nq,): the scene's home, else the model's first keyframe, else qpos0 with every joint inside its range."""
    import mujoco

    qpos = (model.key_qpos[0] if model.nkey else model.qpos0).copy()
    scalar = np.isin(model.jnt_type, (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE))
    free = model.jnt_type == mujoco.mjtJoint.mjJNT_FREE
    if scene.home is not None:
        qpos[model.jnt_qposadr[scalar]] = scene.home
    elif not model.nkey:
        limited = scalar & model.jnt_limited.astype(bool)
        rows = model.jnt_qposadr[limited]
        qpos[rows] = np.clip(qpos[rows], *model.jnt_range[limited].T)
    if scene.height is not None:
        qpos[model.jnt_qposadr[free] + 2] = scene.height
    return qpos


def start_states(scene: Scene, model: mujoco.MjModel, n_envs: int, seed: int) -> np.ndarray:
    """(n_envs, nq): home with noise."""
    import mujoco

    random = np.random.default_rng([seed, 0])
    home = home_qpos(scene, model)
    qpos = np.tile(home, (n_envs, 1))
    noise = random.uniform(-1, 1, (n_envs, model.nq))
    for joint in range(model.njnt):
        row = model.jnt_qposadr[joint]
        if model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE:
            quaternion = np.concatenate((np.ones((n_envs, 1)), 0.5 * scene.tilt * noise[:, row + 4 : row + 7]), 1)
            quaternion /= np.linalg.norm(quaternion, axis=1, keepdims=True)
            if scene.tilt:
                qpos[:, row + 3 : row + 7] = quaternion
        elif model.jnt_type[joint] != mujoco.mjtJoint.mjJNT_BALL:
            qpos[:, row] += scene.joint_noise * noise[:, row]
            if model.jnt_limited[joint]:
                qpos[:, row] = np.clip(qpos[:, row], *model.jnt_range[joint])
    return qpos


def control_centre(scene: Scene, model: mujoco.MjModel) -> np.ndarray:
    """(nu,): the home position for actuators that hold a position, 0 for the others."""
    home = home_qpos(scene, model)
    holds = (model.actuator_biasprm[:, 1] != 0) & (model.actuator_trntype == 0)
    joint = np.where(holds, model.actuator_trnid[:, 0], 0)
    return np.where(holds, model.actuator_gear[:, 0] * home[model.jnt_qposadr[joint]], 0.0)


def control_width(scene: Scene, model: mujoco.MjModel, controls: str) -> np.ndarray:
    """(nu,): how far controls go to either side of the centre; for `full` far enough to reach both ends."""
    if controls == "hold":
        return np.zeros(model.nu)
    if scene.control_width is not None and controls == "near":
        return np.full(model.nu, scene.control_width)
    whole = model.actuator_ctrlrange[:, 1] - model.actuator_ctrlrange[:, 0]
    return np.where(model.actuator_ctrllimited.astype(bool), whole, 1.0)
