"""Results as JSON and as a short table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_COLUMNS = (
    ("scene", 24),
    ("envs", 6),
    ("sub", 3),
    ("engine", 17),
    ("M env-steps/s (range)", 25),
    ("times mujoco", 20),
    ("times mujoco_warp", 20),
    ("qacc error med/max", 18),
    ("float32 limit", 16),
    ("contacts", 9),
    ("iter.", 9),
    ("bad", 8),
)


def write_json(path: Path, document: dict[str, Any]) -> None:
    """One document: machine, settings, results."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")


def table(results: list[dict[str, Any]]) -> str:
    """A line for each engine of each case. `bad` counts not finite / unconverged / overflown environments."""
    lines = ["  ".join(f"{name:<{width}}" for name, width in _COLUMNS)]
    for result in results:
        for name, engine in result["engines"].items():
            lines.append(
                "  ".join(f"{cell:<{width}}" for cell, (_, width) in zip(_cells(result, name, engine), _COLUMNS))
            )
        if "failed" in result:
            lines.append(
                f"{result['scene']:24}  {result['n_envs']:<6}  {result['substeps']:<3}  failed: {result['failed']}"
            )
    return "\n".join(line.rstrip() for line in lines)


def _cells(result: dict[str, Any], name: str, engine: dict[str, Any]) -> list[str]:
    cells = [result["scene"], str(engine.get("n_envs", result["n_envs"])), str(result["substeps"]), name]
    if "failed" in engine or "refused" in engine:
        reason = f"failed: {engine['failed']}" if "failed" in engine else f"refused: {engine['refused']}"
        return [*cells, reason]
    speed = engine["env_steps_per_second"]
    cells.append(f"{_millions(speed['median'])} ({_millions(speed['min'])}-{_millions(speed['max'])})")
    for peer in ("mujoco", "mujoco_warp"):
        ratio = engine.get("ratio", {}).get(peer)
        cells.append(f"{ratio['median']:.1f} ({ratio['min']:.1f}-{ratio['max']:.1f})" if ratio else "")
    accuracy, work, health = engine.get("error"), engine.get("work"), engine["health"]
    cells += [_pair(accuracy["qacc"]), _pair(accuracy["qacc_rounded_inputs"])] if accuracy else ["", ""]
    cells += (
        [f"{work[k]['mean']:.1f}/{work[k]['max']:.0f}" for k in ("contacts", "solver_iterations")] if work else ["", ""]
    )
    counts = (health["non_finite"], health["unconverged"], health["overflow"])
    return [*cells, "/".join("?" if count is None else str(count) for count in counts)]


def _millions(rate: float) -> str:
    return f"{rate / 1e6:.3g}"


def _pair(error: dict[str, float]) -> str:
    return f"{error['median']:.1e}/{error['max']:.1e}"
