"""The command `pluriverse`: what it says, and a script that it runs on every rank."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import pluriverse as gs
from pluriverse import cli

SCRIPT = """
import json, os, sys
import beside_the_script

class Pickled:
    pass

if __name__ == "__main__":
    import pickle
    pickle.loads(pickle.dumps(Pickled()))
    rank = int(os.environ["RANK"])
    facts = {"rank": rank, "argv": sys.argv, "file": __file__, "folder": sys.path[0], "found": beside_the_script.FOUND}
    with open(f"facts{rank}.json", "w") as file:
        json.dump(facts, file)
    if "--fail" in sys.argv and rank == 1:
        raise ValueError("this rank fails")
    sys.exit(0)
"""


def command(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess:
    environ = {**os.environ, "PYTHONPATH": str(Path(gs.__file__).parents[1])}
    line = [sys.executable, "-m", "pluriverse", *arguments]
    return subprocess.run(line, env=environ, cwd=cwd, capture_output=True, text=True, timeout=120)


@pytest.fixture
def script(tmp_path: Path) -> str:
    folder = tmp_path / "scripts"
    folder.mkdir()
    (folder / "beside_the_script.py").write_text("FOUND = 1\n")
    (folder / "rollouts.py").write_text(SCRIPT)
    return os.path.join("scripts", "rollouts.py")


def facts(folder: Path, rank: int) -> dict:
    return json.loads((folder / f"facts{rank}.json").read_text())


def test_launch_runs_a_script_as_python_does(script: str, tmp_path: Path) -> None:
    done = command("launch", "--devices", "cpu:2", script, "--devices", "9", "-x", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "launch: 2 of 2 ranks done" in done.stderr
    for rank in range(2):
        assert facts(tmp_path, rank) == {
            "rank": rank,
            "argv": [script, "--devices", "9", "-x"],
            "file": script,
            "folder": str(tmp_path / "scripts"),
            "found": 1,
        }


def test_launch_shows_what_failed(
    script: str, tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["launch", "--devices=cpu", "--per-device=2", script, "--fail"]) == 1
    said = capsys.readouterr().err
    assert "pluriverse: launch: rank 1 of 2 (cpu, 1 core" in said
    assert "failed: ValueError: this rank fails" in said
    assert "rollouts.py" in said.split("Traceback (most recent call last):")[1]
    assert said.count("Traceback") == 1  # none of the parent


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["launch", "nowhere.py"], ["no file 'nowhere.py'", "Python script"]),
        (["launch", "--devices", "cuda:0", __file__], ["'cuda:0' is no device id", "'0,2'"]),
        (["launch", "--per-device", "0", __file__], ["per_device=0", "at least 1"]),
    ],
)
def test_errors_without_a_traceback(arguments: list[str], words: list[str], capsys: pytest.CaptureFixture) -> None:
    assert cli.main(arguments) == 1
    said = capsys.readouterr().err
    assert said.startswith("pluriverse: ")
    for word in words:
        assert word in said


def test_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("pluriverse.distributed.doctor")
    module.doctor = lambda: 3  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert cli.main(["doctor"]) == 3


def test_help_and_version(capsys: pytest.CaptureFixture) -> None:
    for arguments in (["--help"], ["launch", "--help"], ["--version"]):
        with pytest.raises(SystemExit) as end:
            cli.main(arguments)
        assert end.value.code == 0
    said = capsys.readouterr().out
    assert f"pluriverse {gs.__version__}" in said
    for word in ("examples:", "doctor", "torchrun", "GPU-<uuid>", "--per-device K", "cpu:4"):
        assert word in said
    assert cli.main([]) == 2
    assert "examples:" in capsys.readouterr().out


def test_help_loads_nothing_that_the_package_does_not() -> None:
    code = (
        "import pluriverse, sys; before = set(sys.modules)\n"
        "from pluriverse import cli\n"
        "try: cli.main(['--help'])\n"
        "except SystemExit: print(sorted(set(sys.modules) - before - set(sys.stdlib_module_names)), file=sys.stderr)"
    )
    environ = {**os.environ, "PYTHONPATH": str(Path(gs.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, timeout=60)
    assert done.stderr.strip() == "['pluriverse.cli']"


def test_the_command_is_declared() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"pluriverse": "pluriverse.cli:main"}
