"""Every model, its step compiled in float32: errors against MuJoCo float64. Writes `docs/results/accuracy.md`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch

from physics_models import load, names
from physics_reference import (
    DOUBLE,
    FloatStep,
    Stage,
    assert_as_exact_as_inputs,
    by_index,
    error,
    full_bias,
    full_matrix,
    kernel_of,
    mujoco_step,
    results,
    samples,
    settings_of,
    sorted_forces,
    stages,
    state_of,
)
from pluriverse.dynamics.spatial import add
from pluriverse.step import solver_path

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("gs_cpu")]

RESULTS = Path(__file__).parents[2] / "docs" / "results" / "accuracy.md"
HEADER = """# Accuracy of the step against MuJoCo float64

Written by `make test-full` (`tests/full/test_every_model.py`), with MuJoCo {version}. The error is
max |x - reference| / max(max |reference|, 1) in SI units, the worst of {count} disturbed states of each model.
MuJoCo solves with tolerance 0 and 100 iterations.

- float64: the package's maths on Python floats. `smooth` is the worst of kinematics, mass matrix, bias, passive and
  actuator forces.
- float32: the compiled CPU kernel; in brackets the error that MuJoCo float64 makes when its inputs are rounded to
  float32. An error above max(1e-5, twice that) fails the run, but for
  `shapes`: a geom 2 m from the origin over a tilted plane.
- `scene_*` are the benchmark scenes, which lie beside the checkout or are left out.

| model | dofs | path | smooth | qacc | qvel | qpos | float32 qacc | qvel | qpos |
|---|---|---|---|---|---|---|---|---|---|
"""
COUNT = 16


@pytest.fixture(scope="module")
def table() -> Iterator[dict[str, list[str]]]:
    """Lines of the result file, by model; written when all models have been seen."""
    lines: dict[str, list[str]] = {}
    yield lines
    if set(lines) == set(every_model()):
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        rows = "".join(f"| {' | '.join(lines[name])} |\n" for name in every_model())
        RESULTS.write_text(HEADER.format(version=mujoco.__version__, count=COUNT) + rows)


def every_model() -> list[str]:
    return [*names("small"), *names("robots"), *names("large")]


def smooth_error(stage: Stage) -> float:
    """The worst of the smooth stages."""
    smooth, data, forces = stage.smooth, stage.data, sorted_forces(stage.mj_model, stage.data)
    inertia = np.zeros((stage.mj_model.nv, stage.mj_model.nv))
    mujoco.mj_fullM(stage.mj_model, data, inertia)
    places = [(add(pose.world, pose.origin), data.xpos[node.bodies[0]]) for node, pose in smooth.poses.items()]
    pairs = [
        *places,
        (full_matrix(stage), inertia),
        (full_bias(stage), forces["bias"]),
        (by_index(smooth.passive), forces["passive"]),
        (by_index(smooth.actuation), forces["actuation"]),
    ]
    return max(error(found, expected) for found, expected in pairs)


@pytest.mark.parametrize("name", every_model())
def test_step(name: str, table: dict[str, list[str]]) -> None:
    mj_model = load(name)
    batch = samples(mj_model, COUNT)
    settings = settings_of(mj_model, tolerance=0.0, iterations=100)
    exact = [mujoco_step(mj_model, sample) for sample in batch]
    smooth = max(smooth_error(stage) for stage in stages(name, COUNT))
    double = np.max([FloatStep(mj_model, s, settings).result().errors(e) for s, e in zip(batch, exact)], axis=0)
    rounded = np.max([mujoco_step(mj_model, s.rounded()).errors(e) for s, e in zip(batch, exact)], axis=0)

    state = state_of(mj_model, batch, torch.float32)
    kernel_of(mj_model, torch.float32).launch(state, 1)
    single = np.max([result.errors(e) for result, e in zip(results(state), exact)], axis=0)
    path = solver_path(FloatStep(mj_model, batch[0]).model, settings)
    numbers = [f"{x:.0e}" for x in (smooth, *double)] + [f"{x:.0e} ({y:.0e})" for x, y in zip(single, rounded)]
    table[name] = [name, str(mj_model.nv), path, *numbers]

    assert smooth <= DOUBLE
    assert double.max() <= DOUBLE
    assert not state.status[0, :COUNT].any()
    assert_as_exact_as_inputs(name, single, rounded)


@pytest.mark.parametrize("name", [name for name in names("robots") if name.startswith(("own", "scene"))])
def test_masked_robots_in_float64(name: str) -> None:
    """The robots' own geoms meet the floor only: sweeps where the model is not small."""
    mj_model = load(name, masked=True)
    batch = samples(mj_model, COUNT)
    state = state_of(mj_model, batch, torch.float64)
    kernel_of(mj_model, torch.float64).launch(state, 1)
    for sample, result in zip(batch, results(state)):
        assert result.errors(mujoco_step(mj_model, sample)).max() <= DOUBLE
