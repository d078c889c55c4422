"""Every example runs, in short form, and passes its own final check."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"

SHORT = {
    "hello.py": ["--steps", "50"],
    "parallel_simulation.py": ["--steps", "150"],
    "multi_gpu.py": ["--steps", "20"],
}
TIMEOUT = 240  # seconds; only so that a hang does not stop the tests


def run(*command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=TIMEOUT)


def torchrun(*arguments: str) -> subprocess.CompletedProcess[str]:
    launcher = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2")
    return run(*launcher, str(EXAMPLES / "ddp_multi_gpu.py"), *arguments)


def test_every_example_is_run_here() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == {*SHORT, "ddp_multi_gpu.py", "ddp_cuda_graph.py"}


@pytest.mark.parametrize("name", SHORT)
def test_example(name: str) -> None:
    done = run(sys.executable, str(EXAMPLES / name), *SHORT[name])
    assert done.returncode == 0, done.stdout + done.stderr


def test_two_ranks_train_and_agree() -> None:
    done = torchrun("--demo")
    assert done.returncode == 0, done.stdout + done.stderr
    for rank in (0, 1):
        assert f"rank {rank} -> " in done.stdout
    assert "parameters equal on all ranks: True" in done.stdout
    assert "env-steps/s" in done.stdout
    first, last = map(float, re.search(r"loss ([\d.]+) -> ([\d.]+);", done.stdout).groups())  # type: ignore[union-attr]
    assert last < 0.5 * first
