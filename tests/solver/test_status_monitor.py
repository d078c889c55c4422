"""Trouble in an environment is told once, by number, a few steps later; strict raises; a fault of a call raises."""

from __future__ import annotations

import logging
from types import ModuleType
from typing import Any

import pytest
import torch

import kernel_doubles
from pluriverse.solver.indexing import FAULT_COUNT, FAULT_INDEX
from pluriverse.solver.state import STATUS_CONTACT_OVERFLOW, STATUS_NON_FINITE, STATUS_SOLVER_LIMIT
from pluriverse.solver.status_monitor import PERIOD
from pluriverse.status_bits import BITS

WANTED = 1000  # places for contacts in 16 environments


class FailingStep(kernel_doubles.StepDouble):
    """Sets status bits in some environments: {environment: bits}."""

    trouble: dict[int, int]

    def launch(self, state: Any, n_steps: int) -> None:
        for env, bits in self.trouble.items():
            state.status[0, env] |= bits
            raised = [WANTED if bit == STATUS_CONTACT_OVERFLOW else 1 for bit in BITS]
            state.status_alarm |= torch.tensor([x * (bits & bit > 0) for x, bit in zip(raised, BITS)])


@pytest.fixture
def make(gs_cpu: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Any:
    kernel_doubles.install(monkeypatch)
    monkeypatch.setattr("pluriverse.solver.rigid_solver.StepKernel", FailingStep)

    def build(strict: bool = False) -> Any:
        FailingStep.trouble = {}
        scene = gs_cpu.Scene(rigid_options=gs_cpu.options.RigidOptions(strict=strict), show_FPS=False)
        scene.add_entity(gs_cpu.morphs.Sphere())
        scene.build(n_envs=20)
        return scene

    return build


def run(scene: Any, steps: int) -> None:
    for _ in range(steps):
        scene.step()


def test_healthy_environments_say_nothing(make: Any, caplog: pytest.LogCaptureFixture) -> None:
    run(make(), 3 * PERIOD)
    assert "environments" not in caplog.text


def test_each_kind_of_trouble_is_said_once(make: Any, caplog: pytest.LogCaptureFixture) -> None:
    scene = make()
    FailingStep.trouble = {3: STATUS_SOLVER_LIMIT, 7: STATUS_SOLVER_LIMIT}
    with caplog.at_level(logging.WARNING, logger="pluriverse"):
        run(scene, 3 * PERIOD)
        assert caplog.text.count("2 of 20 environments (3, 7) stopped the constraint solver") == 1
        FailingStep.trouble[17] = STATUS_NON_FINITE  # a smaller number than the bit that is known already
        run(scene, 3 * PERIOD)
        assert caplog.text.count("1 of 20 environments (17) met a NaN or an infinity") == 1
        FailingStep.trouble[4] = STATUS_CONTACT_OVERFLOW
        run(scene, 3 * PERIOD)
        assert caplog.text.count("1 of 20 environments (4) had more contacts than there is room for") == 1
        assert "max_contacts=79" in caplog.text  # 1000 / 16 and a quarter more
    assert scene.rigid_solver.get_error_envs_mask().nonzero().flatten().tolist() == [17]
    FailingStep.trouble = {}
    scene.reset(envs_idx=scene.rigid_solver.get_error_envs_mask())
    assert not scene.rigid_solver.get_error_envs_mask().any()


def test_trouble_is_news_after_a_full_reset(make: Any, caplog: pytest.LogCaptureFixture) -> None:
    scene = make()
    FailingStep.trouble = {1: STATUS_NON_FINITE}
    with caplog.at_level(logging.WARNING, logger="pluriverse"):
        run(scene, PERIOD)
        scene.reset()
        run(scene, PERIOD)
    assert caplog.text.count("met a NaN") == 2


def test_a_setter_unfreezes(make: Any) -> None:
    scene = make()
    FailingStep.trouble = {1: STATUS_NON_FINITE, 2: STATUS_NON_FINITE}
    scene.step()
    scene.entities[0].set_pos((0, 0, 1), envs_idx=[2])
    assert scene.rigid_solver.get_error_envs_mask().nonzero().flatten().tolist() == [1]


def test_strict_raises_and_goes_on_after_a_reset(make: Any) -> None:
    scene = make(strict=True)
    FailingStep.trouble = dict.fromkeys(range(12), STATUS_NON_FINITE)
    with pytest.raises(
        Exception, match=r"strict=True: 12 of 20 environments \(0, 1, 2, 3, 4, 5, 6, 7, ...\) met a NaN"
    ):
        run(scene, PERIOD)
    FailingStep.trouble = {}
    scene.reset()
    run(scene, 2 * PERIOD)


@pytest.mark.parametrize(("fault", "message"), [(FAULT_INDEX, "index out of range"), (FAULT_COUNT, "as many rows")])
def test_faults_of_calls_on_the_device_raise(make: Any, fault: int, message: str) -> None:
    scene = make()
    scene.rigid_solver.every_env.faults[fault] = 1  # as a kernel on a device would
    with pytest.raises(Exception, match=f"In an earlier call with an envs_idx on the GPU .*{message}"):
        run(scene, PERIOD)
    run(scene, PERIOD)
