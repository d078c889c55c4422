"""Check ranks, devices, equality and faults on a machine with GPUs; `--gpus 1` has two ranks share one.

Run by hand: `python tests/device_manual/several_gpus.py --gpus 2 --json several_gpus.json`. Prints a line for each
check, and exits non-zero if one fails. The jobs are those of tests/distributed, which run on the CPU in every test run.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from distributed.torchrun import Ended, leftovers, torchrun, worlds  # noqa: E402

HOLD = "holds memory: "
AT_ONCE = 6  # jobs


def hold() -> None:
    """A rank that says on which GPUs it has memory, while all ranks are alive."""
    import torch
    import torch.distributed as dist

    import pluriverse as gs

    rank = gs.distributed.setup("auto", backend=gs.cuda, share_device=True, logging_level="info")
    gs.distributed.preflight(rank, share_device=True)
    scene = gs.Scene(show_FPS=False)
    scene.add_entity(gs.morphs.Plane())
    scene.add_entity(gs.morphs.Box(pos=(0.0, 0.0, 1.0), size=(0.1, 0.1, 0.1)))
    scene.build(n_envs=4096)
    scene.step()
    total = torch.ones(1, device=gs.device)
    dist.all_reduce(total)
    dist.barrier()
    query = ["nvidia-smi", "--query-compute-apps=pid,gpu_uuid,used_memory", "--format=csv,noheader"]
    rows = [
        row.split(", ") for row in subprocess.run(query, capture_output=True, text=True, check=True).stdout.splitlines()
    ]
    held = {uuid: memory for pid, uuid, memory in rows if int(pid) == os.getpid()}
    assert rank.gpu is not None
    facts = {"rank": rank.rank, "device": rank.device, "uuid": rank.gpu.uuid, "held": held, "group": dist.get_backend()}
    print(HOLD + json.dumps(facts), flush=True)
    dist.barrier()
    dist.destroy_process_group()


class Checks:
    """Runs checks, some at a time, and keeps what they say."""

    def __init__(self) -> None:
        self.checks: list[tuple[str, Callable[[], str]]] = []
        self.results: list[dict[str, Any]] = []

    def add(self, name: str, check: Callable[[], str]) -> None:
        self.checks.append((name, check))

    def run_all(self) -> None:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            self.results = list(pool.map(self._run, self.checks))

    def _run(self, named: tuple[str, Callable[[], str]]) -> dict[str, Any]:
        name, check = named
        begun = time.monotonic()
        try:
            passed, text = True, check()
        except Exception as error:
            passed, text = False, f"{type(error).__name__}: {str(error)[:1500]}"
        seconds = time.monotonic() - begun
        print(f"{'ok    ' if passed else 'FAILED'} {name} ({seconds:.0f} s): {text}", flush=True)
        return {"check": name, "passed": passed, "says": text, "seconds": seconds}


def memory(ranks: int, mask: str | None) -> str:
    """Every rank has memory on its own GPU and on no other."""
    variables = {} if mask is None else {"CUDA_VISIBLE_DEVICES": mask}
    ended = torchrun(ranks, "--hold", script=Path(__file__), variables=variables)
    require_end(ended)
    lines = [line.partition(HOLD)[2] for line in ended.output.splitlines() if HOLD in line]
    facts = sorted((json.loads(line) for line in lines), key=lambda fact: fact["rank"])
    assert len(facts) == ranks, ended.output
    for fact in facts:
        assert set(fact["held"]) <= {fact["uuid"]}, fact
    numbers = {uuid: f"GPU {k}" for k, uuid in enumerate(gpu_uuids())}
    told = []
    for fact in facts:
        held = ", ".join(f"{memory} on {numbers[uuid]}" for uuid, memory in fact["held"].items())
        told.append(f"rank {fact['rank']}, {fact['device']}: {held or 'process ids are hidden'}")
    return f"{facts[0]['group']}; {'; '.join(told)}"


def gpu_uuids() -> list[str]:
    """Of this machine, in nvidia-smi's order."""
    query = ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]
    return subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()


def equality(ranks: int) -> str:
    """N ranks hold the worlds of one."""
    with tempfile.TemporaryDirectory() as folder:
        for count in (1, ranks):
            (Path(folder) / str(count)).mkdir()
            out = Path(folder) / str(count)
            require_end(torchrun(count, "--device", "gpu", "--total", 256, "--steps", 100, "--limit", 60, "--out", out))
        one, several = worlds(Path(folder) / "1", 1), worlds(Path(folder) / str(ranks), ranks)
    for name in ("qpos", "dofs_vel"):
        assert one[name].isfinite().all()
        assert one[name].equal(several[name]), f"{name}: {(one[name] - several[name]).abs().max()}"
    return f"256 worlds after 100 steps with random actions and resets: equal bits on 1 and {ranks} ranks"


def fault(ranks: int, name: str, says: str) -> str:
    """A fault ends the job, is named, and leaves no process behind."""
    with tempfile.TemporaryDirectory() as folder:
        ended = torchrun(
            ranks, "--device", "gpu", "--fault", name, "--checkpoints", folder, "--limit", 12, "--steps", 20
        )
    assert ended.code != 0, ended.output
    found = re.search(says, ended.output)
    assert found, ended.output
    assert not leftovers(Path(folder))
    assert ended.seconds < 60
    return f"whole job {ended.seconds:.0f} s; says: {found[0]}"


def resume(ranks: int) -> str:
    """A killed job that torchrun restarts ends in the bits of one that was not killed."""
    with tempfile.TemporaryDirectory() as folder:
        for name, extra in (("whole", ()), ("killed", ("--fault", "kill"))):
            out = Path(folder) / name
            out.mkdir()
            arguments = ("--device", "gpu", "--out", out, "--checkpoints", out / "checkpoints", "--limit", 60, *extra)
            ended = torchrun(ranks, *arguments, options=("--standalone", "--max-restarts=1"))
            require_end(ended)
        assert "resumed at 10" in ended.output, ended.output
        whole, killed = worlds(Path(folder) / "whole", ranks), worlds(Path(folder) / "killed", ranks)
    different = [name for name, value in whole.items() if not value.equal(killed[name])]
    worlds_differ = {"qpos", "dofs_vel", "ages"} & set(different)
    assert not worlds_differ, different
    return f"worlds equal; policy {'differs in ' + str(different) if different else 'equal'}"


def example(*command: str) -> str:
    """An example ends well; its last line."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-2000:]
    return " | ".join(done.stdout.strip().splitlines()[-3:])


def tests_on(index: int) -> str:
    """The tests that want a GPU, with all of them visible; one test looks for contexts on others."""
    environment = {**os.environ, "PLURIVERSE_TEST_DEVICE": f"cuda:{index}"}
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "tests/solver/test_device_inputs.py"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout[-1500:] + done.stderr[-500:]
    return done.stdout.strip().splitlines()[-1]


def require_end(ended: Ended) -> None:
    assert ended.code == 0, ended.output[:1500]


def main() -> None:
    """Everything, in one go."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--json", type=Path, default=Path("several_gpus.json"))
    parser.add_argument("--hold", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.hold:
        return hold()
    everything = gpu_uuids()
    uuids, order = everything[: args.gpus], [str(k) for k in range(args.gpus)]
    masks: set[str | None] = {",".join(order), ",".join(reversed(order)), order[-1], (uuids_mask := ",".join(uuids))}
    if len(everything) > args.gpus:
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(order)  # of all other checks
    else:
        masks.add(None)
    ranks = max(args.gpus, 2)
    checks = Checks()
    for mask in sorted(masks, key=str):
        checks.add(
            f"memory of {ranks} ranks, mask {mask if mask != uuids_mask else 'of uuids'}",
            lambda m=mask: memory(ranks, m),
        )
    checks.add("worlds of N ranks and of one", lambda: equality(ranks))
    for name, says in (
        ("build", r"rank 1 .* failed in phase 'build': ValueError: planted in build"),
        ("step", r"rank 1 .* failed in phase 'step': ValueError: planted in step"),
        ("kill", r"rank 1 .* is gone: it was killed or crashed, last seen in phase 'step'"),
        ("stall", r"rank 1 .* stalls in phase 'step' .*; meanwhile rank 0 in 'update'"),
        ("stop", r"rank 1 .* has given no sign for \d+ s, since phase 'step'"),
        ("model", r"the ranks differ in their scene's model"),
        ("drift", r"rank 1 differs from rank 0 in policy\.0\.bias"),
    ):
        checks.add(f"fault: {name}", lambda n=name, s=says: fault(ranks, n, s))
    checks.add("resumed after a kill", lambda: resume(ranks))
    checks.add("example: multiprocessing", lambda: example("examples/multi_gpu.py", "--steps", "50"))
    run = ("-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={ranks}")
    checks.add("example: torchrun", lambda: example(*run, "examples/ddp_multi_gpu.py", "--demo"))
    for index in range(args.gpus):
        checks.add(f"tests that take a device, on cuda:{index}", lambda k=index: tests_on(k))
    checks.run_all()
    args.json.write_text(json.dumps({"gpus": uuids, "ranks": ranks, "checks": checks.results}, indent=1))
    failed = list(itertools.filterfalse(lambda result: result["passed"], checks.results))
    print(f"{len(checks.results) - len(failed)} of {len(checks.results)} checks passed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
