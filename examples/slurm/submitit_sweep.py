"""A sweep on SLURM: each value is a job of several ranks, submitted from Python by submitit.

    python examples/slurm/submitit_sweep.py --gains 20 40 80 160                      # on the cluster
    python examples/slurm/submitit_sweep.py --gains 20 80 --cluster local --ranks 2   # on this machine

A job moves the Panda to random postures, with a position controller of the given gain, in the worlds that its ranks
share, and tells how far from their targets the joints are at the end. Needs `pip install 'pluriverse[slurm]'`.
"""

from __future__ import annotations

import argparse

import submitit
import torch
from submitit.helpers import TorchDistributedEnvironment

import pluriverse as gs

N_ENVS = 64  # of a job
STEPS = 100
HOME = torch.tensor((0.0, -0.3, 0.0, -2.0, 0.0, 1.8, 0.8))  # [rad]
ARM = range(7)


def error_of(gain: float) -> float:
    """The root mean square of what the joints lack to their targets [rad], over all worlds and ranks."""
    # Which GPUs a task sees is SLURM's business: submitit's default would overwrite the variable that says so.
    TorchDistributedEnvironment().export(set_cuda_visible_devices=False)
    rank = gs.distributed.setup("auto", seed=1)
    scene = gs.Scene(show_FPS=False)
    scene.add_entity(gs.morphs.Plane())
    franka = scene.add_entity(gs.morphs.MJCF(file="xml/franka_emika_panda/panda.xml"))
    envs = rank.envs(N_ENVS)
    scene.build(n_envs=len(envs), first_env=envs.start)
    franka.set_dofs_kp([gain] * 7, ARM)
    franka.set_dofs_kv([gain**0.5] * 7, ARM)
    home = HOME.to(gs.device)
    franka.set_dofs_position(home.expand(len(envs), 7), ARM)
    targets = home + scene.random_stream("targets").uniform(7, -0.5, 0.5)
    franka.control_dofs_position(targets, ARM)
    for _ in range(STEPS):
        scene.step()
    total = (franka.get_dofs_position(ARM) - targets).square().sum()
    torch.distributed.all_reduce(total)
    torch.distributed.destroy_process_group()
    return (total / (N_ENVS * 7)).sqrt().item()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--gains", type=float, nargs="+", default=[20, 40, 80, 160])
    parser.add_argument("--ranks", type=int, default=4, help="of each job, with a GPU each")
    parser.add_argument("--cluster", choices=("slurm", "local"), default="slurm")
    parser.add_argument("--folder", default="runs/sweep", help="for logs and results; all machines see it")
    args = parser.parse_args()

    executor = submitit.AutoExecutor(folder=args.folder, cluster=args.cluster)
    executor.update_parameters(tasks_per_node=args.ranks, timeout_min=10)
    if args.cluster == "slurm":
        executor.update_parameters(gpus_per_node=args.ranks, slurm_additional_parameters={"requeue": True})
    for gain, job in zip(args.gains, executor.map_array(error_of, args.gains), strict=True):
        print(f"gain {gain:g}: error {job.results()[0]:.4f} rad", flush=True)


if __name__ == "__main__":
    main()
