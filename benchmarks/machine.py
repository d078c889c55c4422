"""Where and with what a result was measured."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

_PACKAGES = ("pluriverse", "torch", "warp-lang", "numpy", "mujoco", "mujoco-warp")


def describe() -> dict[str, Any]:
    """Hardware, versions, commit, date."""
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg(),
        "gpu": _gpu(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in _PACKAGES},
        "commit": _commit(),
    }


def limit_threads(threads: int) -> None:
    """Keeps this process on so many cores: every engine is held to the same."""
    import torch

    cores = sorted(os.sched_getaffinity(0))[:threads]
    os.sched_setaffinity(0, cores)
    torch.set_num_threads(len(cores))


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor()
    )


def _gpu() -> dict[str, str] | None:
    import torch

    if not torch.cuda.is_available():
        return None
    query = ["nvidia-smi", "--query-gpu=name,driver_version,clocks.sm,clocks.mem", "--format=csv,noheader"]
    return {"name": torch.cuda.get_device_name(), "cuda": str(torch.version.cuda), "driver_and_clocks": _output(query)}


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return getattr(__import__("pluriverse"), "__version__", None) if package == "pluriverse" else None


def _commit() -> str:
    """The commit, with a mark if files have been changed since."""
    here = ["git", "-C", str(Path(__file__).resolve().parents[1])]
    head = _output([*here, "rev-parse", "HEAD"])
    return head + ("+changes" if head and _output([*here, "status", "--porcelain"]) else "")


def _output(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""
