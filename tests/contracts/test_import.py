"""Contracts on `import pluriverse`: it starts nothing, and loads nothing heavy beside torch and numpy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pluriverse as gs

PROBE = """
import json, os, sys, threading, time
import numpy, torch

def threads():
    return len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else threading.active_count()

def libcuda():
    return "libcuda.so" in open("/proc/self/maps").read() if os.path.exists("/proc/self/maps") else False

modules, count, loaded, start = set(sys.modules), threads(), libcuda(), time.process_time()
import pluriverse as gs
cost = time.process_time() - start
new = set(sys.modules) - modules
dir(gs)
print(json.dumps({
    "cost": cost,
    "modules": sorted(name.split(".")[0] for name in new),
    "threads": threads() - count,
    "cuda": torch.cuda.is_initialized(),
    "libcuda": libcuda() and not loaded,
    "initialized": gs._initialized,
}))
"""


@pytest.fixture(scope="module")
def probe() -> dict:
    """What importing the package did in a fresh process."""
    environ = {**os.environ, "PYTHONPATH": str(Path(gs.__file__).parents[1])}
    command = [sys.executable, "-c", PROBE]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True, timeout=120)
    return json.loads(done.stdout.splitlines()[-1])


def test_import_starts_nothing(probe: dict) -> None:
    assert not probe["cuda"]
    assert not probe["libcuda"]
    assert not probe["initialized"]
    assert probe["threads"] == 0


def test_import_is_light(probe: dict) -> None:
    third_party = set(probe["modules"]) - set(sys.stdlib_module_names) - {"pluriverse"}
    assert not third_party, "these load at first use only"
    assert probe["cost"] < 0.5  # seconds of this process's CPU; a few hundredths when nothing is wrong


@pytest.mark.parametrize("name", sorted(gs.__all__))
def test_public_name_exists(name: str) -> None:
    assert getattr(gs, name) is not None
    assert name in dir(gs)


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = gs.no_such_thing
