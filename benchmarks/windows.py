"""Timed windows of several engines, interleaved, and the refusal of windows in which nothing worth timing happened."""

from __future__ import annotations

import gc
import time
from typing import Any

import numpy as np

from engines.base import Engine, Health

STILL = 1e-3  # mean speed of the fastest dof below which environments count as at rest [m/s or rad/s]
UNMOVED = 1e-3  # distance from the start below which an environment has not moved [m or rad]


def time_windows(engines: list[Engine], repeats: int) -> dict[str, list[float]]:
    """Seconds of each window of each engine: A B C A B C ..., after one window of each that does not count."""
    seconds: dict[str, list[float]] = {engine.name: [] for engine in engines}
    gc.collect()
    gc.disable()
    try:
        for repeat in range(repeats + 1):
            for engine in engines:
                took = _window(engine)
                if repeat:
                    seconds[engine.name].append(took)
    finally:
        gc.enable()
    return seconds


def _window(engine: Engine) -> float:
    engine.restart()
    engine.wait()
    start = time.perf_counter()
    engine.run()
    engine.wait()
    return time.perf_counter() - start


def invalid(engine: Engine, health: Health, distance: dict[str, float] | None) -> str | None:
    """Why the last window of an engine is no workload to print a speed of; None if it is one.

    distance: from MuJoCo's own trajectories, where it has been measured.
    """
    motion, start = engine.motion(), engine.case.qpos[: engine.n_envs]
    if health.non_finite:
        return f"{health.non_finite} environments are not finite"
    if health.overflow:
        return f"contacts or constraints were dropped in {health.overflow} environments"
    moved = float((np.abs(motion.qpos - start).max(1) > UNMOVED).mean())
    if moved < 0.5:
        return f"nothing moves: {1 - moved:.0%} of the environments are where they started"
    speed = float(np.abs(motion.qvel).max(1).mean())
    if speed < STILL:
        return f"all at rest: the mean speed is {speed:.1e}"
    if distance is not None and not distance["after_first_block"] < 1e-2:
        return f"not MuJoCo's physics: {distance['after_first_block']:.1e} away from it after the first block"
    return None


def speed(engine: Engine, seconds: list[float]) -> dict[str, Any]:
    """Physics steps of all environments per second."""
    rates = [engine.n_envs * engine.case.steps / s for s in seconds]
    return {"median": float(np.median(rates)), "min": min(rates), "max": max(rates)}


def ratio(ours: list[float], theirs: list[float]) -> dict[str, float]:
    """Of two rates, given in each round by seconds per environment: ratio of medians, least and greatest of a round."""
    rounds = [b / a for a, b in zip(ours, theirs)]
    return {"median": float(np.median(theirs) / np.median(ours)), "min": min(rounds), "max": max(rounds)}
