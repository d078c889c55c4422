"""RolloutPool on a local Ray: where its workers are, what comes back, and what becomes of faults."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import psutil
import pytest
import ray_workers
import torch

import pluriverse as gs
from pluriverse.distributed.ray import RolloutPool

ray = pytest.importorskip("ray")

FIRST, SECOND = "5", "GPU-1111"  # the cluster's GPUs; nobody looks for them


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """A Ray of two cores and two GPUs that are there in name only, started by a process that is itself a rank."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_VISIBLE_DEVICES", f"{FIRST},{SECOND}")
        patch.setenv("RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES", "1")
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        for name in (*ray_workers.NAMES[:-1], *ray_workers.FOREIGN):
            patch.setenv(name, "7")
        before = set(psutil.Process().children(recursive=True))
        ray.init(
            num_cpus=2,
            num_gpus=2,
            include_dashboard=False,
            log_to_driver=False,
            object_store_memory=80 * 2**20,
        )
        started = set(psutil.Process().children(recursive=True)) - before
        assert started
        yield
        started |= set(psutil.Process().children(recursive=True)) - before
        ray.shutdown()
        _, left = psutil.wait_procs(started, timeout=20)
        assert not left


@pytest.mark.usefixtures("cluster")
def test_workers_have_scenes_of_their_own(gs_cpu: ModuleType) -> None:
    here = ray_workers.Falls(gs.distributed.Rank(), 2)
    tasks = [torch.tensor([k, k + 0.5]) for k in range(1, 7)]
    workers = {}
    with RolloutPool(ray_workers.FallsWithFacts, 2, num_gpus=0, args=(2,)) as pool:
        deadline = time.monotonic() + 60
        while len(workers) < 2 and time.monotonic() < deadline:  # until each has had a task
            for number, (heights, facts) in pool.map(tasks):
                assert torch.equal(heights, here.rollout(tasks[number]))
                workers[facts["asked"].rank] = facts
    for number, facts in workers.items():
        assert facts["device"] == facts["set_up"].device == "cpu"
        assert (facts["set_up"].rank, facts["set_up"].world_size, facts["set_up"].seed) == (number, 2, 3)
    assert workers[0]["draw"] != workers[1]["draw"]


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(("num_gpus", "masks"), [(None, [FIRST, SECOND]), (0, ["", ""])])
def test_a_worker_sees_the_gpus_that_ray_gave_it(num_gpus: int | None, masks: list[str]) -> None:
    with RolloutPool(ray_workers.Surroundings, 2, num_gpus=num_gpus) as pool:
        ranks = {}
        deadline = time.monotonic() + 60
        while len(ranks) < 2 and time.monotonic() < deadline:  # until each has had a task
            ranks |= {found["RANK"]: found for _, found in pool.map(range(4))}
    assert sorted(found["CUDA_VISIBLE_DEVICES"] for found in ranks.values()) == masks
    for rank in range(2):
        expected = dict(zip(ray_workers.NAMES[:4], (str(rank), "2", "0", "1")))
        assert expected.items() <= ranks[str(rank)].items()
        assert all(ranks[str(rank)][name] is None for name in ray_workers.FOREIGN)


@pytest.mark.usefixtures("cluster")
def test_a_lost_worker_is_replaced(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with RolloutPool(ray_workers.Faulty, 2, num_gpus=0, args=(tmp_path,), restarts=1) as pool:
        tasks = [(k, "kill once" if k in (1, 4) else "") for k in range(6)]
        assert dict(pool.map(tasks)) == {k: k * k for k in range(6)}
        attempts = [len(set((tmp_path / f"task{k}").read_text().split())) for k in range(6)]
        assert attempts == [1, 2, 1, 1, 2, 1]
        lines = sorted(record.getMessage() for record in caplog.records if "was lost, once" in record.getMessage())
        assert [line[: line.index(" in worker")] for line in lines] == ["RolloutPool: task 1", "RolloutPool: task 4"]
        with pytest.raises(gs.GenesisException) as error:
            list(pool.map([(6, ""), (7, "kill")]))
    pid = (tmp_path / "task7").read_text().split()[-1]
    for words in ("task 1 in worker", f"pid {pid} on ", "was lost 2 times, and restarts=1", "process has died"):
        assert words in str(error.value)
    with pytest.raises(gs.GenesisException, match="the pool is closed"):
        pool.map([])


@pytest.mark.usefixtures("cluster")
def test_an_exception_is_shown_and_not_tried_again(tmp_path: Path) -> None:
    with RolloutPool(ray_workers.Faulty, 1, num_gpus=0, args=(tmp_path,)) as pool:
        for order, headline in (("raise", "ValueError: a wrong number"), ("exit", "SystemExit: 3")):
            with pytest.raises(gs.GenesisException) as error:
                list(pool.map([(0, ""), (order, order)]))
            for words in ("task 1 in worker 0 (pid ", f"failed: {headline}.", "Traceback", "in obey"):
                assert words in str(error.value)
            assert len((tmp_path / f"task{order}").read_text().split()) == 1
        read = []
        tasks = ((k, read.append(k) or "") for k in range(100, 200))
        for number, result in pool.map(tasks):  # the pool works on, and reads tasks as it comes to them
            assert (number, result) == (0, 100 * 100)
            break
        assert len(read) <= 3
        assert dict(pool.map([(9, "")])) == {0: 81}
        with pytest.raises(gs.GenesisException, match=r"task 0 cannot be sent .*generator"):
            list(pool.map([tasks]))


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("fault", "says", "starts"),
    [
        ("raise", r"building in worker \d failed: ValueError: a wrong number.\n\nTraceback", 1),
        ("kill", r"building in worker \d was lost 2 times, and restarts=1", 2),
    ],
)
def test_a_fault_while_building_is_no_endless_loop(fault: str, says: str, starts: int, tmp_path: Path) -> None:
    with RolloutPool(ray_workers.Faulty, 1, num_gpus=0, args=(tmp_path, fault), restarts=1) as pool:
        assert list(pool.map([])) == []
        with pytest.raises(gs.GenesisException, match=says):
            list(pool.map([(0, "")]))
    assert len((tmp_path / "started").read_text().split()) == starts


@pytest.mark.usefixtures("cluster")
def test_workers_without_room_wait(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with RolloutPool(ray_workers.Faulty, 2, num_gpus=0, num_cpus=2, args=(tmp_path,)) as pool:
        assert dict(pool.map([(k, "") for k in range(3)])) == {0: 0, 1: 1, 2: 4}
    assert "2 workers need 4 CPUs and the cluster has 2" in caplog.text
    assert len((tmp_path / "started").read_text().split()) == 1


@pytest.mark.usefixtures("cluster")
def test_closing_ends_the_workers(tmp_path: Path) -> None:
    with RolloutPool(ray_workers.Faulty, 1, num_gpus=0, args=(tmp_path,)) as pool:
        results = pool.map([(k, "") for k in range(3)])
        next(results)
        pid = int((tmp_path / "started").read_text())
        assert psutil.pid_exists(pid)
    with pytest.raises(gs.GenesisException, match="pool was closed"):
        list(results)
    deadline = time.monotonic() + 20
    while psutil.pid_exists(pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)


SCRIPT = """
from pluriverse.distributed.ray import RolloutPool

class Adds:
    def __init__(self, rank, more):
        self.more = more

    def rollout(self, task):
        return Sum(task + self.more)

class Sum:
    def __init__(self, value):
        self.value = value

if __name__ == "__main__":
    with RolloutPool(Adds, 1, args=(10,)) as pool:
        for number, result in pool.map([1, 2]):
            print(number, type(result) is Sum, result.value)
"""


def test_a_script_starts_ray_and_brings_its_classes(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(tmp_path / "script.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "0 True 11\n1 True 12\n", done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [((None, 1), "worker=None; give a class"), ((ray_workers.Faulty, 0), "n_workers=0, restarts=3; give at least 1")],
)
def test_wrong_arguments(arguments: tuple, says: str) -> None:
    with pytest.raises(gs.GenesisException, match=says):
        RolloutPool(*arguments)


def test_without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(gs.GenesisException, match=r"pip install 'pluriverse\[ray\]'"):
        RolloutPool(ray_workers.Faulty, 1)
