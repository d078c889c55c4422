"""Seconds from process start to the hundredth step of examples/hello.py, with an empty and a warm kernel cache:

python benchmarks/start.py [--script FILE] [--repeats 3] [--json FILE]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import machine
import report

HELLO = Path(__file__).resolve().parents[1] / "examples" / "hello.py"
STEP = 100

# Runs the script given as argument and ends the process at its hundredth scene.step(), once the device has done it.
_CHILD = f"""
import time
begin = time.time()
import os, runpy, sys
import pluriverse as gs
step, count = gs.Scene.step, 0
def counted(scene, *args, **kwargs):
    global count
    step(scene, *args, **kwargs)
    count += 1
    if count == {STEP}:
        scene.sim.rigid_solver.get_qpos().cpu()
        print("seconds", time.time() - float(os.environ["STARTED"]), time.time() - begin, flush=True)
        os._exit(0)
gs.Scene.step = counted
script = sys.argv[1]
sys.argv = [script]
runpy.run_path(script, run_name="__main__")
sys.exit(f"{{script}} made {{count}} steps only")
"""


def main() -> int:
    """Prints the medians; the raw seconds go into the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--script", type=Path, default=HELLO)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    seconds: dict[str, list[tuple[float, float]]] = {"empty cache": [], "warm cache": []}
    for _ in range(options.repeats):
        with tempfile.TemporaryDirectory() as cache:
            for runs in seconds.values():  # the second run finds what the first has compiled
                runs.append(start(options.script, cache))
    if options.json:
        document = {"machine": machine.describe(), "script": options.script.name, "step": STEP, "seconds": seconds}
        report.write_json(options.json, document)
    for name, runs in seconds.items():
        process, imports = (statistics.median(run[k] for run in runs) for k in (0, 1))
        spread = f"{min(r[0] for r in runs):.2f}-{max(r[0] for r in runs):.2f}"
        print(f"{name}: {process:.2f} s from process start ({spread}), {imports:.2f} s from the first import")
    return 0


def start(script: Path, cache: str) -> tuple[float, float]:
    """Seconds to the hundredth step from the start of the process and from its first import."""
    environment = {name: value for name, value in os.environ.items() if name != "WARP_CACHE_PATH"}
    environment |= {"PLURIVERSE_CACHE_DIR": cache, "STARTED": str(time.time())}
    command = [sys.executable, "-c", _CHILD, str(script)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    for line in result.stdout.splitlines():
        if line.startswith("seconds "):
            process, imports = map(float, line.split()[1:])
            return process, imports
    raise SystemExit(f"{script} ended before step {STEP}:\n{result.stderr}")


if __name__ == "__main__":
    raise SystemExit(main())
