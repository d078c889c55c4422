"""The learner's example: two ranks on the CPU, and the iterations of its CUDA graphs with doubles of CUDA's streams."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
import torch.distributed as dist

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "ddp_cuda_graph.py"
MODEL = "xml/cartpole.xml"


def test_two_ranks_agree_and_say_why_there_is_no_graph(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", str(EXAMPLE)]
    command += ["--model", MODEL, "--n_envs", "16", "--iterations", "5", "--physics_steps", "2"]
    command += ["--profile", "--json", str(tmp_path / "speed.json")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert float(re.search(r"^fused: .* are eager's within (\S+), ", done.stdout, re.M)[1]) < 1e-5  # type: ignore[index]
    assert done.stdout.count("parameters equal on all ranks: True") == 2
    for mode in ("graph", "overlap"):
        assert f"{mode}: skipped: a graph needs GPUs and NCCL, this is gloo on cpu" in done.stdout

    results = json.loads((tmp_path / "speed.json").read_text())["results"]
    for mode in ("eager", "fused"):
        speed = results[mode]
        assert 0 < speed["min"] <= speed["env_steps_per_second"] <= speed["max"]
        assert speed["env_steps_per_second"] * speed["ms_per_iteration"] == pytest.approx(1e3 * 2 * 2 * 16)
        parts = ["physics", "observe, noise", "forward, loss", "backward, all-reduce", "optimiser"]
        assert list(speed["profile"]) == parts
    assert results["graph"].startswith("skipped")


class Stream:
    """In place of a CUDA stream: all work is done at once, in the order of the calls."""

    def wait_stream(self, other: Stream) -> None: ...


def test_what_the_graphs_hold_learns_the_same(monkeypatch: pytest.MonkeyPatch, gs_cpu: ModuleType) -> None:
    """The iterations that are captured on a GPU, here called from Python."""
    spec = importlib.util.spec_from_file_location("ddp_cuda_graph", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    adam = torch.optim.Adam
    monkeypatch.setattr(torch.optim, "Adam", lambda *given, capturable=False, **options: adam(*given, **options))
    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "current_stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: contextlib.nullcontext())
    monkeypatch.setattr(example.GraphLoop, "run", example.Loop.run)

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        scene = example.build_scene(argparse.Namespace(model=MODEL, n_envs=16, physics_steps=1))
        learned, losses = {}, {}
        for mode, loop_class in example.MODES.items():
            loop = loop_class(scene, mode)
            loop.run(30)
            learned[mode], losses[mode] = loop.learner.parameter_vector(), loop.learner.loss.item()
        loop = example.Loop(scene, "eager")
        start = loop.learner.parameter_vector()
        loop.run(29)
        one_less = loop.learner.parameter_vector()
    finally:
        dist.destroy_process_group()
    assert (learned["eager"] - start).abs().max() > 1e-2
    assert (learned["eager"] - one_less).abs().max() > 1e-4
    for mode in ("fused", "graph", "overlap"):
        torch.testing.assert_close(learned[mode], learned["eager"], rtol=0, atol=1e-6)
        assert losses[mode] == pytest.approx(losses["eager"], rel=1e-4)
