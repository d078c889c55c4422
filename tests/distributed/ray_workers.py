"""The workers of the tests of RolloutPool."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import torch

import pluriverse as gs

NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "CUDA_VISIBLE_DEVICES")
FOREIGN = ("QD_VISIBLE_DEVICE", "TORCHELASTIC_RESTART_COUNT")


class Falls:
    """A scene with a ball."""

    def __init__(self, rank: gs.distributed.Rank, n_envs: int) -> None:
        self.rank = gs.distributed.setup(seed=3)
        self.asked = rank
        self.draw = torch.rand(1).item()
        self.scene = gs.Scene(show_FPS=False)
        self.ball = self.scene.add_entity(gs.morphs.Sphere(radius=0.1, pos=(0, 0, 1)))
        self.scene.build(n_envs=n_envs)

    def rollout(self, heights: torch.Tensor) -> torch.Tensor:
        """Heights after 0.1 s of fall."""
        self.scene.reset()
        start = torch.zeros(len(heights), 3)
        start[:, 2] = heights
        self.ball.set_pos(start)
        for _ in range(10):
            self.scene.step()
        return self.ball.get_pos()[:, 2]


class FallsWithFacts(Falls):
    """A scene with a ball, whose results tell where they were made."""

    def rollout(self, heights: torch.Tensor) -> Any:
        facts = {"asked": self.asked, "set_up": self.rank, "draw": self.draw, "device": str(gs.device)}
        return super().rollout(heights), facts


class Surroundings:
    """What a worker's process sees."""

    def __init__(self, rank: gs.distributed.Rank) -> None:
        self.rank = rank

    def rollout(self, task: int) -> dict[str, str | None]:
        return {name: os.environ.get(name) for name in (*NAMES, *FOREIGN)}


class Faulty:
    """Does what its task says. In a folder it notes its start and every attempt."""

    def __init__(self, rank: gs.distributed.Rank, folder: Path, fault: str = "") -> None:
        self.folder = folder
        self.note("started")
        self.obey(fault)

    def note(self, what: str) -> None:
        with open(self.folder / what, "a") as file:
            file.write(f"{os.getpid()}\n")

    def obey(self, order: str) -> None:
        if order == "raise":
            raise ValueError("a wrong number\nand more")
        if order == "exit":
            raise SystemExit(3)
        if order == "kill":
            os.kill(os.getpid(), signal.SIGKILL)

    def rollout(self, task: tuple[int, str]) -> int:
        number, order = task
        self.note(f"task{number}")
        first = len((self.folder / f"task{number}").read_text().split()) == 1
        self.obey("kill" if order == "kill once" and first else order)
        return number * number
