"""On a GPU: no call of the fast path waits for it, and inputs that lie on it mean what they mean on the CPU."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import kernel_doubles
from kernel_doubles import ARM_AND_BALL
from pluriverse.cuda_driver import CudaDriver
from pluriverse.solver.status_monitor import PERIOD
from solver.test_random_streams import plain_philox

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]

N = 6


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    import pluriverse as gs

    gs.init(device=os.environ.get("PLURIVERSE_TEST_DEVICE", "cuda"), seed=5, logging_level="warning")
    kernel_doubles.install(monkeypatch)
    scene = gs.Scene(show_FPS=False)
    scene.add_entity(gs.morphs.MJCF(file=ARM_AND_BALL), name="arm")
    scene.build(n_envs=N)
    yield scene
    gs.destroy()


def test_nothing_waits(scene: Any) -> None:
    arm, device = scene.entities[0], scene.rigid_solver.device
    mask = torch.tensor([True, False] * (N // 2), device=device)
    index = torch.tensor([4, -1], device=device)
    dofs = torch.tensor([6, 10, 11], device=device)
    qpos, values = arm.get_qpos(), torch.zeros(N, 3, device=device)
    arm.get_dofs_velocity(dofs)  # the first use of an index tensor copies it to the host
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(3 * PERIOD):
            scene.step()
        arm.control_dofs_position(values, dofs)
        arm.control_dofs_position(values[:2], dofs, index)
        arm.control_dofs_force(values, dofs, mask)
        arm.control_dofs_force(0.0, dofs)
        arm.control_actuators(values[:, :1].expand(N, 4))
        arm.control_actuators(0.5, [3, 0], mask)
        arm.control_actuators([0.5, 1.0], [3, 0], index)
        arm.control_dofs_force(0.0, dofs)
        arm.control_dofs_velocity(0.5, dofs, mask)
        arm.set_dofs_velocity(None, dofs, index)
        arm.set_dofs_velocity(None, dofs, mask)
        arm.control_dofs_force(values[:3], dofs, mask)
        arm.set_dofs_kp([1.0, 2.0, 3.0], dofs)
        arm.set_qpos(qpos, envs_idx=mask)
        arm.set_qpos(qpos[0], envs_idx=mask)
        arm.set_qpos(qpos[:2], envs_idx=index)
        arm.set_dofs_position(0.1, [4, 8], mask)
        arm.set_pos((0, 0, 1), mask)
        arm.set_quat((1, 0, 0, 0), index)
        arm.set_friction_ratio(0.5, envs_idx=mask)
        scene.sim.set_gravity((0, 0, -1), envs_idx=mask)
        scene.reset(envs_idx=mask)
        scene.reset(envs_idx=index)
        scene.reset(envs_idx=[0, 2, 3])
        scene.reset()
        arm.get_qpos(envs_idx=index)
        arm.get_dofs_control_force()
        scene.rigid_solver.get_error_envs_mask()
        scene.rigid_solver.get_unconverged_envs_mask()
        scene.get_time()
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_device_inputs_mean_the_same(scene: Any) -> None:
    arm, device = scene.entities[0], scene.rigid_solver.device
    mask = torch.tensor([True, False, False, True, True, False])
    full = torch.randn(N, 3)
    for envs in (mask, [0, 3, 4]):
        for value in (full if envs is mask else full[mask], full[mask], full[0]):
            arm.set_dofs_velocity(0.0)
            arm.set_dofs_velocity(value, [6, 10, 11], envs)
            expected = arm.get_dofs_velocity()
            arm.set_dofs_velocity(0.0)
            arm.set_dofs_velocity(
                value.to(device), torch.tensor([6, 10, 11], device=device), torch.as_tensor(envs).to(device)
            )
            torch.testing.assert_close(arm.get_dofs_velocity(), expected)
    torch.testing.assert_close(arm.get_dofs_velocity(envs_idx=mask.to(device)), expected[mask.to(device)])


@pytest.mark.parametrize(
    ("envs_idx", "rows", "message"),
    [([0, N], 2, "index out of range"), ([True, True, False, False, False, False], 3, "as many rows")],
)
def test_bad_device_inputs_raise_later_and_leave_a_usable_process(
    scene: Any, envs_idx: list[int], rows: int, message: str
) -> None:
    arm, device = scene.entities[0], scene.rigid_solver.device
    arm.set_dofs_velocity(torch.zeros(rows, 12, device=device), envs_idx=torch.tensor(envs_idx, device=device))
    torch.cuda.synchronize()

    def run() -> None:
        for _ in range(3 * PERIOD):
            scene.step()
            torch.cuda.synchronize()

    with pytest.raises(Exception, match=message):
        run()
    run()


def test_a_step_can_be_captured(scene: Any) -> None:
    scene.step()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(3 * PERIOD):
            scene.step()
    before = scene.rigid_solver.get_dofs_velocity()
    graph.replay()
    assert (scene.rigid_solver.get_dofs_velocity() - before == 2 * 3 * PERIOD).all()


def test_streams_are_those_of_the_cpu(scene: Any) -> None:
    stream = scene.random_stream("a")
    mask = torch.tensor([True, False] * (N // 2), device=scene.rigid_solver.device)
    torch.cuda.set_sync_debug_mode("error")
    try:
        first, second = stream.uniform(3, envs_idx=mask), stream.uniform(3)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    purpose = zlib.crc32(b"a")
    for env in range(N):
        words = [plain_philox((0, draw, 0, purpose), (5, env))[:3] for draw in (0, 1)]
        expected = torch.tensor([[(word >> 8) * 2.0**-24 for word in row] for row in words])
        drawn = int(env % 2 == 0)  # those in the mask have drawn once before
        assert torch.equal(first[env].cpu(), expected[0])
        assert torch.equal(second[env].cpu(), expected[drawn])


def test_streams_can_be_captured(scene: Any) -> None:
    stream = scene.random_stream("a")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        stream.uniform(2)  # compiles
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=side):
            drawn = stream.uniform(2)
    seen = []
    for _ in range(3):
        graph.replay()
        seen.append(drawn.clone())
    assert not torch.equal(seen[0], seen[1])
    assert not torch.equal(seen[1], seen[2])


def test_a_saved_state_comes_back(scene: Any) -> None:
    solver = scene.rigid_solver
    solver.random_stream("a").uniform()
    saved, before = scene.state_dict(), solver.get_qpos()
    solver.set_qpos(before + 1.0)
    expected = solver.random_stream("a").uniform(2)
    scene.load_state_dict(saved)
    assert torch.equal(solver.get_qpos(), before)
    assert torch.equal(solver.random_stream("a").uniform(2), expected)
    host = {**saved, "envs": {name: tensor.cpu() for name, tensor in saved["envs"].items()}}
    scene.load_state_dict(host)
    assert torch.equal(solver.get_qpos(), before)


def test_other_gpus_are_untouched(scene: Any) -> None:
    contexts = [gpu.context for gpu in CudaDriver().visible()]
    assert contexts == [index == scene.rigid_solver.device.index for index in range(len(contexts))]
