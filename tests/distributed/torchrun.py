"""Starting jobs for the tests, on loopback, with a deadline after which nothing of them is left."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch

JOB = Path(__file__).parent / "job.py"
SRC = Path(__file__).parents[2] / "src"


@dataclass(frozen=True)
class Ended:
    """How a job ended."""

    code: int
    output: str
    seconds: float


def torchrun(
    ranks: int,
    *arguments: object,
    script: Path = JOB,
    options: tuple[str, ...] = ("--standalone",),
    variables: dict[str, str] | None = None,
) -> Ended:
    """Run a script on ranks of this machine. variables: of the environment, beside this process's."""
    command = [sys.executable, "-m", "torch.distributed.run", *options, f"--nproc_per_node={ranks}", str(script)]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(SRC), os.environ.get("PYTHONPATH", ""))),
        "OMP_NUM_THREADS": "1",
        **(variables or {}),
    }
    begun = time.monotonic()
    done = subprocess.run(
        [*command, *map(str, arguments)], env=environment, capture_output=True, text=True, timeout=150, check=False
    )
    return Ended(done.returncode, done.stdout + done.stderr, time.monotonic() - begun)


def worlds(folder: Path, ranks: int) -> dict[str, torch.Tensor]:
    """What the ranks of `job.py --out` wrote, joined in their order, and rank 0's policy."""
    parts = [torch.load(folder / f"{rank}.pt", map_location="cpu") for rank in range(ranks)]
    joined = {name: torch.cat([part[name] for part in parts]) for name in ("qpos", "dofs_vel", "ages")}
    return joined | parts[0]["policy"]


def leftovers(folder: Path) -> list[int]:
    """Processes of `job.py` that still run and write into this folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes()
        except OSError:  # it has ended
            continue
        if b"distributed/job.py" in command and str(folder).encode() in command:
            found.append(int(path.parent.name))
    return found
