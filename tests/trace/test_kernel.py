"""Compiling: several processes compile one kernel once; spoilt cache files; launches in forked processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import pluriverse
from pluriverse.errors import GenesisException
from pluriverse.runtime import runtime
from pluriverse.trace import workspace
from pluriverse.trace.kernel import Kernel
from pluriverse.trace.program import Program
from pluriverse.trace.source import Source, Target, print_source, write_atomically
from pluriverse.trace.workspace import workspace_rows

# Traces, compiles and runs one small kernel; prints whether Warp compiled it or found it compiled, and its text's hash.
CHILD = """
import contextlib, hashlib, io, json, sys, torch
import pluriverse as gs
from pluriverse.runtime import runtime
from pluriverse.trace import workspace
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

# Compiles or finds one small kernel, whose text does not depend on this package's sources, and runs it in two threads.
SMALL = """
import os, signal, torch
import pluriverse as gs
from pluriverse.runtime import runtime
from pluriverse.trace import workspace
from pluriverse.trace.kernel import Kernel
from pluriverse.trace.program import Program
from pluriverse.trace.source import Target, print_source

gs.init(backend=gs.cpu)
runtime.warp().config.log_level = runtime.warp().LOG_INFO
run, target = Program(), Target(cuda=False, double=True)
x = run.buffer("x")
x.write(0, x.read(0) * 3.0)
x = torch.full((1, 64), 2.0, dtype=torch.float64)
launcher = Kernel(print_source(run, target, "small"), target, "cpu", runtime.cache_dir()).bind({"x": x}, 64, 64, 2)
launcher.launch()
print("value", *set(x[0].tolist()))
"""

FORK = """
if os.fork() == 0:
    signal.alarm(20)  # a hang ends here
    launcher.launch()
    launcher.launch()
    os._exit(0 if (x == 54.0).all() else 1)
_, status = os.wait()
assert status == 0, status
launcher.launch()
print("value", *set(x[0].tolist()))
"""


def environment(cache: Path) -> dict[str, str]:
    environ = {k: v for k, v in os.environ.items() if k != "WARP_CACHE_PATH"}
    return environ | {"PLURIVERSE_CACHE_DIR": str(cache), "PYTHONPATH": str(Path(pluriverse.__file__).parents[1])}


def answer_of(script: str, cache: Path) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment(cache), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done


def triple() -> tuple[Source, Target]:
    run, target = Program(), Target(cuda=False, double=True)
    x = run.buffer("x")
    x.write(0, x.read(0) * 3.0)
    return print_source(run, target, "triple"), target


def test_spoilt_cache_files_are_made_anew(tmp_path: Path) -> None:
    assert "(compiled)" in answer_of(SMALL, tmp_path).stdout
    for pattern in ("*.meta", "*.o"):
        spoilt = list(tmp_path.glob(f"warp/*/wp_small_*/{pattern}"))
        assert spoilt
        for path in (*spoilt, tmp_path / "small.py"):
            path.write_bytes(b"\xff\0 no such thing")
        done = answer_of(SMALL, tmp_path)
        assert done.stdout.splitlines()[-1] == "value 6.0"
        assert "(compiled)" in done.stdout
        assert f"The compiled kernel in {spoilt[0].parent} cannot be loaded" in done.stderr
        done = answer_of(SMALL, tmp_path)
        assert "(cached)" in done.stdout
        assert "cannot be loaded" not in done.stderr


def test_a_kernel_that_cannot_be_loaded_names_its_folder(
    gs_cpu: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wp = runtime.warp()
    calls = []

    def load_module(module: object, **options: object) -> None:
        calls.append(module)
        folder.mkdir(exist_ok=True)
        raise json.JSONDecodeError("Expecting value", "", 0)

    monkeypatch.setattr(wp, "load_module", load_module)
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(tmp_path))
    monkeypatch.setattr(wp.Module, "get_module_identifier", lambda *_: "wp_triple")
    folder = tmp_path / "wp_triple"
    with pytest.raises(GenesisException, match="triple for cpu: Expecting value.*Remove that folder") as caught:
        Kernel(*triple(), "cpu", tmp_path)
    assert str(folder) in str(caught.value)
    assert len(calls) == 2


def test_an_unwritable_folder_is_named(gs_cpu: object, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(GenesisException, match=f"cannot be written in {tmp_path}/file.*PLURIVERSE_CACHE_DIR"):
        write_atomically(tmp_path / "file" / "text", "")
    with pytest.raises(GenesisException, match=f"cannot be written in {tmp_path}/file.*PLURIVERSE_CACHE_DIR"):
        Kernel(*triple(), "cpu", tmp_path / "file")
    with pytest.raises(GenesisException, match="cannot be written"):
        write_atomically(tmp_path, "")
    assert [path.name for path in tmp_path.parent.glob("*.tmp")] == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_process_launches_too(tmp_path: Path) -> None:
    answers = [line for line in answer_of(SMALL + FORK, tmp_path).stdout.splitlines() if line.startswith("value")]
    assert answers == ["value 6.0", "value 18.0"]


def test_a_launch_on_cuda_in_a_forked_process_is_refused(
    gs_cpu: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime.warp()
    x = torch.full((1, 16), 2.0, dtype=torch.float64)
    launcher = Kernel(*triple(), "cpu", tmp_path).bind({"x": x}, 16, 16)
    launcher._cuda = True  # as if
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    with pytest.raises(GenesisException, match="was forked after its scene was built.*'spawn'"):
        launcher.launch()


def test_one_of_several_processes_compiles(tmp_path: Path) -> None:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environment(tmp_path)}
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


def test_workspace_changes_nothing(run_program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays, ints and records in local memory, and in the workspace: the same bits, for more vectors than one."""

    def program() -> Program:
        run = Program()
        x, y = run.buffer("x"), run.buffer("y")
        values, order = run.array(200), run.array(100, kind="int")
        for i in run.range(200):
            values[i] = x.read(i)
        for i in run.range(100):
            order[i] = 199 - 2 * i
        found = run.records("found", {"at": "int", "size": "float"}, 200)
        for i in run.range(100):
            value = values[order[i]]
            for _ in run.when(value > 0.0):
                found.append(at=order[i], size=value * value)
        total = run.variable(0.0)
        for k in run.each(found):
            total.value = total.value + found.size[k] * values[found.at[k] - 1]
        y.write(0, total.value)
        return run

    arrays = {"x": np.random.default_rng(0).normal(size=(200, 40)), "y": np.zeros((1, 40))}
    assert workspace_rows(program())[1] == 0
    local = run_program(program(), arrays)["y"]
    monkeypatch.setattr(workspace, "BUDGET", 0)
    assert workspace_rows(program())[1] == 200 + 100 + 400
    assert (run_program(program(), arrays)["y"] == local).all()
    expected = [sum(c[k] ** 2 * c[k - 1] for k in range(199, 0, -2) if c[k] > 0) for c in arrays["x"].T]
    np.testing.assert_allclose(local[0], expected)
