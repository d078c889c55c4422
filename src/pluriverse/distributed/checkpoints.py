"""Checkpoints of a job: every rank writes its worlds, and any number of ranks goes on from them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from torch.nn.parallel import DistributedDataParallel

from pluriverse.checkpoint_file import load_file, save_file
from pluriverse.distributed.dealing import deal, saved_envs
from pluriverse.distributed.generators import generator_states, restore_generators, seed_generators
from pluriverse.distributed.meeting import Meeting
from pluriverse.distributed.rank import Rank
from pluriverse.errors import GenesisException
from pluriverse.logging import logger
from pluriverse.runtime import runtime
from pluriverse.scene import Scene

FOLDER = re.compile(r"step-(\d{10})")
FILE = re.compile(r"rank-(\d{5})-of-(\d{5})\.pt")


class Stateful(Protocol):
    """A module, an optimiser, a scheduler ..."""

    def state_dict(self) -> dict[str, Any]:
        """Its state."""

    def load_state_dict(self, state: Any) -> Any:
        """Take a state."""


class Resumed(NamedTuple):
    """Where a job goes on: the step that `save` was given, and its `per_env`, of this rank's environments."""

    step: int
    per_env: Any


class Checkpoints:
    """The checkpoints of a job in one folder, which all ranks must see.

        checkpoints = gs.distributed.Checkpoints("runs/walk", rank)
        resumed = checkpoints.load(scene, policy=policy, optimizer=optimizer)
        for step in range(resumed.step if resumed else 0, 1000):
            ...
            if (step + 1) % 100 == 0:
                checkpoints.save(step + 1, scene, policy=policy, optimizer=optimizer)

    On as many ranks, training goes on bit for bit: worlds, commands, per-environment parameters, random counters, and
    the generators of torch, numpy and `random` come back. On another number of ranks the worlds are dealt out anew by
    their global number (`Rank.envs`); then the generators, which belong to ranks, start from new seeds, as the log
    says.

    Each rank writes one file, whole or not at all. A checkpoint counts when the files of all its ranks are there, so
    that a job that dies while writing goes on from the one before.

    Args:
        folder: made where it is missing.
        rank: what `setup` returned.
        keep: how many complete checkpoints stay.
        timeout: seconds that ranks wait for each other in `load`.
    """

    def __init__(self, folder: str | Path, rank: Rank, keep: int = 3, timeout: float = 60.0) -> None:
        if isinstance(keep, bool) or not isinstance(keep, int) or keep < 1:
            raise GenesisException(f"keep={keep!r} checkpoints; give an integer of at least 1.")
        self._folder, self._rank, self._keep = Path(folder), rank, keep
        self._meeting = Meeting(rank, f"checkpoints in {folder}", timeout)

    def save(self, step: int, scene: Scene, *, per_env: Any = None, **shared: Stateful) -> None:
        """Write what this rank has to write. All ranks call it at the same step; it waits for the device, not for them.

        Args:
            step: of the training; names the checkpoint.
            scene: its worlds.
            per_env: further tensors (n_envs, ...), alone or in dictionaries, lists and tuples, such as episode lengths.
            shared: modules, optimisers and the like, which are equal on all ranks: rank 0 writes them.

        Raises:
            GenesisException: the file could not be written; the folder holds later checkpoints, of another run. What is
                there stays unharmed.
        """
        if self._rank.rank == 0:
            self._refuse_other_runs(step)
        data = {
            "scene": scene.state_dict(),
            "per_env": per_env,
            "generators": generator_states(runtime.device),
            "shared": {name: _bare(part).state_dict() for name, part in shared.items()}
            if self._rank.rank == 0
            else None,
        }
        try:
            save_file(self._file(step, self._rank.rank, self._rank.world_size), data)
        except GenesisException as error:
            latest = max(self._complete(), default=None)
            last = (
                f"The last complete one is that of step {latest}." if latest is not None else "There is none before it."
            )
            raise GenesisException(f"{self._rank}, step {step}: {error} {last}") from error
        if self._rank.rank == 0:
            for old in sorted(self._complete())[: -self._keep]:
                shutil.rmtree(self._at(old), ignore_errors=True)

    def load(self, scene: Scene, **shared: Stateful) -> Resumed | None:
        """Put everything into the state of the newest complete checkpoint; all ranks call it.

        Returns where to go on, None where there is no checkpoint. Raises GenesisException where it does not fit.
        """
        agreed = self._agree()
        if agreed is None:
            return None
        (step, ranks), rank = agreed, self._rank
        own = load_file(self._file(step, rank.rank, ranks)) if rank.rank < ranks else None
        wanted = saved_envs(scene.state_dict())
        same = ranks == rank.world_size and own is not None and saved_envs(own["scene"]) == wanted
        if not same:
            logger.info(f"{rank}: the checkpoint of step {step} is of {ranks} ranks; its worlds are dealt out anew.")
            parts = [load_file(self._file(step, number, ranks), mmap=True) for number in range(ranks)]
        else:
            parts = [own]
        worlds, per_env = deal([p["scene"] for p in parts], [p["per_env"] for p in parts], wanted, runtime.device)
        scene.load_state_dict(worlds)
        first = own if own is not None and rank.rank == 0 else load_file(self._file(step, 0, ranks))
        if first["shared"].keys() != shared.keys():
            raise GenesisException(
                f"The checkpoint of step {step} holds {sorted(first['shared'])}, and load was given {sorted(shared)}."
            )
        for name, part in shared.items():
            _bare(part).load_state_dict(first["shared"][name])
        if same and own is not None:
            restore_generators(own["generators"], runtime.device)
        else:
            seed_generators(rank.seed, rank.rank, step)
        logger.info(f"{rank} goes on from step {step}, {self._at(step)}.")
        return Resumed(step, per_env)

    def _refuse_other_runs(self, step: int) -> None:
        later = [other for other in self._complete() if other > step]  # a rank that is ahead completes none
        if later:
            raise GenesisException(
                f"{self._folder} holds a checkpoint of step {max(later)}, later than this one of step {step}, and a "
                "restart would go on from there. Call load first, which goes on from it, or give this run a folder of "
                "its own."
            )
        for path in self._at(step).glob("rank-*"):  # of a run with another number of ranks
            if not path.name.endswith(f"-of-{self._rank.world_size:05d}.pt"):
                path.unlink()

    def _agree(self) -> tuple[int, int] | None:
        """The newest complete step as rank 0 sees it, and its number of ranks; newer files, of ranks that died
        meanwhile, are removed."""
        found = None
        if self._rank.rank == 0:
            found = max(self._complete().items(), default=None)
            for step in self._steps():
                if found is None or step > found[0]:
                    shutil.rmtree(self._at(step), ignore_errors=True)
        return self._meeting.judge({"newest": found}, answer=lambda notes: notes[0]["newest"])

    def _steps(self) -> list[int]:
        names = [FOLDER.fullmatch(path.name) for path in self._folder.glob("step-*")]
        return [int(match[1]) for match in names if match is not None]

    def _complete(self) -> dict[int, int]:
        """Steps of which the files of all ranks are there -> the number of ranks."""
        complete = {}
        for step in self._steps():
            files = [FILE.fullmatch(path.name) for path in self._at(step).glob("rank-*")]
            found = {(int(match[1]), int(match[2])) for match in files if match is not None}
            for _, ranks in found:
                if all((rank, ranks) in found for rank in range(ranks)):
                    complete[step] = ranks
        return complete

    def _at(self, step: int) -> Path:
        return self._folder / f"step-{step:010d}"

    def _file(self, step: int, rank: int, ranks: int) -> Path:
        return self._at(step) / f"rank-{rank:05d}-of-{ranks:05d}.pt"


def _bare(part: Any) -> Any:
    """A module without its wrapper, so that a checkpoint does not depend on whether there is one."""
    return part.module if isinstance(part, DistributedDataParallel) else part
