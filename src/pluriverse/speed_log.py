"""Logs how fast a scene steps."""

from __future__ import annotations

import time

from pluriverse.logging import logger

PERIOD = 2.0  # seconds between lines


class SpeedLog:
    """Counts steps and logs a line every two seconds. It reads the host's clock only and never waits for the device;
    a GPU that falls behind shows in the next line, when its queue is full.

    alpha: weight of the past in the smoothed speed, 0 to 1.
    """

    def __init__(self, n_envs: int, alpha: float) -> None:
        self._n_envs = n_envs
        self._alpha = alpha
        self._count = 0
        self._since = time.perf_counter()
        self._speed: float | None = None

    def count(self) -> None:
        """One step was made."""
        self._count += 1
        now = time.perf_counter()
        if now - self._since >= PERIOD:
            self._log(self._count / (now - self._since))
            self._count, self._since = 0, now

    def _log(self, speed: float) -> None:
        self._speed = speed if self._speed is None else self._alpha * self._speed + (1 - self._alpha) * speed
        total = f"{self._speed * self._n_envs:,.0f} FPS ({self._speed:,.1f} per environment, {self._n_envs} of them)"
        logger.info(f"Running at {total if self._n_envs > 1 else f'{self._speed:,.1f} FPS'}.")
