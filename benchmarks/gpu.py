"""The comparison on one GPU: masked franka and quad against MuJoCo Warp, all kernels compiled beforehand in parallel.

    python benchmarks/gpu.py --scenes FOLDER --json out.json

FOLDER has franka.xml and quad.xml; without it the package's own franka_emika_panda and go2 are measured.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import report
import run
from measure import Settings, build_engine
from scenes import find_scene, make_case, write_model

_COMPILED = ("pluriverse", "mujoco_warp")


def main() -> int:
    """Compiles in one process for each scene and engine, then measures in this process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenes", type=Path, help="folder of franka.xml and quad.xml")
    parser.add_argument("--envs", nargs="+", default=["4096", "32768"])
    parser.add_argument("--substeps", nargs="+", default=["1", "4"])
    parser.add_argument("--steps", default="200")
    parser.add_argument("--repeats", default="7")
    parser.add_argument("--budget", type=float, default=420, help="seconds after which no case is begun")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda", help="cpu: to try this script")
    parser.add_argument("--json", type=Path, default=Path("gpu.json"))
    parser.add_argument("--compile", nargs=2, metavar=("SCENE", "ENGINE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.compile:
        return compile_engine(options.compile[0], options.compile[1], [int(n) for n in options.envs], options.device)
    start = time.perf_counter()
    # One cache for all processes: MuJoCo Warp would otherwise take pluriverse's only where pluriverse was first.
    os.environ.setdefault("WARP_CACHE_PATH", str(Path(tempfile.gettempdir()) / "benchmark_warp_cache"))
    names = ("franka.xml", "quad.xml")
    scenes = [str(options.scenes / name) for name in names] if options.scenes else ["franka_emika_panda", "go2"]
    cold = compile_all(scenes, options)
    arguments = ["--scene", *scenes, "--mask", "--envs", *options.envs, "--substeps", *options.substeps]
    arguments += ["--steps", options.steps, "--repeats", options.repeats, "--device", options.device]
    arguments += ["--against", "mujoco_warp", "--json", str(options.json)]
    status = run.main([*arguments, "--budget", str(options.budget - (time.perf_counter() - start))])
    document = json.loads(options.json.read_text())
    document["cold_seconds"] = cold
    report.write_json(options.json, document)
    print(
        "cold, process start to second step, in parallel [s]: "
        + ", ".join(f"{name} {s:.0f}" for name, s in cold.items())
    )
    return status


def compile_all(scenes: list[str], options: argparse.Namespace) -> dict[str, float]:
    """Seconds from the start of a process to its second step, of each scene and engine, all at the same time."""
    common = ["--envs", *options.envs, "--device", options.device]
    start, running, seconds = time.perf_counter(), {}, {}
    for scene in scenes:
        for engine in _COMPILED:
            command = [sys.executable, __file__, "--compile", scene, engine, *common]
            running[f"{Path(scene).stem} {engine}"] = subprocess.Popen(command)
    while running:
        time.sleep(0.1)
        for name in [name for name, process in running.items() if process.poll() is not None]:
            code = running.pop(name).returncode
            seconds[name] = time.perf_counter() - start
            print(f"compiled {name} in {seconds[name]:.1f} s{f', exit status {code}' if code else ''}", flush=True)
    return seconds


def compile_engine(given: str, engine: str, envs: list[int], device: str) -> int:
    """Builds an engine at every batch size, so that the caches have all that the measurement needs."""
    import pluriverse as gs

    gs.init(backend=gs.cuda if device == "cuda" else gs.cpu, logging_level="warning")
    settings = Settings((), device, threads=1, repeats=1, controls="near")
    scene = find_scene(given)
    with tempfile.TemporaryDirectory() as folder:
        file = write_model(scene, Path(folder), mask=True)
        for n_envs in envs:
            built = build_engine(engine, make_case(scene, file, n_envs, 2, 1, controls="near"), settings)
            built.restart()
            built.run()
            built.wait()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
