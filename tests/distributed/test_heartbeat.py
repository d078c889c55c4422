"""A heartbeat in a process that nobody launched: it ends when told to, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"

SCRIPT = """
import signal, time
import pluriverse as gs

rank = gs.distributed.setup(backend=gs.cpu, logging_level="warning")
try:
    with gs.distributed.heartbeat(rank, limit=3) as beat:
        beat("work", limit={limit})
        print("working", flush=True)
        {work}
except {caught} as error:
    print("caught", error)
    time.sleep({after})
with gs.distributed.heartbeat(rank) as outer:
    with gs.distributed.heartbeat(rank) as inner:
        inner("work")
    outer("work")
assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
print("done")
"""


def start(work: str, limit: float = 60, caught: str = "ZeroDivisionError", after: float = 0) -> subprocess.Popen[str]:
    text = SCRIPT.format(work=work, limit=limit, caught=caught, after=after)
    environment = {**os.environ, "PYTHONPATH": str(SRC)}
    process = subprocess.Popen(
        [sys.executable, "-c", text], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "working\n"
    return process


@pytest.mark.parametrize("work", ["time.sleep(100)", "while True: pass"])
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, -signal.SIGINT)])
def test_it_ends_when_told_to(work: str, sent: signal.Signals, code: int) -> None:
    process = start(work)
    begun = time.monotonic()
    process.send_signal(sent)
    _, said = process.communicate(timeout=30)
    assert process.returncode == code, said
    assert time.monotonic() - begun < 10
    assert "in phase 'work'" in said


def test_a_caught_exception_ends_nothing() -> None:
    """Longer than the time in which a process that ends for a fault is given to end."""
    process = start("1 / 0", after=8)
    out, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert out == "caught division by zero\ndone\n"
    assert "rank 0 (pid" in said
    assert "failed in phase 'work': ZeroDivisionError: division by zero" in said


def test_a_stall_ends_it_and_shows_where_it_stands() -> None:
    process = start("time.sleep(100)", limit=2)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "stalls in phase 'work' (its phase number 1), for" in said
    assert "<string>" in said  # the script's line, in the traceback
