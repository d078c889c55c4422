"""What the benchmark asks of an engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from scenes import Case


@dataclass(frozen=True)
class Motion:
    """A state of all environments as float64: a copy of the engine's numbers, not rounded further."""

    qpos: np.ndarray  # (n, nq)
    qvel: np.ndarray  # (n, nv)
    qacc: np.ndarray  # (n, nv), of the last step: the next step's warm start

    def finite(self) -> np.ndarray:
        """(n,) bool: neither NaN nor infinity in positions and velocities."""
        return np.isfinite(self.qpos).all(1) & np.isfinite(self.qvel).all(1)


@dataclass(frozen=True)
class Health:
    """Environments in which something went wrong since `restart`."""

    non_finite: int  # NaN or infinity in qpos or qvel, or frozen because of one
    unconverged: int | None  # the solver hit its iteration limit; None: the engine does not tell
    overflow: int  # contacts or constraints were dropped for lack of room


class Engine(ABC):
    """One engine with one case built. Of a window `restart(); wait(); run(); wait()` the second half is timed."""

    name: ClassVar[str]

    def __init__(self, case: Case) -> None:
        self.case = case
        self.n_envs = case.n_envs
        self.settings: dict[str, object] = {}  # what a reader of the result should know of this engine

    @abstractmethod
    def restart(self) -> None:
        """Puts every environment into its start state, at rest, under the controls of block 0."""

    @abstractmethod
    def run(self) -> None:
        """Advances all environments by the window's steps with the window's controls. May return early."""

    @abstractmethod
    def wait(self) -> None:
        """Returns when the device has done everything."""

    @abstractmethod
    def motion(self) -> Motion:
        """The present state."""

    @abstractmethod
    def health(self) -> Health:
        """What went wrong."""


class Steppable(Engine):
    """An engine that can be stepped by hand, so that its one-step error can be measured."""

    @abstractmethod
    def command(self, block: int) -> None:
        """Gives every environment its controls of a block."""

    @abstractmethod
    def advance(self, steps: int) -> None:
        """Advances all environments by physics steps, a multiple of the case's substeps."""

    def run(self) -> None:
        for block, steps in self.case.blocks():
            self.command(block)
            self.advance(steps)
