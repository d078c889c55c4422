"""Exchanges between ranks, here threads of one process that meet on loopback."""

from __future__ import annotations

import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import pluriverse as gs
from pluriverse.distributed.meeting import Meeting, open_store
from pluriverse.distributed.rank import Rank


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def ranks(count: int) -> list[Rank]:
    master = ("127.0.0.1", free_port())
    return [Rank(rank, count, rank, count, host="here", master=master) for rank in range(count)]


def together(job: list[Rank], part: Callable[[Rank], Any]) -> list[Any]:
    """What each rank's part returns, or the exception that it raised."""

    def run(rank: Rank) -> Any:
        try:
            return part(rank)
        except gs.GenesisException as error:
            return error

    with ThreadPoolExecutor(len(job)) as pool:
        return list(pool.map(run, job))


def test_all_get_all_notes_in_every_exchange_of_every_meeting() -> None:
    def part(rank: Rank) -> list[list[dict[str, Any]]]:
        told = []
        for number in range(2):  # meetings of one purpose do not read each other's notes
            meeting = Meeting(rank, "test", 20)
            told += [meeting.judge({"is": [number, exchange, rank.rank]}, answer=list) for exchange in range(3)]
        return told

    expected = [[{"is": [n, e, rank]} for rank in range(3)] for n in range(2) for e in range(3)]
    assert together(ranks(3), part) == [expected] * 3


def test_all_get_the_same_error() -> None:
    def rule(notes: list[dict[str, Any]]) -> str | None:
        return f"{notes[1]['is']} is wrong"

    errors = together(ranks(3), lambda rank: Meeting(rank, "test", 20).judge({"is": rank.rank}, rule))
    assert [str(error) for error in errors] == ["1 is wrong"] * 3


def test_who_is_missing_is_named() -> None:
    job = ranks(3)
    errors = together(job[:2], lambda rank: Meeting(rank, "test", 1.5).judge({}))
    for error in errors:
        assert "test: rank 2 of 3 has not come within 1.5 s, the others have" in str(error)


def test_a_store_that_cannot_be_reached_is_named() -> None:
    alone = ranks(2)[1]  # rank 0, which keeps the store, never comes
    with pytest.raises(
        gs.GenesisException, match="where rank 0 keeps a store, and that could not be reached within 1 s"
    ):
        open_store(alone, "test", 1.0)


def test_alone_nothing_is_exchanged() -> None:
    assert Meeting(Rank(), "test").judge({"is": 1}, answer=list) == [{"is": 1}]
    with pytest.raises(gs.GenesisException, match="wrong"):
        Meeting(Rank(), "test").judge({}, lambda _: "wrong")
