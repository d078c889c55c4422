"""Compiling: several processes that need one kernel compile it once, and share its text."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pluriverse

# Traces, compiles and runs one small kernel; prints whether Warp compiled it or found it compiled, and its text's hash.
CHILD = """
import contextlib, hashlib, io, json, sys, torch
import pluriverse as gs
from pluriverse.runtime import runtime
from pluriverse.trace.kernel import Kernel
from pluriverse.trace.program import Program
from pluriverse.trace.source import Target, cached_source

def trace():
    run = Program()
    x = run.buffer("x")
    x.write(0, x.read(0) * 3.0)
    return run

gs.init(backend=gs.cpu, logging_level="error")
wp = runtime.warp()
wp.config.log_level = wp.LOG_INFO
target = Target(cuda=False, double=True)
sys.stdin.readline()  # all start at once
log = io.StringIO()
with contextlib.redirect_stdout(log):
    source = cached_source(runtime.cache_dir(), "kernel", "key", target, trace)
    kernel = Kernel(source, target, "cpu", runtime.cache_dir())
x = torch.full((1, 16), 2.0, dtype=torch.float64)
kernel.bind({"x": x}, 16, 16).launch()
text = hashlib.sha256(kernel.source.preamble.encode()).hexdigest()
print(json.dumps({"log": log.getvalue(), "text": text, "value": x[0, 0].item()}))
"""


def test_one_of_several_processes_compiles(tmp_path: Path) -> None:
    environ = {
        **os.environ,
        "PLURIVERSE_CACHE_DIR": str(tmp_path),
        "PYTHONPATH": str(Path(pluriverse.__file__).parents[1]),
    }
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environ}
    children = [subprocess.Popen([sys.executable, "-c", CHILD], **pipes) for _ in range(3)]  # type: ignore[call-overload]
    for child in children:
        child.stdin.write("\n")
        child.stdin.flush()
    answers = [json.loads(child.communicate(timeout=120)[0].splitlines()[-1]) for child in children]
    assert all(child.returncode == 0 for child in children)
    assert [answer["value"] for answer in answers] == [6.0] * 3
    assert len({answer["text"] for answer in answers}) == 1
    compiled = [answer for answer in answers if "(compiled)" in answer["log"]]
    found = [answer for answer in answers if "(cached)" in answer["log"]]
    assert (len(compiled), len(found)) == (1, 2), answers
