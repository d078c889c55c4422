"""The learner beside fast physics: one update after every step, written plainly, then fused, then as one CUDA graph.

    torchrun --standalone --nproc_per_node=2 examples/ddp_cuda_graph.py
    torchrun --standalone --nproc_per_node=1 examples/ddp_cuda_graph.py --profile --json speed.json

Each rank steps its own worlds and trains a small network to take noise off joint positions. Called from Python, the
update costs the host far more time than the GPU needs for step and update. Four modes do the same arithmetic:

    eager    DistributedDataParallel and Adam as one writes them first.
    fused    DDP with one bucket in which the gradients stay, and Adam in one kernel.
    graph    step, noise, loss, backward, NCCL all-reduce and Adam captured once, and replayed by one call.
    overlap  graph, with the next step on a branch beside the update and its all-reduce. Worlds here do not depend on
             the policy; where it acts, its actions would come from the parameters before the running update.

All start from the same parameters, worlds and random numbers; before time is taken they must have learned the same.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import pluriverse as gs

DT = 0.005  # of a physics step [s]
NOISE = 0.1  # on joint positions, to be taken off
WARM_UP = 5  # iterations before a capture: libraries, NCCL and Adam allocate at first use, which a capture must not see
COMPARED = 20  # iterations after which all modes must have the same parameters
TOLERANCE = 1e-4  # of that, relative to the largest parameter
WINDOWS = 5  # timed ones of each mode, every one from the same worlds
PROFILED = 50  # iterations


def build_scene(args: argparse.Namespace) -> gs.Scene:
    """Robots that fall: nothing drives them, and each starts in a pose of its own."""
    durations = gs.options.SimOptions(dt=DT * args.physics_steps, substeps=args.physics_steps)
    scene = gs.Scene(sim_options=durations, show_viewer=False, show_FPS=False)
    if args.model is None:
        scene.add_entity(gs.morphs.Plane())
    scene.add_entity(gs.morphs.MJCF(file=args.model or "xml/humanoid/humanoid.xml"))
    scene.build(n_envs=args.n_envs)
    solver = scene.sim.rigid_solver
    pose, (lower, upper) = solver.get_dofs_position(), solver.get_dofs_limit()
    solver.set_dofs_position((pose + 0.1 * torch.randn_like(pose)).clamp(lower, upper))
    scene.reset(scene.get_state())  # what reset() goes back to from now on
    return scene


class Learner:
    """A network and what trains it: DDP, or where it is captured, one vector of gradients without DDP's hooks."""

    def __init__(self, n_qs: int, mode: str) -> None:
        torch.manual_seed(0)  # the same parameters on all ranks
        layers = (nn.Linear(n_qs, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, n_qs))
        self.policy: nn.Module = nn.Sequential(*layers).to(gs.device)
        self.parameters = list(self.policy.parameters())
        self.gradient: torch.Tensor | None = None
        if mode in ("eager", "fused"):
            options = {"gradient_as_bucket_view": True, "static_graph": True, "bucket_cap_mb": 100}
            self.policy = DistributedDataParallel(self.policy, **(options if mode == "fused" else {}))
            self.optimizer = torch.optim.Adam(self.parameters, lr=1e-3, fused=mode == "fused" or None)
        else:
            self.gradient = torch.zeros_like(self.parameter_vector())
            parts = self.gradient.split([parameter.numel() for parameter in self.parameters])
            for parameter, part in zip(self.parameters, parts, strict=True):
                parameter.grad = part.view_as(parameter)
            # Captured as the number it is; to change the rate between replays, give Adam a tensor on the device.
            self.optimizer = torch.optim.Adam(self.parameters, lr=1e-3, fused=True, capturable=True)
        torch.manual_seed(1 + dist.get_rank())  # each rank's noise is its own, and the same in every mode

    def learn(self, qpos: torch.Tensor, mark: Callable[[str], None]) -> None:
        noisy = torch.add(qpos, torch.randn_like(qpos), alpha=NOISE)
        mark("observe, noise")
        loss = nn.functional.mse_loss(self.policy(noisy), qpos)
        mark("forward, loss")
        if self.gradient is None:
            self.optimizer.zero_grad()
            loss.backward()  # DDP averages over the ranks
        else:
            gradients = torch.autograd.grad(loss, self.parameters)
            torch.cat([gradient.flatten() for gradient in gradients], out=self.gradient)
            dist.all_reduce(self.gradient, dist.ReduceOp.AVG)
        mark("backward, all-reduce")
        self.optimizer.step()
        mark("optimiser")
        self.loss = loss.detach()  # stays on the device: to read it in every iteration would make the host wait

    def parameter_vector(self) -> torch.Tensor:
        return nn.utils.parameters_to_vector(self.parameters).detach()


class Loop:
    """The iteration, called from Python."""

    def __init__(self, scene: gs.Scene, mode: str) -> None:
        self.scene, self.solver = scene, scene.sim.rigid_solver
        self.learner = Learner(self.solver.n_qs, mode)
        self.restart()

    def restart(self) -> None:
        self.scene.reset()  # the learner goes on

    def iterate(self, mark: Callable[[str], None] = lambda part: None) -> None:
        self.scene.step()
        mark("physics")
        self.learner.learn(self.solver.get_qpos(), mark)

    def run(self, count: int) -> None:
        for _ in range(count):
            self.iterate()


class GraphLoop(Loop):
    """The iteration as a CUDA graph, captured on the current stream after a few iterations from Python.

    A replay does the GPU's part alone. What the host notes in `scene.step()` stands still: `solver.steps`, the scene's
    time, the regular look for worlds in trouble (ask `solver.get_error_envs_mask()`), and that link poses are out of
    date: whoever needs those reads them in the iteration, so that their computation is captured too.
    """

    graph: torch.cuda.CUDAGraph | None = None

    def run(self, count: int) -> None:
        if self.graph is None:
            super().run(WARM_UP)
            count -= WARM_UP
            self.graph = torch.cuda.CUDAGraph()  # to be captured, which runs nothing
            # "thread_local": NCCL's watchdog, a thread of its own, may look at the GPU meanwhile.
            with torch.cuda.graph(self.graph, stream=torch.cuda.current_stream(), capture_error_mode="thread_local"):
                self.iterate()
        for _ in range(count):
            self.graph.replay()


class OverlapLoop(GraphLoop):
    """The graph with the next step on a branch beside the update, which learns from a copy of the positions."""

    def __init__(self, scene: gs.Scene, mode: str) -> None:
        self.branch = torch.cuda.Stream()
        super().__init__(scene, mode)

    def restart(self) -> None:
        super().restart()
        self.scene.step()  # the first; each iteration does the step of the next

    def iterate(self, mark: Callable[[str], None] = lambda part: None) -> None:
        qpos = self.solver.get_qpos()
        self.branch.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.branch):
            self.scene.step()
        self.learner.learn(qpos, mark)
        torch.cuda.current_stream().wait_stream(self.branch)


MODES = {"eager": Loop, "fused": Loop, "graph": GraphLoop, "overlap": OverlapLoop}


def run_modes(args: argparse.Namespace) -> dict[str, Any]:
    """What was measured of each mode."""
    scene, results = build_scene(args), {}
    reference: tuple[str, torch.Tensor] | None = None
    for mode in args.modes:
        if issubclass(MODES[mode], GraphLoop) and dist.get_backend() != "nccl":
            results[mode] = f"skipped: a graph needs GPUs and NCCL, this is {dist.get_backend()} on {gs.device.type}"
            say(f"{mode}: {results[mode]}")
            continue
        loop = MODES[mode](scene, mode)
        loop.run(COMPARED)
        learned = loop.learner.parameter_vector()
        first, expected = reference = reference or (mode, learned)
        difference = ((learned - expected).abs().max() / expected.abs().max()).item()
        say(f"{mode}: parameters after {COMPARED} iterations are {first}'s within {difference:.1e}, relatively")
        if not difference <= TOLERANCE:
            raise SystemExit(f"{mode} does not learn what {first} does: {TOLERANCE:.0e} is allowed")
        results[mode] = {"difference": difference, **time_windows(mode, loop, args)}
        if loop.solver.get_error_envs_mask().any():
            raise SystemExit(f"{mode}: this is no speed to report, worlds are not finite")
        dist.all_reduce(lowest := loop.learner.parameter_vector(), dist.ReduceOp.MIN)
        dist.all_reduce(highest := loop.learner.parameter_vector(), dist.ReduceOp.MAX)
        if not torch.equal(lowest, highest):
            raise SystemExit(f"{mode}: the ranks have drifted apart")
        say(f"{mode}: loss {loop.learner.loss.item():.4f}, parameters equal on all ranks: True")
        if args.profile:
            results[mode]["profile"] = profile(mode, loop)
        if isinstance(loop, GraphLoop) and loop.graph is not None:
            loop.graph.reset()  # else NCCL waits for it at the end, because it holds NCCL's kernels
    return results


def time_windows(mode: str, loop: Loop, args: argparse.Namespace) -> dict[str, float]:
    """Physics steps of all ranks' environments per second. The host waits for the device at ends of windows only."""
    seconds = []
    for _ in range(1 + WINDOWS):  # the first one is to get going
        loop.restart()
        dist.barrier()
        wait()
        start = time.perf_counter()
        loop.run(args.iterations)
        wait()
        dist.all_reduce(slowest := torch.tensor(time.perf_counter() - start, device=gs.device), dist.ReduceOp.MAX)
        seconds.append(slowest.item())
    env_steps = args.iterations * args.physics_steps * args.n_envs * dist.get_world_size()
    low, *_, high = rates = sorted(env_steps / s for s in seconds[1:])
    median, ms = statistics.median(rates), 1e3 * statistics.median(seconds[1:]) / args.iterations
    say(f"{mode}: {median:,.0f} env-steps/s ({low:,.0f} to {high:,.0f}), {ms:.3f} ms an iteration")
    return {"env_steps_per_second": median, "min": low, "max": high, "ms_per_iteration": ms}


def profile(mode: str, loop: Loop) -> dict[str, Any]:
    """Where the time of an iteration goes [us]: its parts if Python calls them, its kernels on a GPU."""
    on_gpu, result = gs.device.type == "cuda", {}
    loop.restart()
    if not isinstance(loop, GraphLoop):
        now = timed_event if on_gpu else time.perf_counter
        ends = [("start", now())]
        for _ in range(PROFILED):
            loop.iterate(lambda part: ends.append((part, now())))
        wait()
        for (_, start), (part, end) in itertools.pairwise(ends):
            us = 1e3 * start.elapsed_time(end) if on_gpu else 1e6 * (end - start)
            result[part] = result.get(part, 0.0) + us / PROFILED
        say(f"{mode}: " + "; ".join(f"{part} {us:.0f} us" for part, us in result.items()))
    if on_gpu:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
            loop.run(PROFILED)
            wait()
        events = [e for e in profiler.key_averages() if e.device_type.name == "CUDA" and not e.is_user_annotation]
        rows = sorted(((e.self_device_time_total / PROFILED, e.count / PROFILED, e.key) for e in events), reverse=True)
        busy = sum(us for us, _, _ in rows)
        say(f"{mode}: {sum(n for _, n, _ in rows):.0f} kernels and copies an iteration, together {busy:.0f} us")
        for us, n, name in rows[:10]:
            say(f"{us:10.1f} us {us / busy:5.0%} {n:4.0f} x {name[:90]}")
        result["kernels"] = rows
    return result


def timed_event() -> torch.cuda.Event:
    """When the device will have come here; the time between two includes its waiting for the host."""
    return torch.cuda.current_stream().record_event(torch.cuda.Event(enable_timing=True))


def wait() -> None:
    """Until the device has done everything."""
    if gs.device.type == "cuda":
        torch.cuda.synchronize()


def say(text: str) -> None:
    """Print on rank 0."""
    if dist.get_rank() == 0:
        print(text, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n_envs", type=int, default=2048, help="environments of each rank")
    parser.add_argument("--model", help="an MJCF file with its own floor, instead of the package's humanoid on a plane")
    parser.add_argument("--physics_steps", type=int, default=1, help="for each update; not a mode: other mathematics")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--iterations", type=int, default=300, help="of one timed window")
    parser.add_argument("--profile", action="store_true", help="show where the time goes")
    parser.add_argument("--json", type=Path, help="where rank 0 writes the results")
    args = parser.parse_args()
    if "RANK" not in os.environ:
        parser.error("this process is no rank: start it with torchrun, as --help shows")

    # The seed is the global rank: ranks must not see the same worlds.
    gs.init(backend=gs.gpu, seed=int(os.environ["RANK"]), logging_level="warning")
    on_gpu = gs.device.type == "cuda"
    own_gpu = on_gpu and int(os.environ.get("LOCAL_WORLD_SIZE", "1")) <= torch.cuda.device_count()
    options = {"backend": "nccl", "device_id": gs.device} if own_gpu else {"backend": "gloo"}
    dist.init_process_group(timeout=timedelta(minutes=5), **options)
    about = {"device": torch.cuda.get_device_name() if on_gpu else "cpu", "torch": torch.__version__}
    about |= {"backend": dist.get_backend(), "ranks": dist.get_world_size(), **vars(args), "json": None}
    say(", ".join(f"{name}: {value}" for name, value in about.items() if value is not None))
    if on_gpu:  # nothing can be captured on the default stream: everything, from the scene's building on, is on this
        torch.cuda.set_stream(torch.cuda.Stream())
    about["results"] = run_modes(args)
    if args.json is not None and dist.get_rank() == 0:
        args.json.write_text(json.dumps(about, indent=1))
    dist.barrier()
    dist.destroy_process_group()
    gs.destroy()


if __name__ == "__main__":
    main()
