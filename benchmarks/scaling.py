"""Scaling over the GPUs of a machine: steps and DDP training on 1, 2, ... ranks, each on its own GPU, in turn.

    python benchmarks/scaling.py --scene quad.xml --ranks 1 2 --envs 2048 8192 --json scaling.json

Weak scaling keeps the environments of each rank, strong scaling (--total) those of all ranks together. A rate is that
of the slowest rank, whose ends of windows the others wait for; runs of different numbers of ranks take turns.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import machine
import report
from scenes import find_scene, make_case, write_model

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "ddp_cuda_graph.py"
STEPS = 400  # physics steps of a window
WINDOWS = 7


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scene", nargs="+", required=True, help="franka_emika_panda, go2, humanoid, or MJCF files")
    parser.add_argument("--ranks", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--envs", nargs="+", type=int, default=[2048, 8192], help="environments of each rank")
    parser.add_argument("--total", nargs="*", type=int, default=[16384], help="environments of all ranks together")
    parser.add_argument("--rounds", type=int, default=2, help="runs of each number of ranks, in turn")
    parser.add_argument(
        "--modes", nargs="*", default=["eager", "graph", "overlap"], help="of the training loop; none: steps only"
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--json", type=Path, default=Path("scaling.json"))
    parser.add_argument("--model", help=argparse.SUPPRESS)  # of one rank's part
    return parser.parse_args()


def main() -> int:
    """Starts the ranks, or is one."""
    options = parse()
    if options.model:
        return measure_steps(options)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for name in options.scene:
            model = write_model(find_scene(name), Path(folder), mask=True)
            for _ in range(options.rounds):
                for ranks in options.ranks:
                    results += list(run(options, find_scene(name).name, name, model, ranks))
                    report.write_json(options.json, {"machine": machine.describe(), "results": results})
    print(table(results))
    return 0


def run(options: argparse.Namespace, name: str, scene: str, model: Path, ranks: int) -> Iterator[dict[str, Any]]:
    """The records of one number of ranks: steps at every size, then training at every size."""
    sizes = sorted({*options.envs, *(total // ranks for total in options.total)})
    begun = time.perf_counter()
    arguments = ["--scene", scene, "--model", str(model), "--envs", *map(str, sizes), "--device", options.device]
    for record in torchrun(ranks, Path(__file__), *arguments):
        yield {"scene": name, "what": "steps", "ranks": ranks, **record}
    for n_envs in options.envs if options.modes else ():
        arguments = ["--model", str(model), "--n_envs", str(n_envs), "--modes", *options.modes, "--iterations", "300"]
        (record,) = torchrun(ranks, EXAMPLE, *arguments)
        for mode, result in record["results"].items():
            if isinstance(result, dict):
                rate = result["env_steps_per_second"]
                yield {"scene": name, "what": mode, "ranks": ranks, "n_envs": n_envs, "rate": rate}
    print(f"{name}, {ranks} ranks: {time.perf_counter() - begun:.0f} s", flush=True)


def torchrun(ranks: int, script: Path, *arguments: str) -> list[dict[str, Any]]:
    """The records that rank 0 of a script writes. Ends with its output where it fails."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={ranks}"]
        command += [str(script), *arguments, "--json", str(out)]
        environment = {"OMP_NUM_THREADS": "4", **os.environ}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
        if done.returncode:
            raise SystemExit(f"{script.name} on {ranks} ranks failed:\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}")
        written = json.loads(out.read_text())
    return written if isinstance(written, list) else [written]


def measure_steps(options: argparse.Namespace) -> int:
    """One rank: `scene.step()` under random controls; windows begin together and end with the slowest rank."""
    import torch
    import torch.distributed as dist

    import pluriverse as gs
    from engines.pluriverse_engine import PluriverseEngine

    backend = gs.cuda if options.device == "cuda" else gs.cpu
    rank = gs.distributed.setup("auto", backend=backend, logging_level="warning")
    records = []
    for n_envs in options.envs:
        scene = find_scene(options.scene[0])
        case = make_case(scene, Path(options.model), n_envs, STEPS, 1, controls="near", seed=rank.rank)
        engine = PluriverseEngine(case)
        seconds = []
        for _ in range(1 + WINDOWS):
            engine.restart()
            engine.wait()
            dist.barrier()
            start = time.perf_counter()
            engine.run()
            engine.wait()
            took = torch.tensor(time.perf_counter() - start, dtype=torch.float64, device=gs.device)
            dist.all_reduce(took, dist.ReduceOp.MAX)
            seconds.append(took.item())
        rates = sorted(n_envs * rank.world_size * STEPS / s for s in seconds[1:])
        bad = torch.tensor(engine.health().non_finite, device=gs.device)
        dist.all_reduce(bad)
        if bad.item():
            raise SystemExit(f"{scene.name}: {bad.item()} environments are not finite; that is no speed to report")
        engine.scene.destroy()
        records.append({"n_envs": n_envs, "rate": statistics.median(rates), "min": rates[0], "max": rates[-1]})
    if rank.rank == 0:
        report.write_json(options.json, records)  # type: ignore[arg-type]
    dist.destroy_process_group()
    gs.destroy()
    return 0


def table(results: list[dict[str, Any]]) -> str:
    """A line for each scene, work and size: the rate of each number of ranks, and how many times that of one rank."""
    rates: dict[tuple[str, str, int, int], list[float]] = {}
    for record in results:
        key = (record["scene"], record["what"], record["n_envs"], record["ranks"])
        rates.setdefault(key, []).append(record["rate"])
    lines = ["scene, work, environments of a rank: million env-steps/s by number of ranks (times one rank's)"]
    kinds = sorted({key[:3] for key in rates})
    for kind in kinds:
        by_ranks = {key[3]: statistics.median(values) for key, values in rates.items() if key[:3] == kind}
        one = by_ranks.get(1)
        cells = [
            f"{n}: {r / 1e6:.2f}" + (f" ({r / one:.2f}x)" if one and n > 1 else "") for n, r in sorted(by_ranks.items())
        ]
        lines.append(f"{', '.join(map(str, kind))}: {'; '.join(cells)}")
    lines.append("strong scaling, total environments: million env-steps/s by number of ranks")
    totals: dict[tuple[str, int], dict[int, float]] = {}
    for (scene, what, n_envs, ranks), values in rates.items():
        if what == "steps":
            totals.setdefault((scene, n_envs * ranks), {})[ranks] = statistics.median(values)
    for (scene, total), by_ranks in sorted(totals.items()):
        if len(by_ranks) > 1 and 1 in by_ranks:
            cells = [f"{n}: {r / 1e6:.2f} ({r / by_ranks[1]:.2f}x)" for n, r in sorted(by_ranks.items())]
            lines.append(f"{scene}, {total}: {'; '.join(cells)}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
