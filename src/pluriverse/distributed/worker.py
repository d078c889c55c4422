"""One process of a `launch`: what surrounds its start, what it runs, and how values cross to it and back.

Values cross as bytes of `torch.save` and are loaded onto the CPU, so that no tensor lands on a device that the receiver
does not compute on.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from typing import Any

import torch

from pluriverse.distributed.rank import own_rank
from pluriverse.errors import GenesisException

READY, VALUE, FAULT = "ready", "value", "fault"
"""What a worker says: that it can be sent its call and items; a result, as bytes; a headline and a traceback."""


def work(connection: Connection) -> None:
    """The life of a worker: it is sent what to call, then items one by one, and answers each, until an empty one."""
    _end_with_parent()
    try:
        connection.send((READY,))
        fn, args = unpacked(connection.recv_bytes())
        rank = own_rank()
        while item := connection.recv_bytes():
            try:
                value = fn(rank, *unpacked(item), *args)
            except SystemExit as end:
                if end.code not in (None, 0):
                    raise
                value = None
            connection.send((VALUE, packed_result(value)))
    except BaseException as error:
        headline = traceback.format_exception_only(error)[-1].strip().splitlines()[0]
        connection.send((FAULT, headline, traceback.format_exc()))
        sys.exit(1)


def _end_with_parent() -> None:
    """Lead a process group, and kill it when the parent is gone, however it went."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    os.setpgrp()

    def watch() -> None:
        # The sentinel is late where a process forked from the parent outlives it; the parent's id changes at once.
        while not wait([parent.sentinel], timeout=1.0) and os.getppid() == parent.pid:
            pass
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, name="end with parent", daemon=True).start()


@contextmanager
def surroundings(variables: Mapping[str, str | None], cores: Collection[int] | None) -> Iterator[None]:
    """The environment (None: not set) and the cores of a child, for the time of its start.

    It inherits them, so they hold before it imports anything.
    """
    before = {name: os.environ.get(name) for name in variables}
    affinity = os.sched_getaffinity(0)
    try:
        _set_variables(variables)
        if cores is not None:
            os.sched_setaffinity(0, cores)
        yield
    finally:
        os.sched_setaffinity(0, affinity)
        _set_variables(before)


def _set_variables(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def packed(value: Any) -> bytes:
    """Any value as bytes; raises what pickling raises."""
    file = io.BytesIO()
    torch.save(value, file, pickle_protocol=pickle.DEFAULT_PROTOCOL)
    return file.getvalue()


def packed_result(value: Any) -> bytes:
    try:
        return packed(value)
    except Exception as error:
        raise GenesisException(
            f"the result, of type {type(value).__name__}, cannot be sent to the parent process: {error}. Return "
            "numbers, texts, arrays, tensors, or lists and dicts of them."
        ) from error


def unpacked(data: bytes) -> Any:
    """The value, with its tensors on the CPU."""
    return torch.load(io.BytesIO(data), map_location="cpu", weights_only=False)
