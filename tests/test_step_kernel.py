"""The step as a compiled CPU kernel: accuracy in both precisions, and independence of environments from each other.

Kernels are few here, because each costs seconds; `tests/full` compiles the step of every model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import mujoco
import numpy as np
import pytest
import torch

from physics_models import load
from physics_reference import (
    DOUBLE,
    SINGLE,
    Sample,
    assert_as_exact_as_inputs,
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
)
from pluriverse.model import Model
from pluriverse.runtime import runtime
from pluriverse.solver.state import STATUS_NON_FINITE, STATUS_SOLVER_LIMIT, State
from pluriverse.step_kernel import KinematicsKernel, lane_count, trace_step
from pluriverse.trace.kernel import Kernel
from pluriverse.trace.source import Target, print_source

pytestmark = pytest.mark.usefixtures("gs_cpu")

CPU = torch.device("cpu")
MODELS = [
    "four_legs", "round", "shapes", "limits", "actuators", "four_bar", "tendons", "wrapping", "activations", "fluid",
]  # fmt: skip
N = 33  # environments: two full vectors and one of a third
KKT_SINGLE = 1e-4  # a missed row leaves more than a hundredth


def stepped(
    name: str,
    batch: Sequence[Sample],
    dtype: torch.dtype = torch.float32,
    launches: Sequence[int] = (1,),
    disturb: Callable[[State], None] = lambda state: None,
    **changes: object,
) -> State:
    """A batch after some launches of so many steps each; `disturb` may change its state before."""
    mj_model = load(name)
    state = state_of(mj_model, batch, dtype)
    disturb(state)
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
    assert_as_exact_as_inputs(name, ours, rounded)


@pytest.mark.parametrize("path", ["sweep", "joint_space"])
def test_float64(path: str) -> None:
    mj_model = load("four_legs")
    batch = samples(mj_model, N)
    for sample, result in zip(batch, results(stepped("four_legs", batch, torch.float64, path=path))):
        assert max(result.errors(mujoco_step(mj_model, sample))) <= DOUBLE


@pytest.mark.parametrize("name", ["four_legs", "round", "shapes", "limits"])
def test_float32_kkt_residual(name: str) -> None:
    """The gradient of the primal cost, in parts of the largest force that it balances."""
    mj_model = load(name)
    batch = [sample.rounded() for sample in samples(mj_model, N)]
    for sample, result in zip(batch, results(stepped(name, batch))):
        data, inertial = mujoco_data(mj_model, sample), np.zeros(mj_model.nv)
        mujoco.mj_mulM(mj_model, data, inertial, result.qacc)
        gradient = cost_gradient(mj_model, data, result.qacc)
        largest = max(np.abs(f).max() for f in (inertial, data.qfrc_smooth, data.qfrc_constraint))
        assert np.abs(gradient).max() <= KKT_SINGLE * max(1.0, largest)


def test_kinematics_kernel() -> None:
    mj_model = load("joints")
    batch = [sample.rounded() for sample in samples(mj_model, N)]
    state = state_of(mj_model, batch, torch.float32)
    poses = torch.zeros(mj_model.nbody, 13, state.n_padded)
    KinematicsKernel(Model.from_mujoco(mj_model), CPU, torch.float32).launch(state, poses)
    for k, sample in enumerate(batch):
        expected = mujoco_body_states(mj_model, mujoco_data(mj_model, sample))
        assert error(poses[:, :, k].double().numpy(), expected) <= SINGLE


# ---- environments do not see each other ------------------------------------------------------------------------------

BATCHED = ["four_legs", "round"]  # by sweeps, in joint coordinates


@pytest.mark.parametrize("name", BATCHED)
def test_environment_equals_itself_alone(name: str) -> None:
    batch = samples(load(name), N)
    alone = {k: motion_bits(stepped(name, [batch[k]], launches=[5]))[0] for k in (0, 1, 16, 32)}
    for size in (1, 2, 17, 33):
        motion = motion_bits(stepped(name, batch[:size], launches=[5]))
        for k in [k for k in alone if k < size]:
            assert np.array_equal(motion[k], alone[k]), f"environment {k} of {size}"


@pytest.mark.parametrize("name", BATCHED)
def test_permuted_environments_permute_results(name: str) -> None:
    batch = samples(load(name), N)
    order = np.random.default_rng(0).permutation(N)
    motion = motion_bits(stepped(name, batch, launches=[5]))
    assert np.array_equal(motion_bits(stepped(name, [batch[k] for k in order], launches=[5])), motion[order])


@pytest.mark.parametrize("name", BATCHED)
def test_runs_repeat_bit_for_bit(name: str) -> None:
    batch = samples(load(name), N)
    one, two = (motion_bits(stepped(name, batch, launches=[20])) for _ in range(2))
    assert np.array_equal(one, two)


@pytest.mark.parametrize("name", BATCHED)
def test_four_steps_in_one_launch_or_in_four(name: str) -> None:
    batch = samples(load(name), N)
    one, two = (stepped(name, batch, launches=launches) for launches in ([4], [1, 1, 1, 1]))
    assert np.array_equal(motion_bits(one), motion_bits(two))
    assert torch.equal(one.status, two.status)


# ---- an environment that is not finite -------------------------------------------------------------------------------

BAD = 17


@pytest.mark.parametrize("name", BATCHED)
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1e30])
@pytest.mark.parametrize("field", ["qpos", "qvel"])
def test_bad_state_freezes_its_environment_only(name: str, field: str, value: float) -> None:
    batch = samples(load(name), N)

    def disturb(state: State) -> None:
        getattr(state, field)[-1, BAD] = value

    clean, bad = stepped(name, batch, launches=[3, 2]), stepped(name, batch, launches=[3, 2], disturb=disturb)
    before = state_of(load(name), batch, torch.float32)
    disturb(before)
    others = np.arange(N) != BAD
    assert np.array_equal(motion_bits(bad)[others], motion_bits(clean)[others])
    assert np.array_equal(motion_bits(bad)[BAD], motion_bits(before)[BAD])
    assert not clean.status[0, :N].any()
    assert bad.status[0, :N].tolist() == [STATUS_NON_FINITE if k == BAD else 0 for k in range(N)]


@pytest.mark.parametrize("field", ["control", "gravity"])
def test_bad_input_freezes_its_environment(field: str) -> None:
    batch = samples(load("actuators"), N)

    def disturb(state: State) -> None:
        getattr(state, field)[0, ..., BAD] = float("nan")

    bad = stepped("actuators", batch, disturb=disturb)
    assert bad.status[0, :N].nonzero().flatten().tolist() == [BAD]
    assert np.array_equal(motion_bits(bad)[BAD], motion_bits(state_of(load("actuators"), batch, torch.float32))[BAD])


def test_nan_command_with_a_force_range_is_not_a_command() -> None:
    batch = samples(load("actuators"), 4)

    def disturb(state: State) -> None:
        assert torch.isfinite(state.control[0, 3:, 2]).all()
        state.control[0, 0, 2] = float("nan")

    assert stepped("actuators", batch, disturb=disturb).status[0, :4].tolist() == [0, 0, STATUS_NON_FINITE, 0]


def test_frozen_environment_runs_again_after_a_reset() -> None:
    mj_model = load("four_legs")
    batch = samples(mj_model, N)
    state = state_of(mj_model, batch, torch.float32)
    motion = state.motion.clone()
    kernel = kernel_of(mj_model, torch.float32)
    state.qvel[0, BAD] = float("nan")
    kernel.launch(state, 3)
    state.motion.copy_(motion)
    state.status.zero_()
    kernel.launch(state, 5)
    assert np.array_equal(motion_bits(state), motion_bits(stepped("four_legs", batch, launches=[5])))
    assert not state.status.any()


def test_solver_limit_is_noted_and_does_not_freeze() -> None:
    batch = [replace(s, warmstart=s.warmstart + 1e3) for s in samples(load("four_legs"), N)]
    state = stepped("four_legs", batch, torch.float64, path="sweep", iterations=1, tolerance=0.0)
    noted = state.status[0, :N] == STATUS_SOLVER_LIMIT
    assert noted.any()
    assert not (state.status[0, :N] & STATUS_NON_FINITE).any()
    assert torch.isfinite(state.motion[:, :N]).all()


def test_kernel_steps_the_state_that_it_is_given() -> None:
    mj_model = load("four_legs")
    one, two = (state_of(mj_model, samples(mj_model, 4), torch.float32) for _ in range(2))
    kernel = kernel_of(mj_model, torch.float32)
    kernel.launch(one, 1)
    kernel.launch(two, 1)
    assert np.array_equal(motion_bits(one), motion_bits(two))


# ---- lanes: the CUDA form of code, run as CPU vectors ----------------------------------------------------------------


@pytest.mark.parametrize(("lanes", "integrator"), [(2, "IMPLICITFAST"), (4, "IMPLICITFAST"), (4, "RK4")])
def test_lanes_make_no_difference(lanes: int, integrator: str) -> None:
    mj_model = load("four_legs", integrator=int(getattr(mujoco.mjtIntegrator, f"mjINT_{integrator}")))
    model, batch = Model.from_mujoco(mj_model), samples(mj_model, 9)
    expected = [mujoco_step(mj_model, sample) for sample in batch]
    state = state_of(mj_model, batch, torch.float64)
    state.qpos[-1, 3] = 1e19  # too far, and known to the last limb's lane only: a knee feels no limit
    target = Target(cuda=False, double=True)
    source = print_source(trace_step(model, settings_of(mj_model), lanes), target, f"{integrator}_{lanes}_lanes")
    assert source.envs_per_thread == 1
    runtime.warp()
    kernel = Kernel(source, target, "cpu", runtime.cache_dir() / "kernels")
    arrays = {name: getattr(state, name) for name in (*source.buffers, *source.flags, *source.alarms)}
    kernel.bind(arrays, state.n_envs, state.n_padded).launch(1)
    for k, result in enumerate(results(state)):
        assert k == 3 or max(result.errors(expected[k])) <= DOUBLE
    assert state.status[0, :9].tolist() == [STATUS_NON_FINITE if k == 3 else 0 for k in range(9)]


@pytest.mark.parametrize(("name", "lanes"), [("four_legs", 4), ("round", 1), ("chain", 1), ("gravcomp", 1)])
def test_lane_count_is_a_matter_of_the_model(name: str, lanes: int) -> None:
    assert lane_count(Model.from_mujoco(load(name)), settings_of(load(name))) == lanes
