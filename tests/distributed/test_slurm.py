"""Ranks and devices under SLURM and Ray Train, from the variables that they set; and a job of submitit's."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from unittest import mock

import psutil
import pytest
import torch

import pluriverse as gs
from fake_driver import FakeDriver, machine
from pluriverse.constants import Backend
from pluriverse.devices import resolve
from pluriverse.distributed.rank import export, read_rank

ROOT = Path(__file__).parents[2]

JOB = {
    "SLURM_JOB_ID": "1042407",
    "SLURM_NTASKS": "7",
    "SLURM_NODEID": "0",
    "SLURM_PROCID": "0",
    "SLURM_LOCALID": "0",
    "SLURM_JOB_NODELIST": "gpu[03-06]",
}
"""What a job's batch script finds."""
STEP = {
    **JOB,
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NUM_TASKS": "7",
    "SLURM_STEP_TASKS_PER_NODE": "2(x3),1",
    "SLURM_STEP_NODELIST": "gpu[03-06]",
}
"""What the first of srun's tasks finds."""
RAY_TRAIN = {
    "RANK": "1",
    "LOCAL_RANK": "1",
    "WORLD_SIZE": "2",
    "LOCAL_WORLD_SIZE": "2",
    "NODE_RANK": "0",
    "MASTER_ADDR": "10.0.0.7",
    "MASTER_PORT": "58301",
    "ACCELERATE_TORCH_DEVICE": "cpu",
}
"""What Ray Train 2.60 has set when it calls the training function."""


def task(rank: int, local_rank: int, node: int, **changes: str) -> dict[str, str]:
    places = {"SLURM_PROCID": str(rank), "SLURM_LOCALID": str(local_rank), "SLURM_NODEID": str(node)}
    return {**STEP, **places, **changes}


@pytest.fixture
def environ() -> Iterator[None]:
    """Variables that a test sets are gone after it."""
    with mock.patch.dict(os.environ):
        yield


def test_every_task_has_its_rank() -> None:
    places = [(0, 0, 0), (1, 1, 0), (2, 0, 1), (3, 1, 1), (4, 0, 2), (5, 1, 2), (6, 0, 3)]
    for place in places:
        rank = read_rank(task(*place))
        assert (rank.rank, rank.local_rank) == place[:2]
        assert (rank.world_size, rank.local_world_size) == (7, 1 if place[2] == 3 else 2)
        assert rank.master == ("gpu03", 22407)
        assert not rank.agent_store
        assert read_rank(export(rank)).master == rank.master


def test_a_batch_script_is_no_rank() -> None:
    assert read_rank(JOB).world_size == 1
    assert read_rank(JOB).master is None


def test_a_requeued_job_knows_that_it_is() -> None:
    assert read_rank({**STEP, "SLURM_RESTART_COUNT": "2"}).restarts == 2


@pytest.mark.parametrize(
    ("nodes", "first"),
    [
        ("gpu7", "gpu7"),
        ("gpu[03-05,9],login1", "gpu03"),
        ("gpu[9,11]", "gpu9"),
        ("a1,a2", "a1"),
        ("node-a[01-02].cluster", "node-a01.cluster"),
    ],
)
def test_the_ranks_meet_on_the_first_node(nodes: str, first: str) -> None:
    assert read_rank({**STEP, "SLURM_STEP_NODELIST": nodes}).master == (first, 22407)
    assert read_rank({**STEP, "MASTER_ADDR": "10.1.1.1", "MASTER_PORT": "7"}).master == ("10.1.1.1", 7)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"SLURM_PROCID": "7"}, "SLURM_PROCID=7 must be below SLURM_STEP_NUM_TASKS=7"),
        ({"SLURM_LOCALID": "2"}, "SLURM_LOCALID=2 must be below tasks of this node=2"),
        ({"SLURM_NODEID": "4"}, "SLURM_NODEID=4 must be below"),
        ({"SLURM_STEP_TASKS_PER_NODE": "2*3"}, r"='2\*3' is not of SLURM's form"),
        ({"SLURM_STEP_NODELIST": ""}, "names no host .* Set MASTER_ADDR"),
    ],
)
def test_contradictions_are_refused(changes: dict[str, str], says: str) -> None:
    with pytest.raises(gs.GenesisException, match=says):
        read_rank({**STEP, **changes})


def test_ray_train() -> None:
    rank = read_rank(RAY_TRAIN)
    assert (rank.rank, rank.world_size, rank.local_rank, rank.local_world_size) == (1, 2, 1, 2)
    assert (rank.master, rank.agent_store) == (("10.0.0.7", 58301), False)


@pytest.mark.parametrize(
    ("mask", "device", "gpu"),
    [(None, "cuda:3", 3), ("0,1,2,3", "cuda:3", 3), ("4,5,6,7", "cuda:3", 7), ("6", "cuda:0", 6)],
)
@pytest.mark.parametrize(
    "launcher",
    [
        {"RANK": "7", "WORLD_SIZE": "8", "LOCAL_RANK": "3", "LOCAL_WORLD_SIZE": "4"},
        export(read_rank(task(7, 3, 1, SLURM_STEP_NUM_TASKS="8", SLURM_STEP_TASKS_PER_NODE="4(x2)"))),
    ],
    ids=["torchrun", "srun"],
)
def test_the_fourth_rank_of_a_node(launcher: dict[str, str], mask: str | None, device: str, gpu: int) -> None:
    """Masked (`--gpus-per-task=1`) it has the one GPU that it sees, else the one that its local rank counts."""
    environ = {**launcher, **({"CUDA_VISIBLE_DEVICES": mask} if mask else {})}
    gpus = machine(4 if mask is None else 8)
    choice = resolve(environ, FakeDriver(gpus, environ), Backend.gpu)
    assert str(choice.device) == device
    assert choice.gpu is not None
    assert choice.gpu.uuid == gpus[gpu].uuid


@pytest.mark.usefixtures("environ")
def test_init_knows_the_local_rank_under_srun(monkeypatch: pytest.MonkeyPatch) -> None:
    os.environ.update(task(3, 1, 1))
    found: list[str | None] = []
    runtime = sys.modules["pluriverse.distributed.setup"].runtime
    init = type(runtime).init

    def noting_init(self: object, **arguments: object) -> None:
        found.append(os.environ.get("LOCAL_RANK"))
        init(self, **arguments)

    monkeypatch.setattr(type(runtime), "init", noting_init)
    gs.distributed.setup(backend=gs.cpu)
    gs.destroy()
    assert found == ["1"]


@pytest.mark.usefixtures("environ")
def test_nodes_of_one_rank_have_different_seeds() -> None:
    draws = []
    for node in (0, 1):
        with mock.patch.dict(
            os.environ, task(node, 0, node, SLURM_STEP_NUM_TASKS="2", SLURM_STEP_TASKS_PER_NODE="1(x2)")
        ):
            rank = gs.distributed.setup(seed=5, backend=gs.cpu)
        gs.destroy()
        assert (rank.local_rank, rank.seed) == (0, 5)
        draws.append(torch.rand(10))
    assert not (draws[0] == draws[1]).any()


def test_submitit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    submitit = pytest.importorskip("submitit")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")

    def job() -> tuple[int, int, float, str]:
        import os

        import torch
        from submitit.helpers import TorchDistributedEnvironment

        import pluriverse as gs

        TorchDistributedEnvironment().export(set_cuda_visible_devices=False)
        rank = gs.distributed.setup("gloo", backend=gs.cpu, timeout=60)
        total = torch.tensor(rank.rank + 1.0)
        torch.distributed.all_reduce(total)
        torch.distributed.destroy_process_group()
        return rank.rank, rank.local_rank, total.item(), os.environ["CUDA_VISIBLE_DEVICES"]

    executor = submitit.LocalExecutor(folder=tmp_path)
    executor.update_parameters(tasks_per_node=2, timeout_min=2)
    assert executor.submit(job).results() == [(0, 0, 3.0, ""), (1, 1, 3.0, "")]  # still no GPU, as before
    _, left = psutil.wait_procs([p for p in psutil.Process().children() if "submitit" in str(p.cmdline())], timeout=20)
    assert not left


def test_the_sweep_example(tmp_path: Path) -> None:
    pytest.importorskip("submitit")
    command = [sys.executable, "examples/slurm/submitit_sweep.py", "--cluster=local", f"--folder={tmp_path}"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    done = run([*command, "--ranks=2", "--gains", "80"], environment)
    assert done.returncode == 0, done.stdout + done.stderr
    error = re.fullmatch(r"gain 80: error (\S+) rad\n", done.stdout)
    assert error, done.stdout
    assert float(error[1]) == pytest.approx(0.166, abs=0.005)


def run(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command; nothing that it started is left, even if it takes too long."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    )
    try:
        out, err = process.communicate(timeout=90)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


FAKES = {
    "srun": 'export SCRIPT=$PPID; shift; for node in 0 1; do SLURM_NODEID=$node "$@" || exit 1; done',
    "torchrun": """
        echo "node $SLURM_NODEID, $SRUN_CPUS_PER_TASK cores: $*"
        [ $LATE = 0 ] || kill -USR1 $SCRIPT
        exit $CODE""",
    "scontrol": 'case $1 in show) printf "gpu03\\ngpu04\\n";; requeue) echo "requeued $2";; esac',
}
"""Commands for which the batch script can be run here: two nodes, one after the other."""


@pytest.mark.parametrize(("code", "late"), [(0, False), (3, False), (0, True)])
def test_the_batch_script(code: int, late: bool, tmp_path: Path) -> None:
    for name, text in FAKES.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / name).chmod(0o755)
    variables = {
        "SLURM_JOB_ID": "1042407",
        "SLURM_JOB_NODELIST": "gpu[03-04]",
        "SLURM_JOB_NUM_NODES": "2",
        "SLURM_GPUS_ON_NODE": "8",
        "SLURM_CPUS_PER_TASK": "64",
        "CODE": str(code),
        "LATE": str(int(late)),
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
    }
    done = run(["bash", "examples/slurm/train.sbatch", "train.py", "--name", "two words"], variables)
    ranks = "--nnodes=2 --nproc-per-node=8 --rdzv-id=1042407 --rdzv-backend=c10d --rdzv-endpoint=gpu03:22407"
    line = f"64 cores: {ranks} --rdzv-conf=join_timeout=300 train.py --name two words\n"
    assert f"node 0, {line}" in done.stdout, done.stderr
    assert ("requeued 1042407" in done.stdout) == late
    if not late:
        assert (done.returncode, f"node 1, {line}" in done.stdout) == (int(code != 0), code == 0)
