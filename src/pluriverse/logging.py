"""The package's logger: Python's own logger `pluriverse`, given a level, colours and a timer by `init`."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pluriverse.errors import GenesisException

COLORS = {
    "dark": {"DEBUG": "\x1b[36m", "INFO": "\x1b[32m", "WARNING": "\x1b[33m", "ERROR": "\x1b[31m"},
    "light": {"DEBUG": "\x1b[34m", "INFO": "\x1b[32m", "WARNING": "\x1b[35m", "ERROR": "\x1b[31m"},
    "dumb": {},
}
RESET = "\x1b[0m"


class Logger(logging.LoggerAdapter):
    """The logger `pluriverse` with a timer. Handlers, filters and levels are those of Python's `logging`."""

    @contextmanager
    def timer(self, message: str, level: int = logging.INFO) -> Iterator[None]:
        """Log `message` with the seconds that the `with` block took."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.log(level, f"{message} ({time.perf_counter() - start:.2f} s)")


logger = Logger(logging.getLogger("pluriverse"), {})


class _Handler(logging.StreamHandler):
    """Our handler on stderr, told apart from handlers that a user attached."""


class _Formatter(logging.Formatter):
    def __init__(self, theme: str, verbose_time: bool) -> None:
        super().__init__(datefmt="%Y-%m-%d %H:%M:%S" if verbose_time else "%H:%M:%S")
        self.colors = COLORS[theme]

    def format(self, record: logging.LogRecord) -> str:
        color = self.colors.get(record.levelname, "")
        stamp = self.formatTime(record, self.datefmt)
        return f"{color}[pluriverse] [{stamp}] [{record.levelname}] {record.getMessage()}{RESET if color else ''}"


def parse_level(level: str | int) -> int:
    """The numeric level of `level`, a name such as "info" or a number of Python's `logging`."""
    if isinstance(level, int) and not isinstance(level, bool):
        return level
    names = logging.getLevelNamesMapping()
    if isinstance(level, str) and level.upper() in names:
        return names[level.upper()]
    raise GenesisException(f"logging_level={level!r} is no level. Give a number or one of: {', '.join(names).lower()}.")


def configure(level: str | int, theme: str, verbose_time: bool) -> None:
    """Set the logger's level, and print on stderr unless the program has set up Python's logging itself.

    Raises GenesisException where the level or the theme is unknown.
    """
    if theme not in COLORS:
        raise GenesisException(f"theme={theme!r} is unknown. Give one of: {', '.join(COLORS)}.")
    logger.setLevel(parse_level(level))
    for handler in list(logger.logger.handlers):
        if isinstance(handler, _Handler):
            logger.logger.removeHandler(handler)
    if not logger.logger.hasHandlers():
        handler = _Handler()
        color = handler.stream.isatty()
        handler.setFormatter(_Formatter(theme if color else "dumb", verbose_time))
        logger.logger.addHandler(handler)
