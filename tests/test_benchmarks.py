"""The benchmark's scripts work, say all that makes a number fair, and refuse a workload that is none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = ROOT / "benchmarks"

MOVING = """
<mujoco model="arm">
  <option timestep="0.005" integrator="implicitfast"/>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 0.05"/>
    <body pos="0 0 0.1">
      <joint name="shoulder" axis="0 1 0" range="-90 90" damping="0.1" armature="0.01"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.05" mass="1"/>
    </body>
  </worldbody>
  <actuator><position joint="shoulder" kp="20" kv="1" ctrlrange="-1 1"/></actuator>
</mujoco>"""

STILL = """
<mujoco model="still">
  <option timestep="0.005" integrator="implicitfast" gravity="0 0 0"/>
  <worldbody><body pos="0 0 1"><joint type="slide"/><geom type="sphere" size="0.1"/></body></worldbody>
</mujoco>"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """One run over a scene that moves and one that does not."""
    folder = tmp_path_factory.mktemp("benchmark")
    for name, text in (("moving", MOVING), ("still", STILL)):
        (folder / f"{name}.xml").write_text(text)
    options = "--scene moving.xml still.xml --mask --envs 16 --steps 8 --substeps 2 --repeats 2 --threads 1"
    arguments = [*options.split(), "--against", "mujoco", "--json", "out.json"]
    command = [sys.executable, str(BENCHMARKS / "run.py"), *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert (folder / "out.json").exists(), run.stderr
    return run, json.loads((folder / "out.json").read_text())


def test_a_result_says_where_and_how_it_was_measured(results):
    _, document = results
    assert document["machine"].keys() >= {"date", "cpu", "cores", "gpu", "python", "versions", "commit"}
    assert document["machine"]["versions"]["mujoco"]
    assert document["command"]["envs"] == "[16]"
    moving = document["results"][0]
    assert moving["scene"] == "moving masked"
    assert (moving["n_envs"], moving["substeps"], moving["steps"]) == (16, 2, 8)
    expected = {"timestep": 0.005, "integrator": "mjINT_IMPLICITFAST", "iterations": 100, "nv": 1}
    assert moving["solver"].items() >= expected.items()


def test_accuracy_stands_beside_speed(results):
    run, document = results
    ours = document["results"][0]["engines"]["pluriverse"]
    assert ours["env_steps_per_second"]["median"] > 0
    assert len(ours["window_seconds"]) == 2
    assert ours["ratio"]["mujoco"].keys() == {"median", "min", "max"}
    for name in ("qacc", "qpos", "qacc_rounded_inputs", "qpos_rounded_inputs"):
        assert 0 <= ours["error"][name]["median"] <= ours["error"][name]["max"] < 1e-4
    assert ours["work"].keys() == {"contacts", "constraint_rows", "solver_iterations"}
    assert ours["distance_from_mujoco"]["at_end"] < 1e-5
    assert ours["health"].items() >= {"non_finite": 0, "overflow": 0}.items()
    assert "moving masked" in run.stdout


def test_a_scene_in_which_nothing_moves_gets_no_speed(results):
    run, document = results
    engines = document["results"][1]["engines"]
    for engine in ("pluriverse", "mujoco"):
        assert "nothing moves" in engines[engine]["refused"]
        assert "env_steps_per_second" not in engines[engine]
    assert run.returncode == 1
    assert "refused: nothing moves" in run.stdout


class FakeEngine:
    """What `windows.invalid` looks at."""

    n_envs = 4

    def __init__(self, moved: float, speed: float) -> None:
        from engines.base import Motion

        start = np.zeros((4, 2))
        self.case = type("Case", (), {"qpos": start})()
        self._motion = Motion(start + moved, np.full((4, 2), speed), np.zeros((4, 2)))

    def motion(self) -> Any:
        return self._motion


@pytest.mark.parametrize(
    ("moved", "speed", "health", "distance", "reason"),
    [
        (1.0, 1.0, (0, 3, 0), 1e-6, None),
        (1.0, 1.0, (2, 0, 0), 1e-6, "2 environments are not finite"),
        (1.0, 1.0, (0, 0, 5), 1e-6, "dropped in 5 environments"),
        (0.0, 1.0, (0, 0, 0), 1e-6, "nothing moves"),
        (1.0, 0.0, (0, 0, 0), 1e-6, "all at rest"),
        (1.0, 1.0, (0, 0, 0), 0.5, "not MuJoCo's physics"),
        (1.0, 1.0, (0, 0, 0), float("nan"), "not MuJoCo's physics"),
    ],
)
def test_invalid_windows_are_refused(monkeypatch, moved, speed, health, distance, reason):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import windows
    from engines.base import Health

    found = windows.invalid(FakeEngine(moved, speed), Health(*health), {"after_first_block": distance})
    assert (found is None) if reason is None else reason in found
