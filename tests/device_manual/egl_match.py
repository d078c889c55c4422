"""Show, on a machine with GPUs, which EGL device the package matches with each GPU, and whether it is that GPU.

Run by hand: `python tests/device_manual/egl_match.py`. Each way of choosing each GPU runs in its own process, before
and after CUDA has started there, and must take the same EGL device for the same GPU, without creating a CUDA context.
Exits non-zero if one of them is wrong, and with 0 and a line that says so where there is no EGL to match with.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

from pluriverse.cuda_driver import CudaDriver
from pluriverse.devices import resolve
from pluriverse.egl_devices import is_gpu, listing, match_egl
from pluriverse.egl_driver import LibEgl

PIN_NAMES = ("CUDA_VISIBLE_DEVICES", "QD_VISIBLE_DEVICE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "EGL_DEVICE_ID")


def child(device: str | None, asks_first: str) -> None:
    """One session: choose the GPU and match it, EGL asked first or CUDA asked first."""
    if asks_first == "EGL":
        before = LibEgl().devices(ask_cuda=True)
    choice = resolve(os.environ, CudaDriver(), device=device)
    devices = LibEgl().devices(ask_cuda=True)
    match = match_egl(os.environ, LibEgl(), choice.gpu, choice.device.index)
    assert choice.gpu is not None
    report = {
        "uuid": choice.gpu.uuid,
        "bus": choice.gpu.bus,
        "cuda": choice.device.index,
        "index": match.index,
        "reason": match.reason,
        "warnings": match.warnings,
        "same": match.index is not None and is_gpu(devices[match.index], choice.gpu, choice.device.index),
        "numbers": [one.cuda for one in devices],
        "stable": asks_first != "EGL" or before == devices,
        "contexts": [gpu.uuid for gpu in CudaDriver().visible() if gpu.context],
    }
    print(json.dumps(report))


def run(variables: dict[str, str], device: str | None = None, asks_first: str = "CUDA") -> dict:
    """Start one child with a clean environment and return what it reports."""
    environ = {name: value for name, value in os.environ.items() if name not in PIN_NAMES} | variables
    command = [sys.executable, __file__, json.dumps([device, asks_first])]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=120)
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {"error": done.stderr}


def ways(uuids: list[str]) -> Iterator[tuple[str, dict[str, str], str | None, str]]:
    """Each way of choosing each GPU: its uuid, the variables, the device, and what the process asks first."""
    order = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}  # nvidia-smi's
    for index, uuid in enumerate(uuids):
        name = str(index)
        for first in ("CUDA", "EGL"):
            yield uuid, {**order, "CUDA_VISIBLE_DEVICES": name}, None, first
            yield uuid, {"CUDA_VISIBLE_DEVICES": uuid}, None, first
            yield uuid, order, f"cuda:{index}", first
        reverse = ",".join(map(str, reversed(range(len(uuids)))))
        yield uuid, {**order, "CUDA_VISIBLE_DEVICES": reverse}, f"cuda:{len(uuids) - 1 - index}", "CUDA"
        yield uuid, {**order, "QD_VISIBLE_DEVICE": name}, None, "CUDA"
        yield uuid, {**order, "LOCAL_RANK": name, "LOCAL_WORLD_SIZE": str(len(uuids))}, None, "CUDA"


def judge(uuid: str, report: dict, indices: dict[str, int]) -> bool:
    """Whether the report names the GPU, its EGL device, the same one as other ways did, and no context."""
    if "error" in report or report["index"] is None:
        return False
    same_as_before = indices.setdefault(uuid, report["index"]) == report["index"]
    return report["uuid"] == uuid and report["same"] and same_as_before and not report["contexts"] and report["stable"]


def main() -> None:
    """Match every GPU, chosen in every way, and every override."""
    match = match_egl({}, LibEgl())
    devices = LibEgl().devices(ask_cuda=False) if match.index is not None else ()
    print(f"EGL lists {listing(devices)}" if devices else f"EGL none: {match.reason}")
    if shutil.which("nvidia-smi") is None or not any(device.nvidia for device in devices):
        print("There is nothing to match here: the check is for machines with NVIDIA GPUs and NVIDIA's EGL driver.")
        return
    query = ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]
    uuids = subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()
    results: list[bool] = []
    indices: dict[str, int] = {}
    for uuid, variables, device, first in ways(uuids):
        report = run(variables, device, first)
        results.append(judge(uuid, report, indices))
        print(f"{'ok     ' if results[-1] else 'FAILED '} {variables} {device or ''} {first} first: {report}")
    for index in range(len(devices)):
        report = run({"CUDA_VISIBLE_DEVICES": uuids[0], "EGL_DEVICE_ID": str(index)})
        warned = bool(report.get("warnings"))
        results.append(report.get("index") == index and warned == (index != indices.get(uuids[0])))
        print(f"{'ok     ' if results[-1] else 'FAILED '} EGL_DEVICE_ID={index}: {report}")
    print(f"{sum(results)} of {len(results)} ways match the GPU that computes")
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        child(*json.loads(sys.argv[1]))
    else:
        main()
