"""Measures pluriverse, alone or against MuJoCo and MuJoCo Warp, through its public API:

python benchmarks/run.py --scene go2 --mask --envs 4096 --against mujoco
python benchmarks/run.py --scene some/robot.xml --envs 4096 32768 --device cuda --against mujoco_warp --json out.json
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import machine
import report
from measure import Settings, measure
from scenes import CONTROLS, Case, find_scene, make_case, write_model


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scene", nargs="+", required=True, help="franka_emika_panda, go2, humanoid, or MJCF files")
    parser.add_argument("--mask", action="store_true", help="robots meet only the floor (contype 0), in every engine")
    parser.add_argument("--envs", nargs="+", type=int, default=[4096], help="batch sizes")
    parser.add_argument("--steps", type=int, default=200, help="physics steps of a window")
    parser.add_argument("--substeps", nargs="+", type=int, default=[1], help="physics steps of a scene.step()")
    parser.add_argument("--repeats", type=int, default=5, help="windows of each engine")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--precision", choices=("32", "64"), default="32")
    parser.add_argument("--against", nargs="*", choices=("mujoco", "mujoco_warp"), default=[])
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="CPU cores for every engine")
    parser.add_argument(
        "--controls", choices=CONTROLS, default="near", help="targets held, near home, or over all of their range"
    )
    parser.add_argument(
        "--budget", type=float, default=float("inf"), help="seconds after which no further case is begun"
    )
    parser.add_argument("--json", type=Path, help="write the result with all raw numbers")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """0 if every engine of every case has a speed."""
    options = parse(arguments)
    begin = time.perf_counter()
    machine.limit_threads(options.threads)
    start_session(options)
    settings = Settings(tuple(options.against), options.device, options.threads, options.repeats, options.controls)
    results: list[dict[str, Any]] = []
    skipped = 0
    with tempfile.TemporaryDirectory() as folder:
        for case in cases(options, Path(folder)):
            if time.perf_counter() - begin > options.budget:
                skipped += 1
                continue
            results.append(measure(case, settings, _log))
            if options.json:  # after each case: a run that is cut short keeps what it has
                report.write_json(options.json, document(options, results))
    print(report.table(results) + (f"\n{skipped} cases skipped: out of time" if skipped else ""))
    return 0 if not skipped and all(_has_speed(result) for result in results) else 1


def cases(options: argparse.Namespace, folder: Path) -> Iterator[Case]:
    """Every scene at every batch size and number of substeps."""
    for given in options.scene:
        scene = find_scene(given)
        file = write_model(scene, folder, mask=options.mask)
        for n_envs in options.envs:
            for substeps in options.substeps:
                yield make_case(scene, file, n_envs, options.steps, substeps, controls=options.controls)


def document(options: argparse.Namespace, results: list[dict[str, Any]]) -> dict[str, Any]:
    """All that is known of a run."""
    command = {name: str(value) for name, value in vars(options).items()}
    return {"machine": machine.describe(), "command": command, "results": results}


def start_session(options: argparse.Namespace) -> None:
    """gs.init on the device and in the precision asked for."""
    import pluriverse as gs

    backend = gs.cuda if options.device == "cuda" else gs.cpu
    gs.init(backend=backend, precision=options.precision, logging_level="warning")


def _log(line: str) -> None:
    print(line, flush=True)


def _has_speed(result: dict[str, Any]) -> bool:
    return all("env_steps_per_second" in engine for engine in result["engines"].values())


if __name__ == "__main__":
    raise SystemExit(main())
