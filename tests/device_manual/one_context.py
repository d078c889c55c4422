"""Check, on a machine with GPUs, that a session holds a CUDA context on the chosen GPU and on no other.

Run by hand: `python tests/device_manual/one_context.py`. Each way of choosing each GPU runs in its own process, which
uses torch and Warp and then asks the CUDA driver which devices hold a context of this process, and NVML which GPUs
list the process. Exits non-zero if one of them is wrong.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

PIN_NAMES = ("CUDA_VISIBLE_DEVICES", "QD_VISIBLE_DEVICE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")


def child(arguments: dict[str, str], variables: dict[str, str]) -> None:
    """One session: pin, init, work with torch and Warp, report."""
    import torch

    import pluriverse as gs
    from pluriverse.cuda_driver import CudaDriver
    from pluriverse.runtime import runtime

    assert not torch.cuda.is_initialized()
    assert not CudaDriver().started(), "importing started CUDA"
    os.environ.update(variables)
    gs.init(backend=gs.cuda, seed=0, logging_level="warning", **arguments)

    wp = runtime.warp()
    total = torch.rand(1000, device=gs.device).sum() + wp.to_torch(wp.ones(1000)).sum()
    torch.cuda.synchronize()
    gpus = CudaDriver().visible()
    print(
        json.dumps(
            {
                "device": str(gs.device),
                "warp": str(wp.get_device()),
                "chosen": gpus[gs.device.index].uuid,
                "contexts": [gpu.uuid for gpu in gpus if gpu.context],
                "listed": listed_gpus(),
                "finite": bool(torch.isfinite(total)),
            }
        )
    )
    gs.destroy()


def listed_gpus() -> list[str]:
    """The uuids of the GPUs on which nvidia-smi lists this process; empty where process ids are hidden."""
    query = ["nvidia-smi", "--query-compute-apps=pid,gpu_uuid", "--format=csv,noheader"]
    rows = subprocess.run(query, capture_output=True, text=True, check=False).stdout.splitlines()
    return [row.split(",")[1].strip() for row in rows if row.split(",")[0].strip() == str(os.getpid())]


def run(arguments: dict[str, str], variables: dict[str, str], uuid: str) -> bool:
    """Start one child with a clean environment and judge what it reports."""
    environ = {name: value for name, value in os.environ.items() if name not in PIN_NAMES}
    command = [sys.executable, __file__, json.dumps([arguments, variables])]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    case = f"{variables or ''} {arguments or ''}".strip()
    if done.returncode:
        print(f"FAILED  {case}\n{done.stderr}")
        return False
    report = json.loads(done.stdout.splitlines()[-1])
    good = (
        report["contexts"] == [report["chosen"]] == [uuid]
        and report["warp"] == report["device"]
        and set(report["listed"]) <= {uuid}
        and report["finite"]
    )
    print(f"{'ok     ' if good else 'FAILED '} {case}: {report}")
    return good


def main() -> None:
    """Choose every GPU in every way."""
    if shutil.which("nvidia-smi") is None:
        sys.exit("There is no nvidia-smi here: this check is for machines with NVIDIA GPUs.")
    query = ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]
    uuids = subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()
    order = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}  # nvidia-smi's
    results = []
    for index, uuid in enumerate(uuids):
        name = str(index)
        rank = {"LOCAL_RANK": name, "LOCAL_WORLD_SIZE": str(len(uuids))}
        results += [
            run({}, {**order, "CUDA_VISIBLE_DEVICES": name}, uuid),
            run({}, {**order, "QD_VISIBLE_DEVICE": name}, uuid),
            run({}, {**order, "CUDA_VISIBLE_DEVICES": name, "QD_VISIBLE_DEVICE": name}, uuid),
            run({}, {"CUDA_VISIBLE_DEVICES": uuid}, uuid),
            run({"device": f"cuda:{index}"}, order, uuid),
            run({}, {**order, **rank}, uuid),
        ]
    print(f"{sum(results)} of {len(results)} ways hold one context, on the chosen GPU")
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        child(*json.loads(sys.argv[1]))
    else:
        main()
