"""Fixtures that all tests share."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import hypothesis
import pytest

# The machine's load is not a property under test.
hypothesis.settings.register_profile("pluriverse", deadline=None)
hypothesis.settings.load_profile("pluriverse")


@pytest.fixture
def gs_cpu() -> Iterator[ModuleType]:
    """The package in a float32 session on the CPU, closed after the test."""
    import pluriverse as gs

    gs.init(backend=gs.cpu, logging_level="warning")
    yield gs
    gs.destroy()


@pytest.fixture(autouse=True)
def no_device_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests decide which device variables are set, whatever the machine's are."""
    for name in ("QD_VISIBLE_DEVICE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
