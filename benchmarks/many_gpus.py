"""Everything that several GPUs of one machine are to be measured for, in one go: checks, then scaling, then a page.

    python benchmarks/many_gpus.py --gpus 2 --scenes FOLDER

FOLDER has franka.xml and quad.xml; without it the package's own models are measured. Writes many_gpus.json and
two_gpus.md (four_gpus.md ...) into the folder --out.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import report
import scaling

ROOT = Path(__file__).resolve().parents[1]
NUMBERS = {1: "one_gpu", 2: "two_gpus", 4: "four_gpus", 8: "eight_gpus"}


def main() -> int:
    """0 if every check has passed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--scenes", type=Path, help="folder of franka.xml and quad.xml")
    parser.add_argument("--rounds", default="1")
    parser.add_argument("--out", type=Path, default=Path())
    options = parser.parse_args()
    names = [str(options.scenes / name) for name in ("franka.xml", "quad.xml")] if options.scenes else ["go2"]
    with tempfile.TemporaryDirectory() as folder:
        checks, scaled = Path(folder) / "checks.json", Path(folder) / "scaling.json"
        count = str(options.gpus)
        script = ROOT / "tests" / "device_manual" / "several_gpus.py"
        status = subprocess.run([sys.executable, str(script), "--gpus", count, "--json", str(checks)]).returncode
        ranks = sorted({1, options.gpus})
        command = [sys.executable, scaling.__file__, "--scene", *names, "--ranks", *map(str, ranks)]
        command += ["--rounds", options.rounds, "--json", str(scaled)]
        status |= subprocess.run(command).returncode
        document = {"checks": json.loads(checks.read_text()), "scaling": json.loads(scaled.read_text())}
    report.write_json(options.out / "many_gpus.json", document)
    page = options.out / f"{NUMBERS.get(options.gpus, f'{options.gpus}_gpus')}.md"
    page.write_text(text(options.gpus, document))
    print(f"wrote {page}")
    return status


def text(gpus: int, document: dict[str, Any]) -> str:
    """The page."""
    facts = document["scaling"]["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items() if version)
    lines = [
        f"# {gpus} GPUs of one machine, {facts['date'][:10]}",
        "",
        f"{facts['gpu']['name']}, {facts['cores']} cores, {versions}. Made by `benchmarks/many_gpus.py --gpus {gpus}`.",
        "",
        "## Scaling",
        "",
        "```",
        scaling.table(document["scaling"]["results"]),
        "```",
        "",
        "## Checks",
        "",
        "Several jobs at a time: the seconds are those of a busy machine, process start and compiling included.",
        "",
        "| check | seconds | says |",
        "|---|---|---|",
    ]
    for check in document["checks"]["checks"]:
        says = check["says"].replace("|", "/").replace("\n", " ")
        name = check["check"] if check["passed"] else f"**FAILED** {check['check']}"
        lines.append(f"| {name} | {check['seconds']:.0f} | {says} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
