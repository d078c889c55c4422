"""One case: build the engines, check what they do, time them in turn, and put it all into one record."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import accuracy
import windows
from engines.base import Engine, Steppable
from scenes import Case


@dataclass(frozen=True)
class Settings:
    """What holds for all cases of a run."""

    against: tuple[str, ...]
    device: str  # cpu | cuda
    threads: int
    repeats: int
    controls: str

    def engines(self) -> tuple[str, ...]:
        """Names of the engines to build: on a GPU, pluriverse also captured in a graph."""
        return ("pluriverse", *(("pluriverse_graph",) if self.device == "cuda" else ()), *self.against)


def build_engine(name: str, case: Case, settings: Settings) -> Engine:
    """Builds one engine; nothing of the others is imported."""
    if name in ("pluriverse", "pluriverse_graph"):
        from engines import pluriverse_engine as ours

        return ours.PluriverseEngine(case) if name == "pluriverse" else ours.PluriverseGraphEngine(case)
    if name == "mujoco":
        from engines.mujoco_engine import MujocoEngine

        return MujocoEngine(case, settings.threads)
    from engines.mujoco_warp_engine import MujocoWarpEngine

    return MujocoWarpEngine(case, "cuda:0" if settings.device == "cuda" else "cpu", settings.controls)


def measure(case: Case, settings: Settings, log: Callable[[str], None]) -> dict[str, Any]:
    """The record of a case. An engine that fails or whose workload is invalid has a reason in place of a speed."""
    trajectories = accuracy.Trajectories(case)
    records: dict[str, dict[str, Any]] = {}
    engines: dict[str, Engine] = {}
    for name in settings.engines():
        start = time.perf_counter()
        try:
            engine = build_engine(name, case, settings)
            built = time.perf_counter() - start
            records[name] = {"n_envs": engine.n_envs, "build_seconds": built, "settings": engine.settings}
            records[name] |= examine(engine, trajectories)
            engines[name] = engine
        except Exception as error:  # the others are measured all the same
            records[name] = {"failed": f"{type(error).__name__}: {error}"}
        took = time.perf_counter() - start
        log(f"{case.scene.name}, {case.n_envs} environments, {case.substeps} substeps: {name} ready in {took:.1f} s")
    seconds = windows.time_windows(list(engines.values()), settings.repeats)
    for name, engine in engines.items():
        records[name] |= conclude(engine, seconds[name], records[name].get("distance_from_mujoco"))
    compare(records, settings.against)
    return {
        "scene": case.scene.name + (" masked" if case.masked else ""),
        "n_envs": case.n_envs,
        "substeps": case.substeps,
        "steps": case.steps,
        "solver": solver_settings(case),
        "engines": records,
    }


def examine(engine: Engine, trajectories: accuracy.Trajectories) -> dict[str, Any]:
    """How exact an engine is and on what work."""
    if not isinstance(engine, Steppable):
        return {}
    taken = accuracy.samples(engine)
    return {
        "error": accuracy.errors(engine.case, taken),
        "work": accuracy.work(engine.case, taken),
        "distance_from_mujoco": trajectories.distance(engine),
    }


def conclude(engine: Engine, seconds: list[float], distance: dict[str, float] | None) -> dict[str, Any]:
    """The speed of an engine, or why there is none to print."""
    health = engine.health()
    reason = windows.invalid(engine, health, distance)
    verdict = {"refused": reason} if reason else {"env_steps_per_second": windows.speed(engine, seconds)}
    return {"health": asdict(health), "window_seconds": seconds, **verdict}


def compare(records: dict[str, dict[str, Any]], peers: tuple[str, ...]) -> None:
    """Adds how many times a peer's speed ours is."""
    for name in ("pluriverse", "pluriverse_graph"):
        for peer in peers:
            pair = records.get(name, {}), records.get(peer, {})
            if all("env_steps_per_second" in record for record in pair):
                ours, theirs = ([s / record["n_envs"] for s in record["window_seconds"]] for record in pair)
                pair[0].setdefault("ratio", {})[peer] = windows.ratio(ours, theirs)


def solver_settings(case: Case) -> dict[str, Any]:
    """The settings that the file gives every engine."""
    import mujoco

    option = case.model.opt
    return {
        "timestep": float(option.timestep),
        "integrator": mujoco.mjtIntegrator(option.integrator).name,
        "solver": mujoco.mjtSolver(option.solver).name,
        "cone": mujoco.mjtCone(option.cone).name,
        "iterations": int(option.iterations),
        "ls_iterations": int(option.ls_iterations),
        "tolerance": float(option.tolerance),
        "nv": int(case.model.nv),
        "geoms_that_meet_others": int((case.model.geom_contype > 0).sum()),
    }
