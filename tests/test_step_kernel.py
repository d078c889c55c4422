"""The step as a compiled CPU kernel: accuracy in both precisions, and independence of environments from each other.

Kernels are few here, because each costs seconds; `tests/full` compiles the step of every model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import mujoco
import numpy as np
import pytest
import torch
from physics_models import load
from physics_reference import (
    DOUBLE,
    SINGLE,
    Sample,
    cost_gradient,
    error,
    kernel_of,
    mujoco_body_states,
    mujoco_data,
    mujoco_step,
    results,
    samples,
    settings_of,
    state_of,
    with_signs_of,
)

from pluriverse.errors import GenesisException
from pluriverse.model import Model
from pluriverse.runtime import runtime
from pluriverse.state import STATUS_NON_FINITE, STATUS_SOLVER_LIMIT, State
from pluriverse.step_kernel import KinematicsKernel, lane_count, trace_step
from pluriverse.trace.kernel import Kernel
from pluriverse.trace.source import Target, print_source

pytestmark = pytest.mark.usefixtures("gs_cpu")

CPU = torch.device("cpu")
MODELS = ["four_legs", "round", "shapes", "limits", "actuators"]
N = 33  # environments: two full vectors and one of a third


def stepped(
    name: str, batch: Sequence[Sample], dtype: torch.dtype = torch.float32, launches: Sequence[int] = (1,), **changes: object
) -> State:
    """A batch after some launches of so many steps each."""
    mj_model = load(name)
    state = state_of(mj_model, batch, dtype)
    kernel = kernel_of(mj_model, dtype, settings_of(mj_model, **changes))
    for n_steps in launches:
        kernel.launch(state, n_steps)
    return state


def motion_bits(state: State) -> np.ndarray:
    """(n_envs, nq + 2 nv) the motion of each environment as integers, so that NaN equals itself."""
    motion = state.motion[:, : state.n_envs].contiguous()
    return motion.view(torch.int32 if motion.dtype == torch.float32 else torch.int64).numpy().T


# ---- accuracy --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_float32_is_as_exact_as_its_inputs(name: str) -> None:
    """Errors at most twice those which MuJoCo float64 makes when its inputs are rounded to float32."""
    mj_model = load(name)
    batch = samples(mj_model, N)
    exact = [mujoco_step(mj_model, sample) for sample in batch]
    rounded = np.max([mujoco_step(mj_model, s.rounded()).errors(e) for s, e in zip(batch, exact)], axis=0)
    ours = np.max([r.errors(e) for r, e in zip(results(stepped(name, batch)), exact)], axis=0)
    assert (ours <= np.maximum(SINGLE, 2 * rounded)).all(), f"qacc, qvel, qpos: {ours}, of rounded inputs {rounded}"


@pytest.mark.parametrize("path", ["sweep", "joint_space"])
def test_float64(path: str) -> None:
    mj_model = load("four_legs")
    batch = samples(mj_model, N)
    for sample, result in zip(batch, results(stepped("four_legs", batch, torch.float64, path=path))):
        assert max(result.errors(mujoco_step(mj_model, sample))) <= DOUBLE


@pytest.mark.parametrize("name", ["four_legs", "round", "limits"])
def test_float32_kkt_residual(name: str) -> None:
    """The cost's gradient at the kernel's solution, beside that at the exact solution rounded to float32."""
    mj_model = load(name)
    batch = [sample.rounded() for sample in samples(mj_model, N)]
    for sample, result in zip(batch, results(stepped(name, batch))):
        data, exact = mujoco_data(mj_model, sample), mujoco_step(mj_model, sample).qacc
        scale = max(1.0, np.abs(data.qfrc_smooth).max())
        of_rounding = np.abs(cost_gradient(mj_model, data, np.float32(exact).astype(float))).max()
        assert np.abs(cost_gradient(mj_model, data, result.qacc)).max() <= max(SINGLE * scale, 2 * of_rounding)


@pytest.mark.parametrize("name", ["joints"])
def test_kinematics_kernel(name: str) -> None:
    mj_model = load(name)
    batch = [sample.rounded() for sample in samples(mj_model, N)]
    state = state_of(mj_model, batch, torch.float32)
    poses = torch.zeros(mj_model.nbody, 13, state.n_padded)
    KinematicsKernel(Model.from_mujoco(mj_model), CPU, torch.float32).launch(state, poses)
    for k, sample in enumerate(batch):
        expected = mujoco_body_states(mj_model, mujoco_data(mj_model, sample))
        assert error(with_signs_of(poses[:, :, k].double().numpy(), expected), expected) <= SINGLE
