"""How far trajectories leave MuJoCo's float64 ones after some steps: of pluriverse through scene.step(), of MuJoCo
Warp on the same device, and of MuJoCo itself from start states rounded by half a unit of float32. Prints a table.

    python benchmarks/trajectories.py --scene go2 humanoid --against mujoco_warp
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from accuracy import HALF_ULP
from engines.base import Steppable
from engines.mujoco_engine import MujocoEngine
from run import start_session
from scenes import CONTROLS, Case, find_scene, make_case, write_model

STEPS = (10, 50)


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    start_session(options)
    print(
        f"| scene | engine | {' | '.join(f'{n} steps: median, max' for n in STEPS)} |\n|---|---|{'---|' * len(STEPS)}"
    )
    with tempfile.TemporaryDirectory() as folder:
        for given in options.scene:
            scene = find_scene(given)
            file = write_model(scene, Path(folder), mask=options.mask)
            case = make_case(scene, file, options.envs, max(STEPS), 1, controls=options.controls)
            for engine, distances in distances_of(case, options).items():
                cells = [f"{np.median(d):.1e}, {np.max(d):.1e}" for d in distances]
                print(f"| {scene.name} | {engine} | {' | '.join(cells)} |", flush=True)
    return 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scene", nargs="+", required=True, help="franka_emika_panda, go2, humanoid, or MJCF files")
    parser.add_argument("--mask", action="store_true", help="robots meet only the floor (contype 0), in every engine")
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--precision", choices=("32", "64"), default="32")
    parser.add_argument("--controls", choices=CONTROLS, default="near")
    parser.add_argument("--against", nargs="*", choices=("mujoco_warp",), default=[])
    return parser.parse_args(arguments)


def distances_of(case: Case, options: argparse.Namespace) -> dict[str, list[np.ndarray]]:
    """By engine, for each of STEPS, (n_envs,) the largest |qpos - MuJoCo's| of each environment [m, rad]."""
    from engines.pluriverse_engine import PluriverseEngine

    exact = mujoco_qpos(case)
    noise = np.random.default_rng(7).uniform(-1, 1, case.qpos.shape)
    rounded = replace(case, qpos=case.qpos.astype(np.float64) * (1 + HALF_ULP * noise))
    engines: list[Steppable] = [PluriverseEngine(case)]
    if "mujoco_warp" in options.against:
        from engines.mujoco_warp_engine import MujocoWarpEngine

        engines.append(MujocoWarpEngine(case, options.device, options.controls))
    found = {engine.name: qpos_after(engine) for engine in engines}
    found["mujoco, rounded start"] = mujoco_qpos(rounded)
    return {
        name: [np.abs(q - reference).max(1) for q, reference in zip(places, exact, strict=True)]
        for name, places in found.items()
    }


def mujoco_qpos(case: Case) -> list[np.ndarray]:
    """MuJoCo's own qpos after each of STEPS."""
    engine = MujocoEngine(case, threads=1)
    engine.run()
    return [engine.motion_after(steps).qpos for steps in STEPS]


def qpos_after(engine: Steppable) -> list[np.ndarray]:
    """An engine's qpos after each of STEPS."""
    engine.restart()
    found, done = [], 0
    for steps, block in _pieces(engine.case, STEPS):
        engine.command(block)
        engine.advance(steps - done)
        done = steps
        if done in STEPS:
            engine.wait()
            found.append(engine.motion().qpos)
    return found


def _pieces(case: Case, stops: Sequence[int]) -> list[tuple[int, int]]:
    """(steps done at its end, block) of each piece between changes of controls and stops."""
    ends = np.cumsum(case.lengths)
    marks = sorted({*ends.tolist(), *stops})
    return [(mark, int(np.searchsorted(ends, mark))) for mark in marks if mark <= max(stops)]


if __name__ == "__main__":
    raise SystemExit(main())
