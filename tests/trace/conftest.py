"""A session with Warp for the tests that compile, and a way to run a traced program on a batch."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from pluriverse.runtime import runtime
from pluriverse.trace.kernel import Kernel
from pluriverse.trace.program import Program
from pluriverse.trace.source import Target, print_source

Run = Callable[..., dict[str, np.ndarray]]
_numbers = itertools.count()


@pytest.fixture
def run_program(gs_cpu: object, tmp_path: Path) -> Run:
    """Compiles a program and runs it: (program, {buffer or flag: (rows, n) array}, counts) -> the arrays after it."""
    runtime.warp()

    def run(
        program: Program, arrays: dict[str, np.ndarray], *counts: int, double: bool = True
    ) -> dict[str, np.ndarray]:
        target = Target(cuda=False, double=double)
        kernel = Kernel(print_source(program, target, f"test_{next(_numbers)}"), target, "cpu", tmp_path)
        n = next(iter(arrays.values())).shape[1]
        tensors = {}
        for name, values in arrays.items():
            dtype = torch.int32 if values.dtype.kind == "i" else torch.float64 if double else torch.float32
            tensors[name] = torch.zeros(len(values), -(-n // 16) * 16, dtype=dtype)
            tensors[name][:, :n] = torch.tensor(values)
        kernel.bind(tensors, n, next(iter(tensors.values())).shape[1], n_threads=2).launch(*counts)
        return {name: tensor[:, :n].numpy() for name, tensor in tensors.items()}

    return run
