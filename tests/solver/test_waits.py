"""Calls of the training loop: none waits for the device, by a copy to it either, and they launch little."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

import elsewhere
from elsewhere import DEVICE, Guard, Kernels
from kernel_doubles import ARM_AND_BALL

N = 6
SCALAR = [11, 6, 10]  # dofs of hinges and slides, in no order
RUN = slice(10, 12)


@pytest.fixture
def scene(gs_cpu: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Any:
    elsewhere.install(monkeypatch)
    scene = gs_cpu.Scene(show_FPS=False)
    scene.add_entity(gs_cpu.morphs.MJCF(file=ARM_AND_BALL), name="arm")
    scene.build(n_envs=N)
    assert scene.rigid_solver.device == DEVICE
    return scene


def setters(solver: Any) -> dict[str, tuple[Callable[..., None], list[Any], tuple[int, ...]]]:
    """By name: the setter (value, index, envs), the indices to try, and the trailing axes of its values."""
    dofs, scalars, geoms = [None, SCALAR, RUN], [SCALAR, RUN], [None, [3, 1]]

    def pair(value: Any, index: Any, envs: Any) -> None:
        solver.control_dofs_position_velocity(value, value, index, envs)

    def bias(value: Any, index: Any, envs: Any) -> None:
        solver.set_dofs_act_bias(value, value, value, index, envs)

    def limits(value: Any, index: Any, envs: Any) -> None:
        solver.set_dofs_force_range(value, value, index, envs)

    return {
        "qpos": (solver.set_qpos, [None, [12, 7], slice(0, 3)], ()),
        "dofs_position": (solver.set_dofs_position, [*dofs, [4, 8]], ()),
        "dofs_velocity": (solver.set_dofs_velocity, dofs, ()),
        "links_pos": (solver.set_base_links_pos, [None, 0], (3,)),
        "links_quat": (solver.set_base_links_quat, [None, 0], (4,)),
        "geoms_friction": (solver.set_geoms_friction, geoms, ()),
        "geoms_friction_ratio": (solver.set_geoms_friction_ratio, geoms, ()),
        "links_friction_ratio": (solver.set_links_friction_ratio, [None, [2, 0]], ()),
        "position": (solver.control_dofs_position, scalars, ()),
        "velocity": (solver.control_dofs_velocity, scalars, ()),
        "position_velocity": (pair, scalars, ()),
        "force": (solver.control_dofs_force, dofs, ()),
        "kp": (solver.set_dofs_kp, dofs, ()),
        "kv": (solver.set_dofs_kv, dofs, ()),
        "act_gain": (solver.set_dofs_act_gain, dofs, ()),
        "act_bias": (bias, dofs, ()),
        "force_range": (limits, dofs, ()),
    }


def count(solver: Any, name: str, index: Any) -> int:
    """Rows that the index means for that setter."""
    rows = {"qpos": 14, "links_pos": 1, "links_quat": 1, "links_friction_ratio": 4}.get(name, 12)
    rows = solver.n_geoms if name.startswith("geoms") else rows
    return len(np.atleast_1d(np.arange(rows)[slice(None) if index is None else index]))


def environments() -> dict[str, tuple[Any, int]]:
    """Every kind of `envs_idx`, and how many rows a value for it has."""
    mask = torch.tensor([True, False, True, True, False, False])
    return {
        "all": (None, N),
        "int": (2, 1),
        "slice": (slice(1, 4), 3),
        "list": ([0, 2, 3], 3),
        "host mask": (mask, 3),
        "device mask": (mask.to(DEVICE), 3),
        "device mask, a row for each environment": (mask.to(DEVICE), N),
        "device index": (torch.empty(3, dtype=torch.int64, device=DEVICE), 3),
    }


@pytest.mark.parametrize("kind", environments())
def test_no_setter_waits(scene: Any, kind: str) -> None:
    envs, n_rows = environments()[kind]
    solver = scene.rigid_solver
    for name, (setter, indices, trailing) in setters(solver).items():
        for index in indices:
            full = np.full((n_rows, count(solver, name, index), *trailing), 0.5, dtype=np.float32)
            values = [0.5] if not trailing else []
            values += [full[0].tolist(), full, full.astype(np.float64), torch.tensor(full)]
            values += [torch.zeros(full.shape, dtype=dtype, device=DEVICE) for dtype in (torch.float32, torch.float64)]
            with Guard():
                for value in values:
                    setter(value, index, envs)


@pytest.mark.parametrize("kind", environments())
def test_no_reset_command_or_getter_waits(scene: Any, kind: str) -> None:
    envs, n_rows = environments()[kind]
    solver = scene.rigid_solver
    ctrl = torch.zeros(n_rows, 4, device=DEVICE)
    with Guard():
        solver.control_actuators(ctrl, None, envs)
        solver.control_actuators(0.5, [3, 0], envs)
        solver.set_dofs_velocity(None, SCALAR, envs)
        solver.set_gravity((0, 0, -1), envs)
        scene.reset(envs_idx=envs)
        scene.step()
        solver.get_error_envs_mask()
        solver.get_unconverged_envs_mask()
        if not kind.startswith("device mask"):  # its result's size is on the device
            for index in (None, SCALAR, RUN):
                solver.get_dofs_position(index, envs)
                solver.get_dofs_velocity(index, envs)
                solver.get_dofs_acc(index, envs)
                solver.get_dofs_control_force(index, envs)
                solver.get_dofs_force_range(index, envs)
                solver.get_dofs_limit(index, envs)
            solver.get_qpos(None, envs)
            solver.get_links_pos([2, 0], envs)
            solver.get_links_vel(None, envs, ref="link_COM")
            solver.get_geoms_quat(None, envs)
            scene.get_time(envs)
            scene.entities[0].joints[1].get_anchor_axis(envs)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, index, mask: x.__setitem__((slice(None), index), 1.0),
        lambda x, index, mask: x.__setitem__((slice(None), index), torch.ones(())),
        lambda x, index, mask: x[:, mask],
        lambda x, index, mask: x[:, [0, 1]],
        lambda x, index, mask: x[:, torch.tensor([0, 1])],
        lambda x, index, mask: torch.where(mask, 1.0, x),
        lambda x, index, mask: x.copy_(torch.zeros(2, 3)),
        lambda x, index, mask: torch.zeros(2, 3).to(x.device),
        lambda x, index, mask: torch.zeros(2, 3).pin_memory().to(x.device),
        lambda x, index, mask: torch.tensor([1.0], device=x.device),
        lambda x, index, mask: x.new_tensor([1.0]),
        lambda x, index, mask: x[0, 0].item(),
        lambda x, index, mask: bool(mask.any()),
        lambda x, index, mask: mask.nonzero(),
        lambda x, index, mask: x.cpu(),
    ],
)
def test_the_guard_finds(monkeypatch: pytest.MonkeyPatch, call: Callable[..., Any]) -> None:
    elsewhere.install(monkeypatch)
    x, index = torch.zeros(2, 3, device=DEVICE), torch.empty(2, dtype=torch.int64, device=DEVICE)
    mask = torch.empty(3, dtype=torch.bool, device=DEVICE)
    with pytest.raises((AssertionError, RuntimeError, NotImplementedError)), Guard():
        call(x, index, mask)


def test_usual_calls_launch_little(scene: Any) -> None:
    solver, arm = scene.rigid_solver, scene.entities[0]
    qpos, qvel, run = (torch.zeros(N, n, device=DEVICE) for n in (14, 12, 2))
    ctrl = torch.zeros(N, 4, device=DEVICE)
    for call, most in (
        (lambda: solver.control_actuators(ctrl[:, :1], [0]), 2),  # clamped to the actuator's range, then the law
        (lambda: solver.control_actuators(ctrl), 3),  # laws that are no run of rows take a copy more
        (lambda: scene.reset(), 20),
        (lambda: solver.control_dofs_position(run, RUN), 2),  # the target, and the law
        (lambda: arm.control_dofs_velocity(run, RUN), 2),
        (lambda: solver.control_dofs_force(run, RUN), 1),
        (lambda: solver.control_dofs_position(run[:, :1], [6]), 2),
        (lambda: solver.set_qpos(qpos), 3),  # two of them forget the environment's past
        (lambda: arm.set_dofs_velocity(qvel), 3),
        (lambda: arm.get_qpos(), 1),
        (lambda: arm.get_dofs_position(RUN), 1),
        (lambda: arm.get_dofs_velocity(), 1),
        (lambda: arm.get_links_pos(2), 1),
        (lambda: arm.links[2].get_quat(), 1),
    ):
        call()
        with Kernels() as kernels:
            call()
        assert len(kernels.names) <= most, kernels.names
