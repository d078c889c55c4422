"""The smooth stages as compiled float32 and float64 code against MuJoCo in float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mujoco
import numpy as np
import pytest
import torch

from physics_models import load
from physics_reference import (
    DOUBLE,
    SINGLE,
    error,
    mujoco_body_states,
    mujoco_data,
    samples,
    settings_of,
    sorted_forces,
    state_of,
)
from pluriverse.dynamics.bias import bias_forces
from pluriverse.dynamics.body_states import body_states
from pluriverse.dynamics.inertia import mass_matrix
from pluriverse.dynamics.integrate import integrate_positions
from pluriverse.dynamics.tree import Tree
from pluriverse.model import Model
from pluriverse.runtime import runtime
from pluriverse.smooth import smooth_forces
from pluriverse.step import Inputs, StepSettings
from pluriverse.trace.kernel import Kernel
from pluriverse.trace.program import Program
from pluriverse.trace.source import Target, print_source

N = 17
STAGES = ("mass_matrix", "bias", "passive", "actuation", "positions", "bodies")


def trace_stages(model: Model, settings: StepSettings, sizes: dict[str, int]) -> Program:
    """A program that writes each stage to a buffer of its name."""
    run = Program()
    qpos, qvel = run.buffer("qpos"), run.buffer("qvel")
    inputs = Inputs.of(model, run)
    outputs = {name: run.buffer(name) for name in STAGES}
    tree = Tree(model, run)
    q, v = [qpos.read(k) for k in range(model.nq)], [qvel.read(d) for d in range(model.nv)]
    smooth = smooth_forces(tree, q, v, [], inputs, settings)

    def values() -> Iterator[tuple[str, int, Any]]:
        M = mass_matrix(tree, smooth.poses, smooth.inertias, smooth.armature)
        for i in range(model.nv):
            for j in range(i + 1):
                yield "mass_matrix", i * model.nv + j, M.get((i, j), 0.0)
        bias = bias_forces(tree, smooth.poses, smooth.forces)
        for name, by_row in (("bias", bias), ("passive", smooth.passive), ("actuation", smooth.actuation)):
            yield from ((name, row, value) for row, value in by_row.items())
        yield from (("positions", row, x) for row, x in integrate_positions(tree, q, v, settings.dt).items())
        for body, numbers in enumerate(body_states(tree, q, v)):
            yield from (("bodies", 13 * body + k, x) for k, x in enumerate(numbers))

    for name, row, value in values():
        outputs[name].write(row, value)
        sizes[name] = max(sizes.get(name, 0), row + 1)
    return run


def mujoco_stages(mj_model: mujoco.MjModel, sample: Any) -> dict[str, np.ndarray]:
    data, m = mujoco_data(mj_model, sample), mj_model
    full, positions = np.zeros((m.nv, m.nv)), sample.qpos.copy()
    mujoco.mj_fullM(m, data, full)
    mujoco.mj_integratePos(m, positions, sample.qvel, m.opt.timestep)
    return {
        "mass_matrix": np.tril(full).ravel(),
        **sorted_forces(m, data),
        "positions": positions,
        "bodies": mujoco_body_states(m, data),
    }


@pytest.mark.usefixtures("gs_cpu")
@pytest.mark.parametrize(
    ("name", "dtype", "limit"),
    [
        ("joints", torch.float32, SINGLE),
        ("springs", torch.float32, SINGLE),
        ("actuators", torch.float32, SINGLE),
        ("joints", torch.float64, DOUBLE),
    ],
)
def test_stages(name: str, dtype: torch.dtype, limit: float) -> None:
    mj_model, sizes = load(name), dict[str, int]()
    program = trace_stages(Model.from_mujoco(mj_model), settings_of(mj_model), sizes)
    target = Target(cuda=False, double=dtype == torch.float64)
    runtime.warp()
    source = print_source(program, target, f"stages_{name}_{str(dtype)[6:]}")
    kernel = Kernel(source, target, "cpu", runtime.cache_dir() / "kernels")

    batch = [sample.rounded() for sample in samples(mj_model, N)]
    state = state_of(mj_model, batch, dtype)
    arrays = {n: getattr(state, n) for n in source.buffers if n not in STAGES}
    arrays |= {n: torch.zeros(sizes.get(n, 1), 32, dtype=dtype) for n in STAGES}
    kernel.bind(arrays, N, 32).launch()
    for k, sample in enumerate(batch):
        for stage, expected in mujoco_stages(mj_model, sample).items():
            found = arrays[stage][:, k].double().numpy()
            assert error(found.reshape(expected.shape), expected) <= limit, stage
