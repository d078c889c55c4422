"""Whose fault it is that a job cannot go on."""

from __future__ import annotations

from typing import Any

from pluriverse.distributed.verdict import DONE, FAILED, RUNNING, Sign, dead, judge


def sign(rank: int, phase: str = "step", beats: int = 7, age: float = 0.1, **facts: Any) -> Sign:
    defaults = {"host": "node", "pid": 100 + rank, "parent": 1, "state": RUNNING, "limit": 20.0, "number": 3}
    return Sign(rank=rank, phase=phase, beats=beats, age=age, **{**defaults, **facts})


def verdict(*signs: Sign | None, silent: dict[int, float] | None = None) -> Any:
    known = dict(enumerate(signs))
    return judge(known, {**dict.fromkeys(known, 0.2), **(silent or {})}, 20.0)


def test_a_healthy_job_goes_on() -> None:
    assert verdict(sign(0), sign(1, "update", 8)) is None
    assert verdict(sign(0), None) is None  # it may still come
    assert verdict(sign(0, state=DONE, age=500), sign(1, state=DONE, age=300)) is None


def test_the_hindmost_of_those_that_wait_is_to_blame() -> None:
    found = verdict(sign(0, "update", 8, 21), sign(1, "step", 7, 21), sign(2, "update", 8, 21))
    assert found.culprits == (1,)
    assert found.text.startswith(
        "rank 1 (pid 101 on node) stalls in phase 'step' (its phase number 7), for 21 s, 20 s allowed"
    )
    assert found.text.endswith("meanwhile rank 0 in 'update', rank 2 in 'update'")


def test_who_waits_for_a_long_phase_is_not_to_blame() -> None:
    assert verdict(sign(0, "update", 8, 100), sign(1, "build", 7, 100, limit=300.0)) is None


def test_all_stall_at_one_place() -> None:
    assert verdict(sign(0, age=25), sign(1, age=25)).culprits == (0, 1)


def test_the_first_failure_counts() -> None:
    found = verdict(
        sign(0, "update", 8, state=FAILED, error="reset by peer"), sign(1, state=FAILED, error="ValueError: x")
    )
    assert found.culprits == (1,)
    assert "rank 1 (pid 101 on node) failed in phase 'step': ValueError: x" in found.text


def test_who_lags_behind_a_failure_is_named() -> None:
    found = verdict(sign(0, "update", 8, state=FAILED, error="reset by peer"), sign(1), silent={1: 3.0})
    assert "behind it, and perhaps the cause: rank 1 in 'step', its last sign 3 s ago" in found.text


def test_silence_counts_before_stalling() -> None:
    found = verdict(sign(0, "update", 8, 30), sign(1, age=1), silent={1: 21.0})
    assert found.culprits == (1,)
    assert "has given no sign for 21 s, since phase 'step'" in found.text


def test_a_rank_that_never_came() -> None:
    assert verdict(sign(0), None, silent={1: 21.0}).culprits == (1,)


def test_who_is_gone_without_a_word() -> None:
    signs = {0: sign(0), 1: sign(1), 2: sign(2, state=DONE), 3: None}
    assert dead(signs, set()) is None
    assert dead(signs, {102}) is None  # it had said that it was done
    found = dead(signs, {101})
    assert found is not None
    assert found.culprits == (1,)
    assert "last seen in phase 'step'" in found.text
