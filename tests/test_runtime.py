"""A session: init, destroy, what the package's attributes say in between, and who is told when it ends."""

from __future__ import annotations

import inspect
import logging
import multiprocessing
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import pluriverse as gs
from fake_driver import FakeDriver, machine
from pluriverse.runtime import Runtime, runtime


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    gs.destroy()
    yield
    gs.destroy()


def test_attributes_follow_the_session() -> None:
    assert not gs._initialized
    assert gs.device is gs.backend is gs.EPS is gs.logger is gs.SEED is None
    with pytest.raises(AttributeError, match="gs.init"):
        _ = gs.tc_float
    gs.init(gs.cpu, seed=3, logging_level="warning")
    assert gs._initialized
    assert gs.device == torch.device("cpu")
    assert f"{gs.backend}" == "gs.cpu"
    assert (gs.tc_float, gs.np_float, gs.tc_int, gs.np_int, gs.tc_bool) == (
        torch.float32,
        np.float32,
        torch.int32,
        np.int32,
        torch.bool,
    )
    assert np.finfo(np.float32).eps == gs.EPS
    assert gs.SEED == 3
    assert gs.debug is False
    with gs.logger.timer("nothing"):
        pass
    gs.destroy()
    assert gs.device is None
    assert not gs._initialized


def test_precision_64() -> None:
    gs.init(backend=gs.cpu, precision="64", eps=1e-3, logging_level="warning")
    assert (gs.tc_float, gs.np_float, gs.EPS) == (torch.float64, np.float64, 1e-3)


def test_torch_defaults_stay() -> None:
    gs.init(backend=gs.cpu, precision="64", debug=True, performance_mode=True, use_deterministic_algorithms=True)
    assert torch.get_default_dtype() == torch.float32
    assert torch.get_default_device() == torch.device("cpu")
    assert not torch.are_deterministic_algorithms_enabled()


def test_second_init_names_destroy() -> None:
    gs.init(backend=gs.cpu, logging_level="warning")
    with pytest.raises(gs.GenesisException, match=r"already initialized.*gs.destroy\(\)"):
        gs.init(backend=gs.cpu)
    gs.destroy()
    gs.destroy()
    gs.init(backend=gs.cpu, logging_level="warning")


@pytest.mark.parametrize(
    "arguments",
    [
        {"precision": "16"},
        {"seed": -1},
        {"seed": 1.5},
        {"seed": True},
        {"logging_level": "loud"},
        {"theme": "pink"},
        {"backend": "cpu"},
        {"backend": gs.metal},
        {"device": "tpu"},
        {"device": 1.5},
        {"eps": "a"},
        {"eps": float("nan")},
        {"eps": -1e-3},
        {"eps": None},
    ],
)
def test_bad_arguments_leave_no_session(arguments: dict[str, Any]) -> None:
    with pytest.raises(gs.GenesisException):
        gs.init(**arguments)
    assert not gs._initialized
    gs.init(backend=gs.cpu, logging_level="warning")


def test_unknown_arguments_are_answered_with_the_nearest_name() -> None:
    with pytest.raises(gs.GenesisException, match=r"gs.init has no argument 'bakend'. Did you mean 'backend'\?.*theme"):
        gs.init(bakend=gs.cpu)  # type: ignore[call-arg]
    with pytest.raises(gs.GenesisException, match="gs.init: multiple values for argument 'backend'"):
        gs.init(gs.cpu, backend=gs.cpu)  # type: ignore[misc]
    with pytest.raises(gs.GenesisException, match="gs.init: too many positional arguments"):
        gs.init(*[None] * 12)  # type: ignore[arg-type]
    assert list(inspect.signature(gs.init).parameters)[:2] == ["backend", "precision"]


def test_textures_are_in_the_namespace() -> None:
    assert gs.textures.ColorTexture(color=(1, 0, 0)).color == (1, 0, 0)
    assert "textures" in gs.__all__


def test_seed_seeds_all_generators() -> None:
    draws = []
    for seed in (5, 5, 6):
        gs.init(backend=gs.cpu, seed=seed, logging_level="warning")
        draws.append((random.random(), float(np.random.rand()), float(torch.rand(()))))
        gs.destroy()
    assert draws[0] == draws[1] != draws[2]


def test_no_seed_seeds_nothing() -> None:
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    gs.init(backend=gs.cpu, logging_level="warning")
    assert torch.equal(torch.rand(3), expected)


class FakeScene:
    """A scene that notes its end, or fails in it."""

    def __init__(self, fails: bool = False) -> None:
        self.fails, self.closed = fails, False
        self.generation = runtime.generation
        runtime.register_scene(self)

    def destroy(self) -> None:
        self.closed = True
        if self.fails:
            raise RuntimeError("cannot close")

    def step(self) -> None:
        runtime.require_current(self.generation, "Scene.step")


def test_destroy_closes_scenes() -> None:
    gs.init(backend=gs.cpu, logging_level="critical")
    scenes = [FakeScene(), FakeScene(fails=True), FakeScene()]
    scenes[0].step()
    gs.destroy()
    assert all(scene.closed for scene in scenes)
    gs.init(backend=gs.cpu, logging_level="warning")
    with pytest.raises(gs.GenesisException, match=r"Scene.step.*gs.destroy\(\)"):
        scenes[0].step()


def test_session_is_required() -> None:
    with pytest.raises(gs.GenesisException, match=r"Scene needs a session.*gs.init\(\)"):
        runtime.require_initialized("Scene")
    with pytest.raises(gs.GenesisException, match=r"gs.init\(\)"):
        runtime.warp()


@pytest.mark.parametrize("index", [0, 1])
def test_cuda_session_over_a_fake_driver(index: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    driver = FakeDriver(machine(2), os.environ)
    session = Runtime(lambda: driver)
    session.init(backend=gs.gpu, device=f"cuda:{index}", logging_level="warning")
    assert driver.current() == index
    assert session.device == torch.device("cuda", index)
    assert session.backend is gs.cuda
    assert session.warp_device() == f"cuda:{index}"
    session.require_initialized("Scene")

    monkeypatch.setenv("QD_VISIBLE_DEVICE", "1")
    with pytest.raises(gs.GenesisException, match="QD_VISIBLE_DEVICE was None at gs.init and is '1' now"):
        session.require_initialized("Scene")
    with pytest.raises(gs.GenesisException, match=r"QD_VISIBLE_DEVICE changed since.*gs.destroy\(\)"):
        session.init()
    session.destroy()


def test_a_fork_of_a_cuda_session_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    session = Runtime(lambda: FakeDriver(machine(1), os.environ))
    session.init(backend=gs.gpu, logging_level="warning")
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    with pytest.raises(gs.GenesisException, match="Scene: this process was forked after gs.init chose cuda:0.*spawn"):
        session.require_initialized("Scene")
    session.destroy()


def test_warp_is_initialised_on_the_device_of_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    gs.init(backend=gs.cpu, logging_level="warning")
    wp = runtime.warp()
    assert runtime.warp() is wp
    assert str(wp.get_device()) == runtime.warp_device() == "cpu"
    gs.destroy()
    gs.init(backend=gs.cpu, logging_level="warning")
    assert str(runtime.warp().get_device()) == "cpu"


WARP = """
import os, sys
import pluriverse as gs
from pluriverse.runtime import runtime
gs.init(backend=gs.cpu, logging_level="error")
import warp as wp
start = wp.init
def init():
    os.write(2, b"something else\\n")
    start()
wp.init = init
runtime.warp()
print("after", file=sys.stderr)
"""


def test_warp_does_not_complain_of_a_missing_gpu_on_the_cpu() -> None:
    environ = {**os.environ, "PYTHONPATH": str(Path(gs.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", WARP], env=environ, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "CUDA driver" not in done.stderr
    assert done.stderr.splitlines()[-2:] == ["something else", "after"]


def test_the_choice_is_logged_once_with_the_rank(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("RANK", "3")
    gs.init(backend=gs.cpu)
    assert [record.getMessage() for record in caplog.records] == ["Rank 3 computes on cpu in float32."]


def test_logging_of_the_program_is_left_alone() -> None:
    handlers = list(logging.getLogger().handlers)
    gs.init(backend=gs.cpu, logging_level="warning")
    assert logging.getLogger().handlers == handlers
    assert not logging.getLogger("pluriverse").handlers  # pytest's root handlers print for us


def _init_in_child(inherited: bool, answer: Any) -> None:
    try:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        if inherited:
            with pytest.raises(gs.GenesisException, match="forked"):
                gs.init(backend=gs.gpu)
            gs.destroy()
        gs.init(backend=gs.gpu, seed=1, logging_level="error")
        answer.put((str(gs.device), runtime.seed))
    finally:
        gs.destroy()


@pytest.mark.parametrize(("method", "inherited"), [("spawn", False), ("fork", False), ("fork", True)])
def test_init_in_child_process(method: str, inherited: bool) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system cannot {method}")
    if inherited:
        gs.init(backend=gs.cpu, logging_level="warning")
    context = multiprocessing.get_context(method)
    answer = context.SimpleQueue()
    child = context.Process(target=_init_in_child, args=(inherited, answer))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert answer.get() == ("cpu", 1)
