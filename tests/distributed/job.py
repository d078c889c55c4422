"""A short training job for the tests: run by torchrun, with faults planted by argument."""

from __future__ import annotations

import argparse
import ctypes
import os
import resource
import signal
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import pluriverse as gs


def plant(fault: str, step: int, args: argparse.Namespace, rank: gs.distributed.Rank) -> None:
    """Do what `--fault NAME` says, on its rank, at its step, the first time that the job runs."""
    if fault != args.fault or rank.rank != args.fault_rank or step != args.fault_step or rank.restarts > 0:
        return
    if fault in ("build", "step"):
        raise ValueError(f"planted in {fault}")
    if fault in ("kill", "stop"):
        time.sleep(0.3)  # so that the phase is known
    if fault == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault == "stall":
        time.sleep(1000)
    if fault == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    if fault == "hang":
        ctypes.PyDLL(None).sleep(1000)  # with the interpreter's lock
    if fault == "disk":
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    if fault == "drift":
        args.drift = True


def act(scene: gs.Scene, robot: object) -> None:
    """Random targets for the joints; of some environments the state begins anew, at random places."""
    robot.control_dofs_position(scene.random_stream("action").uniform(2, -0.5, 0.5), range(6, 8))
    chosen = scene.random_stream("which").uniform() < 0.02
    scene.reset(envs_idx=chosen)
    start = scene.random_stream("reset").uniform((2,), -0.3, 0.3, envs_idx=chosen)
    robot.set_dofs_position(start, range(6, 8), envs_idx=chosen)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--total", type=int, default=16)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--checkpoints", type=Path)
    parser.add_argument("--save_every", type=int, default=10)
    parser.add_argument("--stop_at", type=int, default=10**9, help="end the job in good order at this step")
    parser.add_argument("--fault", default="")
    parser.add_argument("--fault_rank", type=int, default=1)
    parser.add_argument("--fault_step", type=int, default=15)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu", help="gpu: ranks may share one")
    parser.add_argument("--limit", type=float, default=20.0)
    args = parser.parse_args()
    args.drift = False

    backend = gs.cpu if args.device == "cpu" else gs.cuda
    rank = gs.distributed.setup("auto", seed=11, backend=backend, share_device=True)
    with gs.distributed.heartbeat(rank, limit=args.limit) as beat:
        beat("preflight", limit=60)
        scene = gs.Scene(show_FPS=False)
        scene.add_entity(gs.morphs.Plane())
        half = 0.5 if args.fault == "model" and rank.rank == args.fault_rank else 1.0
        robot = scene.add_entity(gs.morphs.MJCF(file=crawler(mass=half)))
        gs.distributed.preflight(rank, scene, share_device=True)
        beat("build", limit=120)
        plant("build", args.fault_step, args, rank)
        envs = rank.envs(args.total)
        scene.build(n_envs=len(envs), first_env=envs.start)

        network = nn.Sequential(nn.Linear(9, 16), nn.Tanh(), nn.LayerNorm(16), nn.Linear(16, 8)).to(gs.device)
        policy = DistributedDataParallel(network)
        optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
        ages = torch.zeros(len(envs), dtype=torch.int64, device=gs.device)
        equal = gs.distributed.EqualityCheck(rank, every=10)
        first = 0
        checkpoints = gs.distributed.Checkpoints(args.checkpoints, rank, keep=2) if args.checkpoints else None
        if checkpoints is not None:
            resumed = checkpoints.load(scene, policy=policy, optimizer=optimizer)
            if resumed is not None:
                first, ages = resumed.step, resumed.per_env["ages"]
                print(f"rank {rank.rank} resumed at {first}", flush=True)
        for step in range(first, min(args.steps, args.stop_at)):
            beat("step")
            for fault in ("step", "kill", "stall", "stop", "hang", "disk", "drift"):
                plant(fault, step, args, rank)
            act(scene, robot)
            scene.step()
            ages += 1
            beat("update")
            qpos = robot.get_qpos()
            loss = (policy(qpos + 0.1 * torch.randn_like(qpos)) - robot.get_dofs_velocity()).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if args.drift:
                policy.module[0].bias.data += 1e-6
            equal(policy=policy.module)
            if checkpoints is not None and (step + 1) % args.save_every == 0:
                beat("checkpoint")
                checkpoints.save(step + 1, scene, per_env={"ages": ages}, policy=policy, optimizer=optimizer)
        if args.out:
            worlds = {"qpos": robot.get_qpos(), "dofs_vel": robot.get_dofs_velocity(), "ages": ages}
            torch.save({**worlds, "policy": policy.module.state_dict()}, args.out / f"{rank.rank}.pt")
    torch.distributed.destroy_process_group()


def crawler(mass: float) -> str:
    """A body with two legs, that falls, slides and bumps."""
    legs = "".join(
        f'<body pos="{x} 0 0"><joint name="{name}" axis="1 1 0" range="-60 60"/>'
        f'<geom type="capsule" fromto="0 0 0 {x} 0 -0.1" size="0.03" mass="0.2"/></body>'
        for name, x in (("a", 0.12), ("b", -0.12))
    )
    motors = "".join(f'<position joint="{name}" kp="8" kv="0.3"/>' for name in ("a", "b"))
    return (
        '<mujoco><worldbody><body pos="0 0 0.4" euler="20 0 0"><freejoint/>'
        f'<geom type="box" size="0.1 0.08 0.04" mass="{mass}"/>{legs}</body></worldbody>'
        f"<actuator>{motors}</actuator></mujoco>"
    )


if __name__ == "__main__":
    main()
