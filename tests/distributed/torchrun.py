"""Starting jobs for the tests, on loopback, with a deadline after which nothing of them is left."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

JOB = Path(__file__).parent / "job.py"
SRC = Path(__file__).parents[2] / "src"


@dataclass(frozen=True)
class Ended:
    """How a job ended."""

    code: int
    output: str
    seconds: float


def torchrun(ranks: int, *arguments: object, script: Path = JOB, options: tuple[str, ...] = ("--standalone",)) -> Ended:
    """Run a script on ranks of this machine."""
    command = [sys.executable, "-m", "torch.distributed.run", *options, f"--nproc_per_node={ranks}", str(script)]
    environment = {**os.environ, "PYTHONPATH": str(SRC), "OMP_NUM_THREADS": "1"}
    begun = time.monotonic()
    done = subprocess.run(
        [*command, *map(str, arguments)], env=environment, capture_output=True, text=True, timeout=150, check=False
    )
    return Ended(done.returncode, done.stdout + done.stderr, time.monotonic() - begun)
