"""`pluriverse doctor`: what this machine offers to a job, tried out, and what is wrong with it."""

from __future__ import annotations

import os
import platform
import time

import torch
import torch.distributed as dist

from pluriverse.cache_folder import cache_folder
from pluriverse.cuda_driver import CudaDriver
from pluriverse.devices import MASK, PIN, Unavailable, parse_mask, visible_gpus
from pluriverse.distributed.launch import launch
from pluriverse.distributed.preflight import package_versions, preflight
from pluriverse.distributed.rank import Rank
from pluriverse.distributed.setup import setup
from pluriverse.egl_devices import DEVICE_ID, match_egl
from pluriverse.egl_driver import LibEgl
from pluriverse.errors import GenesisException
from pluriverse.morphs import Box, Plane
from pluriverse.runtime import runtime
from pluriverse.scene import Scene

VARIABLES = (MASK, PIN, DEVICE_ID, "CUDA_DEVICE_ORDER", "RANK", "WORLD_SIZE", "LOCAL_RANK", "SLURM_JOB_ID")
N_ENVS, STEPS = 1024, 100


def doctor() -> int:
    """Print what there is, then run a small job with one rank on each device. 0 if all is well."""
    versions = ", ".join(f"{name} {version}" for name, version in package_versions().items())
    print(f"{platform.node()}: {platform.platform()}, {len(os.sched_getaffinity(0))} cores for this process")
    print(f"versions: {versions}, CUDA of torch: {torch.version.cuda}")
    given = [f"{name}={os.environ[name]}" for name in VARIABLES if name in os.environ]
    print(f"variables: {', '.join(given) or 'none set'}")
    cache = cache_folder(os.environ)
    print(f"cache of kernels: {cache.path}, {cache.fault() or 'can be written'}")
    try:
        print("\n".join(_gpus()))
        print("\n".join(launch(_try, progress=False)))
    except GenesisException as error:
        print(f"NOT WELL: {error}")
        return 1
    print("All is well.")
    return 0


def _gpus() -> list[str]:
    """A line for each GPU that this process may use."""
    try:
        gpus = visible_gpus(os.environ, CudaDriver(), parse_mask(os.environ.get(MASK)))
    except Unavailable as reason:
        return [f"GPUs: none, {reason}"]
    lines = []
    for index, gpu in enumerate(gpus):
        egl = match_egl(os.environ, LibEgl(), gpu, index)
        notes = "".join(f"; {warning}" for warning in egl.warnings)
        lines.append(f"cuda:{index}: {gpu.name} {gpu.uuid}, PCI {gpu.bus}, {egl} ({egl.reason}){notes}")
    return lines


def _try(rank: Rank) -> str:
    """What one rank of the small job says: where it is, and how fast it steps."""
    rank = setup("auto", logging_level="warning")
    scene = Scene(show_FPS=False)
    scene.add_entity(Plane())
    scene.add_entity(Box(pos=(0.0, 0.0, 0.5), size=(0.1, 0.1, 0.1)))
    place = preflight(rank, scene)
    start = time.perf_counter()
    scene.build(n_envs=N_ENVS)
    scene.step()
    _wait()
    built = time.perf_counter() - start
    start = time.perf_counter()
    for _ in range(STEPS):
        scene.step()
    _wait()
    speed = N_ENVS * STEPS / (time.perf_counter() - start)
    height = scene.rigid_solver.get_qpos()[:, 2]
    if not bool(((height > 0.04) & (height < 0.06)).all()):
        raise GenesisException(
            f"{rank}: a box that fell on a plane lies at {height.min():.3f} to {height.max():.3f} m."
        )
    group = dist.get_backend()
    dist.destroy_process_group()
    return f"{place}; all-reduce by {group}; a scene in {built:.1f} s, {speed:,.0f} env-steps/s of a falling box"


def _wait() -> None:
    if runtime.device.type == "cuda":
        torch.cuda.synchronize()
