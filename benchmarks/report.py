"""Results as JSON and as a short table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_COLUMNS = (
    ("scene", 25),
    ("envs", 5),
    ("sub", 3),
    ("engine", 16),
    ("M env-steps/s (range)", 22),
    ("qacc error med/max", 18),
    ("rounded inputs", 15),
    ("contacts", 8),
    ("iter.", 7),
    ("bad", 5),
    ("times", 5),
)
_LEGEND = (
    "M env-steps/s: physics steps of all environments, median (least-greatest) of the windows. qacc error: of one "
    "scene.step() against MuJoCo float64.\nrounded inputs: MuJoCo's own, inputs rounded to float32. contacts, iter.: "
    "MuJoCo's in the same states, mean/max.\nbad: environments not finite/unconverged/overflown. times: how many times "
    "the peer's speed, ratio of medians (least-greatest round)."
)


def write_json(path: Path, document: dict[str, Any]) -> None:
    """One document: machine, settings, results."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")


def table(results: list[dict[str, Any]]) -> str:
    """A line for each engine of each case."""
    rows = [[name for name, _ in _COLUMNS]]
    rows += [_cells(result, name, engine) for result in results for name, engine in result["engines"].items()]
    widths = [width for _, width in _COLUMNS]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    return "\n".join([_LEGEND, *lines])


def _cells(result: dict[str, Any], name: str, engine: dict[str, Any]) -> list[str]:
    cells = [result["scene"], str(engine.get("n_envs", result["n_envs"])), str(result["substeps"]), name]
    for trouble in ("failed", "refused"):
        if trouble in engine:
            return [*cells, f"{trouble}: {engine[trouble]}"]
    speed, error, work = engine["env_steps_per_second"], engine.get("error"), engine.get("work")
    cells.append(f"{_millions(speed['median'])} ({_millions(speed['min'])}-{_millions(speed['max'])})")
    cells += [_errors(error["qacc"]), _errors(error["qacc_rounded_inputs"])] if error else ["", ""]
    for count in ("contacts", "solver_iterations"):
        cells.append(f"{work[count]['mean']:.1f}/{work[count]['max']:.0f}" if work else "")
    health = (engine["health"][kind] for kind in ("non_finite", "unconverged", "overflow"))
    cells.append("/".join("?" if number is None else str(number) for number in health))
    ratios = engine.get("ratio", {}).items()
    return [*cells, ", ".join(f"{peer} {r['median']:.1f} ({r['min']:.1f}-{r['max']:.1f})" for peer, r in ratios)]


def _millions(rate: float) -> str:
    return f"{rate / 1e6:.3g}"


def _errors(error: dict[str, float]) -> str:
    return f"{error['median']:.1e}/{error['max']:.1e}"
