"""One process on each GPU, each with a scene of its own; without GPUs, two processes on the CPU.

    python examples/multi_gpu.py

Each process sees one device only: the variables are set before `gs.init`, which is early enough, although torch and
this package are imported already.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys

import torch

import pluriverse as gs


def simulate(steps: int) -> None:
    gs.init(backend=gs.gpu)

    scene = gs.Scene(
        viewer_options=gs.options.ViewerOptions(camera_pos=(3.5, 0.0, 2.5), camera_lookat=(0.0, 0.0, 0.5)),
        show_viewer=False,
        show_FPS=False,
    )
    scene.add_entity(gs.morphs.Plane())
    franka = scene.add_entity(gs.morphs.MJCF(file="xml/franka_emika_panda/panda.xml"), visualize_contact=True)

    scene.build()
    for _ in range(steps):
        scene.step()
    qpos = franka.get_qpos()
    assert bool(qpos.isfinite().all())
    print(f"process {os.getpid()} on {gs.device}: joint 2 at {qpos[1].item():.4f} rad", flush=True)


def run(gpu_id: int, steps: int) -> None:
    os.environ["CUDA_VISIBLE_DEVICES"] = str(gpu_id)
    os.environ["QD_VISIBLE_DEVICE"] = str(gpu_id)
    os.environ["EGL_DEVICE_ID"] = str(gpu_id)
    simulate(steps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=torch.cuda.device_count() or 2)
    args = parser.parse_args()

    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=run, args=(i, args.steps)) for i in range(args.processes)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    sys.exit(any(process.exitcode for process in processes))


if __name__ == "__main__":
    main()
