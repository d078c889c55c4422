"""Data-parallel training on batched Panda worlds: one process, one device, one full scene for each rank.

    torchrun --standalone --nproc_per_node=2 examples/ddp_multi_gpu.py
    torchrun --standalone --nproc_per_node=2 examples/ddp_multi_gpu.py --demo       # short, for CPUs
    torchrun --standalone --nproc_per_node=2 --max-restarts=3 examples/ddp_multi_gpu.py --checkpoints runs/reach

The task is to bring the hand to a point. Ranks act in their own worlds and learn two networks from what happens: a
model that foresees where the hand goes, and a policy that is improved through that model (physics itself gives no
gradient). DistributedDataParallel averages the gradients, so all ranks hold the same parameters, and each sees other
data, because `setup` seeds torch by the rank. States stay on the device from the solver to the loss. NCCL where each
rank has a GPU, gloo otherwise. With --checkpoints the job goes on where it ended, also after torchrun has restarted it.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import pluriverse as gs

HOME = (0.0, -0.3, 0.0, -2.0, 0.0, 1.8, 0.8)  # [rad]
LARGEST_TURN = 0.15  # of a joint in one action [rad]
REACH = 0.05  # half width of the cube around the hand in which the goals of one action lie [m]
STEPS_PER_ACTION = 20
NOISE = 0.3  # of actions, as a share of the largest turn
EPISODE = 5  # actions
MEMORY = 10  # actions of every world that are learned from
UPDATES = 4  # for each action


def mlp(n_in: int, n_out: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(n_in, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, n_out))


class Reacher(nn.Module):
    """Joint positions (n, 7), the hand's position (n, 3), an action in [-1, 1] (n, 7) for each joint's turn."""

    def __init__(self) -> None:
        super().__init__()
        self.foresight = mlp(14, 3)  # where the hand goes, in units of REACH
        self.policy = mlp(10, 7)

    def act(self, joints: torch.Tensor, way: torch.Tensor) -> torch.Tensor:
        """The action that should move the hand by `way` [m]."""
        return torch.tanh(self.policy(torch.cat((joints, way / REACH), dim=1)))

    def forward(
        self, joints: torch.Tensor, action: torch.Tensor, moved: torch.Tensor, way: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Squared errors of the model on what happened, and of the policy as the model sees it, in units of REACH."""
        foreseen = self.foresight(torch.cat((joints, action), dim=1))
        frozen = {name: value.detach() for name, value in self.foresight.named_parameters()}
        planned = torch.cat((joints, self.act(joints, way)), dim=1)
        reached = torch.func.functional_call(self.foresight, frozen, (planned,))
        return (foreseen - moved / REACH).square().mean(), (reached - way / REACH).square().mean()


class Worlds:
    """Pandas that are told to turn their joints."""

    def __init__(self) -> None:
        self.scene = gs.Scene(show_viewer=False, show_FPS=False)
        self.scene.add_entity(gs.morphs.Plane())
        self.franka = self.scene.add_entity(gs.morphs.MJCF(file="xml/franka_emika_panda/panda.xml"))

    def build(self, n_envs: int, first_env: int) -> None:
        self.scene.build(n_envs=n_envs, first_env=first_env)
        self.solver = self.scene.sim.rigid_solver
        self.hand = self.franka.get_link("hand")
        self.home = torch.tensor(HOME, device=gs.device)
        self.n_envs = n_envs
        self.reset()

    def reset(self) -> None:
        """Near the home pose, each world elsewhere."""
        self.scene.reset()
        self.command(self.home + 0.3 * torch.randn(self.n_envs, 7, device=gs.device))
        self.franka.set_dofs_position(self.target, range(7))

    def command(self, target: torch.Tensor) -> None:
        lower, upper = self.franka.get_dofs_limit(range(7))
        self.target = target.clamp(lower, upper)
        self.franka.control_dofs_position(self.target, range(7))

    def observe(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Joint positions (n_envs, 7) and the hand's position (n_envs, 3), where the solver has them."""
        return self.solver.get_qpos()[:, :7], self.hand.get_pos()

    def act(self, action: torch.Tensor) -> None:
        self.command(self.target + LARGEST_TURN * action)
        for _ in range(STEPS_PER_ACTION):
            self.scene.step()


def train(args: argparse.Namespace, rank: gs.distributed.Rank, beat: gs.distributed.heartbeat) -> None:
    beat("preflight", limit=90)
    worlds, device = Worlds(), gs.device
    gs.distributed.preflight(rank, worlds.scene, share_device=True)
    beat("build", limit=300)
    worlds.build(args.n_envs, first_env=rank.rank * args.n_envs)
    learner = DistributedDataParallel(
        Reacher().to(device), device_ids=[device.index] if device.type == "cuda" else None
    )
    optimizer = torch.optim.Adam(learner.parameters(), lr=2e-3)
    experience(worlds, learner.module)  # compiles, before time is taken
    before = reaching_error(worlds, learner.module)
    say(f"ranks: {rank.world_size}, environments of each: {args.n_envs}, {dist.get_backend()}")
    equal = gs.distributed.EqualityCheck(rank, every=100)

    memory: list[tuple[torch.Tensor, ...]] = []
    history, logged, since, start = [], 0, time.perf_counter(), 0
    checkpoints = gs.distributed.Checkpoints(args.checkpoints, rank) if args.checkpoints else None
    resumed = checkpoints.load(worlds.scene, learner=learner, optimizer=optimizer) if checkpoints else None
    if resumed is not None:
        start, (worlds.target, memory) = resumed
    if start >= args.steps:
        say(f"The checkpoint is of iteration {start}: nothing is left to do.")
        return
    for iteration in range(start, args.steps):
        beat("act")
        if iteration % EPISODE == 0:
            worlds.reset()
        memory = [*memory[1 - MEMORY :], experience(worlds, learner.module)]
        beat("update")
        for _ in range(UPDATES):
            joints, action, moved = sample(memory, args.n_envs)
            foresight_loss, policy_loss = learner(joints, action, moved, random_way(moved))
            optimizer.zero_grad(set_to_none=True)
            (foresight_loss + policy_loss).backward()  # DDP averages the gradients over the ranks
            optimizer.step()
        equal(learner=learner.module)
        if checkpoints is not None and (iteration + 1) % args.save_every == 0:
            beat("checkpoint", limit=120)
            state = (worlds.target, memory)
            checkpoints.save(iteration + 1, worlds.scene, per_env=state, learner=learner, optimizer=optimizer)
        history.append(torch.stack((foresight_loss, policy_loss)).detach())
        if iteration % args.log_every == 0 or iteration == args.steps - 1:
            mean = torch.stack(history[-args.log_every :]).mean(0)
            dist.all_reduce(mean)
            foresight, policy = (mean / rank.world_size).tolist()  # waits for the device
            now = time.perf_counter()
            env_steps = rank.world_size * args.n_envs * STEPS_PER_ACTION * (len(history) - logged)
            speed, logged, since = env_steps / (now - since), len(history), now
            say(
                f"[{iteration:4d}/{args.steps}] loss {foresight + policy:.4f} (foresight {foresight:.4f}, policy "
                f"{policy:.4f}), {speed:,.0f} env-steps/s"
            )
    losses = torch.stack(history).sum(1)
    tenth = max(1, args.steps // 10)
    first, last = losses[:tenth].mean().item(), losses[-tenth:].mean().item()
    error = reaching_error(worlds, learner.module)
    say(f"loss {first:.4f} -> {last:.4f}; the hand ends {1000 * before:.1f} -> {1000 * error:.1f} mm from its goal")

    gs.distributed.EqualityCheck(rank)(learner=learner.module)
    say("parameters equal on all ranks: True")
    assert last < first or len(history) < 20, f"{rank}: the loss did not decrease"


def experience(worlds: Worlds, learner: Reacher) -> tuple[torch.Tensor, ...]:
    """One noisy action in every world: joints (n, 7), action (n, 7), how the hand moved (n, 3)."""
    joints, hand = worlds.observe()
    with torch.no_grad():
        action = learner.act(joints, random_way(hand))
    action = (action + NOISE * torch.randn_like(action)).clamp(-1, 1)
    worlds.act(action)
    return joints, action, worlds.observe()[1] - hand


def sample(memory: list[tuple[torch.Tensor, ...]], count: int) -> list[torch.Tensor]:
    """`count` random rows of what was experienced."""
    columns = [torch.cat(column) for column in zip(*memory, strict=True)]
    rows = torch.randint(len(columns[0]), (count,), device=columns[0].device)
    return [column[rows] for column in columns]


def random_way(like: torch.Tensor) -> torch.Tensor:
    """(n, 3) where the hand should go, from where it is [m]."""
    return REACH * (2 * torch.rand_like(like) - 1)


def reaching_error(worlds: Worlds, learner: Reacher) -> float:
    """Mean distance between hand and goal after three actions without noise [m], over all ranks."""
    worlds.reset()
    _, hand = worlds.observe()
    goal = hand + random_way(hand)
    for _ in range(3):
        joints, hand = worlds.observe()
        with torch.no_grad():
            worlds.act(learner.act(joints, (goal - hand).clamp(-REACH, REACH)))
    error = (worlds.observe()[1] - goal).norm(dim=1).mean()
    dist.all_reduce(error)
    return error.item() / dist.get_world_size()


def say(text: str) -> None:
    """Print on rank 0."""
    if dist.get_rank() == 0:
        print(text, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1000, help="iterations: one action in every world, one update")
    parser.add_argument("--n_envs", type=int, default=2048, help="environments of each rank")
    parser.add_argument("--log_every", type=int, default=50)
    parser.add_argument("--checkpoints", type=Path, help="folder to save to, and to go on from")
    parser.add_argument("--save_every", type=int, default=100, help="iterations")
    parser.add_argument("--demo", action="store_true", help="a short run: 150 iterations of 1024 environments")
    args = parser.parse_args()
    if args.demo:
        args.steps, args.n_envs, args.log_every = 150, 1024, 25
    # Finds this rank's device, starts a session and a process group there, and seeds torch by the rank.
    rank = gs.distributed.setup("auto", share_device=True)
    print(f"rank {rank.rank} -> {rank.device}", flush=True)
    with gs.distributed.heartbeat(rank) as beat:
        train(args, rank, beat)
    dist.destroy_process_group()
    gs.destroy()


if __name__ == "__main__":
    main()
