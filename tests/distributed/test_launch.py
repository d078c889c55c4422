"""`launch` on the CPU: real processes, their surroundings, results and faults; none is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import launch_tasks
import psutil
import pytest
import torch

import pluriverse as gs
from pluriverse.distributed.launch import launch

MODULE = sys.modules[launch.__module__]


def running(pids: Sequence[int]) -> list[int]:
    """Those of the processes that still run; one that has ended and waits to be collected does not."""
    return [pid for pid in pids if psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE]


def assert_all_end(pids: Sequence[int], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while running(pids):
        assert time.monotonic() < deadline, f"{len(running(pids))} processes still run"
        time.sleep(0.05)


@pytest.fixture
def surroundings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A caller that is itself a rank and pins its device; checked to be as it was after the test."""
    for name, value in {
        "RANK": "7",
        "WORLD_SIZE": "9",
        "QD_VISIBLE_DEVICE": "nonsense on the CPU",
        "EGL_DEVICE_ID": "1",
        "TORCHELASTIC_RESTART_COUNT": "5",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("PYTEST_CURRENT_TEST")  # pytest changes it
    variables, cores, children = dict(os.environ), os.sched_getaffinity(0), psutil.Process().children()
    yield
    os.environ.pop("PYTEST_CURRENT_TEST")
    assert dict(os.environ) == variables
    assert os.sched_getaffinity(0) == cores
    left = [child for child in psutil.Process().children() if child not in children]
    assert all("resource_tracker" in " ".join(child.cmdline()) for child in left)  # Python's own


@pytest.mark.usefixtures("surroundings")
def test_every_rank_has_its_own_surroundings() -> None:
    results = launch(launch_tasks.facts, "cpu:2", args=(torch.tensor(10),))
    own = sorted(os.sched_getaffinity(0))
    for rank, found in enumerate(results):
        assert (found["rank"].rank, found["rank"].world_size, found["rank"].local_rank) == (rank, 2, rank)
        assert found["rank"].agent_store
        assert found["rank"].restarts == 0
        assert found["variables"] == {
            "RANK": str(rank),
            "WORLD_SIZE": "2",
            "LOCAL_RANK": str(rank),
            "LOCAL_WORLD_SIZE": "2",
            "CUDA_VISIBLE_DEVICES": "",
            "OMP_NUM_THREADS": str(len(found["cores"])),
            "QD_VISIBLE_DEVICE": None,
            "TORCHELASTIC_RESTART_COUNT": None,
        }
        assert found["threads"] == len(found["cores"])
        assert found["total"].tolist() == [21]
    cores = [set(found["cores"]) for found in results]
    assert cores[0] | cores[1] == set(own)
    assert len(own) == 1 or not cores[0] & cores[1]
    assert not running([found["pid"] for found in results])


@pytest.mark.usefixtures("surroundings")
def test_tasks_go_to_whoever_is_free(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    caplog.set_level("INFO", "pluriverse")
    results = launch(launch_tasks.square, "cpu:2", tasks=iter(range(12)), args=(str(tmp_path), 12))
    assert [value for value, _ in results] == [k * k for k in range(12)]
    first, *others = (rank for _, rank in results)
    assert set(others) == {1 - first}
    lines = [record.getMessage() for record in caplog.records if "tasks done" in record.getMessage()]
    assert lines[-1].startswith("launch: 12 of 12 tasks done, 2 processes, ")
    assert len(lines) < 6  # they are two seconds apart


@pytest.mark.usefixtures("surroundings")
@pytest.mark.parametrize(
    ("task", "words"),
    [
        ("raise", ["ValueError: a wrong number", "in fail_on_one", "and more", "Traceback"]),
        ("kill", ["killed by signal 9 (SIGKILL)", "memory"]),
    ],
)
def test_a_fault_ends_all(task: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODULE, "END_SECONDS", 0.5)
    arguments = {"args": (task, str(tmp_path))} if task == "raise" else {"tasks": [task] * 3, "args": (str(tmp_path),)}
    with pytest.raises(gs.GenesisException) as error:
        launch(launch_tasks.fail_on_one, "cpu:2", **arguments)
    for word in ("rank 1 of 2 (cpu, 1 core", "The other processes were ended.", *words):
        assert word in str(error.value)
    assert ("in task " in str(error.value)) == ("tasks" in arguments)
    pids = launch_tasks.noted_pids(tmp_path, 2)
    assert len(pids) == 4
    assert_all_end(pids, seconds=2)


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ("unpicklable", ["in task 2", "type lock", "cannot be sent", "Return numbers"]),
        ("_exit", ["in task 2", "ended with exit code 0"]),
        ("exit 3", ["in task 2", "SystemExit: 3"]),
    ],
)
def test_no_result(task: str, words: list[str]) -> None:
    with pytest.raises(gs.GenesisException) as error:
        launch(launch_tasks.odd_ends, "cpu", tasks=["fine", "exit 0", task], progress=False)
    for word in words:
        assert word in str(error.value)
    assert "other processes" not in str(error.value)


def test_what_cannot_be_sent_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODULE, "_Job", None)

    def nested(rank: gs.distributed.Rank) -> None:
        pass

    for fn in (lambda rank: None, nested):
        with pytest.raises(gs.GenesisException, match="top level of a module or script, no lambda"):
            launch(fn, "cpu:2")
    with pytest.raises(gs.GenesisException, match="fn='sin' cannot be called"):
        launch("sin", "cpu:2")
    with pytest.raises(gs.GenesisException, match="args cannot be sent"):
        launch(launch_tasks.facts, "cpu:2", args=(threading.Lock(),))
    with pytest.raises(gs.GenesisException, match="task 1 cannot be sent"):
        launch(launch_tasks.square, "cpu:2", tasks=[0, threading.Lock()])
    with pytest.raises(gs.GenesisException, match="'cuda:0' is no device id"):
        launch(launch_tasks.facts, "cuda:0")
    assert launch(launch_tasks.square, "cpu:2", tasks=[]) == []


SCRIPT = """
import sys
from launch_tasks import note_pids
from pluriverse.distributed.launch import launch

class Found:
    pass

def of_the_script(rank, folder):
    note_pids(rank, folder)
    if len(sys.argv) == 2:
        return Found()
    import time
    time.sleep(300)

if __name__ == "__main__":
    print([type(found) is Found for found in launch(of_the_script, "cpu", args=(sys.argv[1],))])
"""


def start_script(tmp_path: Path, *arguments: str) -> subprocess.Popen:
    (tmp_path / "script.py").write_text(SCRIPT)
    path = os.pathsep.join((str(Path(launch_tasks.__file__).parent), str(Path(gs.__file__).parents[1])))
    return subprocess.Popen(
        [sys.executable, str(tmp_path / "script.py"), str(tmp_path), *arguments],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_script_launches_its_own_function(tmp_path: Path) -> None:
    out, err = start_script(tmp_path).communicate(timeout=60)
    assert out == "[True]\n", err
    assert "[pluriverse] launch: 1 of 1 ranks done" in err
    assert_all_end(launch_tasks.noted_pids(tmp_path, 1), seconds=2)  # what it started has no place to stay


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_the_end_of_the_parent_ends_all(number: int, tmp_path: Path) -> None:
    script = start_script(tmp_path, "stay")
    pids = launch_tasks.noted_pids(tmp_path, 1)
    assert len(running(pids)) == 2
    script.send_signal(number)
    _, err = script.communicate(timeout=60)
    assert_all_end(pids, seconds=10)
    assert ("KeyboardInterrupt" in err) == (number == signal.SIGINT)
