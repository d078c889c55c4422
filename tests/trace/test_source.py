"""The text of kernels: what is printed, and when the cached text serves again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from physics_models import load
from physics_reference import settings_of
from pluriverse.model import Model
from pluriverse.step_kernel import trace_step
from pluriverse.trace import source
from pluriverse.trace.functions import select
from pluriverse.trace.numbers import Numbers
from pluriverse.trace.program import Program
from pluriverse.trace.source import Source, Target, cached_source, print_source

SINGLE, DOUBLE = Target(cuda=False, double=False), Target(cuda=False, double=True)


def program(factor: float = 0.1) -> Program:
    run = Program()
    x = run.buffer("x")
    x.write(0, x.read(0) * factor)
    return run


def text(traced: Program, target: Target = DOUBLE) -> str:
    return print_source(traced, target, "kernel").preamble


def test_constants_are_printed_with_the_digits_of_their_precision() -> None:
    third = 1 / 3
    assert "0.3333333333333333" in text(program(third), DOUBLE)
    assert "0.333333333f" in text(program(third), SINGLE)
    assert float(f"{third:.9g}") != third
    assert "2.0" in text(program(2.0), DOUBLE)
    assert "2.f" in text(program(2.0), SINGLE)
    assert "(-2.0)" in text(program(-2.0), DOUBLE)


def test_rounding_is_that_of_the_precision() -> None:
    run = Program()
    run.buffer("out").write(0, run.rounding * 2.0)
    assert f"{2.0**-53!r} * 2.0" in text(run, DOUBLE).replace("SPLAT", "").replace("(", "").replace(")", "")
    assert "5.96046448e-08f" in text(run, SINGLE)
    assert Numbers.rounding == 2.0**-53


def test_what_nobody_needs_is_not_printed() -> None:
    run = program()
    unused = run.buffer("y").read(0) * 1234.5
    assert "1234.5" not in text(run)
    run.buffer("z").write(0, unused)
    assert "1234.5" in text(run)


def test_infinity_is_a_huge_number() -> None:
    run = Program()
    x = run.buffer("x")
    x.write(0, select(x.read(0) < 0.0, float("-inf"), float("inf")))
    assert "SPLAT(-HUGE_NUMBER), SPLAT(HUGE_NUMBER)" in text(run)


def test_printing_repeats() -> None:
    model, settings = Model.from_mujoco(load("round")), settings_of(load("round"))
    one, two = (text(trace_step(model, settings)) for _ in range(2))
    assert one == two


@pytest.mark.parametrize("cuda", [True, False])
@pytest.mark.parametrize("double", [True, False])
def test_targets_have_texts_of_their_own(cuda: bool, double: bool) -> None:
    kernel = print_source(program(), Target(cuda, double), "kernel")
    assert f"typedef {'double' if double else 'float'} T;" in kernel.preamble
    assert ("__device__" in kernel.preamble) == cuda
    assert kernel.envs_per_thread == (1 if cuda else 8 if double else 16)
    assert (kernel.buffers, kernel.flags, kernel.counts) == (("x",), (), ())


# ---- the cache -------------------------------------------------------------------------------------------------------


class Traced:
    """Counts how often something is traced."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> Program:
        self.times += 1
        return program()


@pytest.fixture
def cached(tmp_path: Path) -> Callable[..., Source]:
    return lambda key="a", target=DOUBLE, trace=program: cached_source(tmp_path, "kernel", key, target, trace)


def test_same_key_is_traced_once(cached: Callable[..., Source]) -> None:
    traced = Traced()
    one, two = (cached(trace=traced) for _ in range(2))
    assert one == two
    assert traced.times == 1


def test_other_keys_and_targets_are_other_kernels(cached: Callable[..., Source]) -> None:
    kernels = [cached(), cached(key="b"), cached(target=SINGLE), cached(target=Target(cuda=True, double=True))]
    assert len({kernel.name for kernel in kernels}) == 4


@pytest.mark.parametrize("damage", ["", "{", '{"name": 1}'])
def test_damaged_file_is_traced_again(cached: Callable[..., Source], tmp_path: Path, damage: str) -> None:
    kernel = cached()
    (tmp_path / f"{kernel.name}.json").write_text(damage)
    traced = Traced()
    assert cached(trace=traced) == kernel
    assert traced.times == 1
    assert cached() == kernel


def test_changed_package_file_is_another_kernel(
    cached: Callable[..., Source], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "package"
    shutil.copytree(source.HERE.parent, package, ignore=shutil.ignore_patterns("__pycache__", "assets"))
    monkeypatch.setattr(source, "HERE", package / "trace")
    before = cached()
    assert cached() == before
    for changed in ("dynamics/bias.py", "trace/prelude_cpu.h"):
        with (package / changed).open("a") as file:
            file.write("\n")
        after = cached()
        assert after.name != before.name, changed
        before = after


def test_changed_model_is_another_kernel() -> None:
    one, two = load("damped"), load("damped", timestep=0.001)
    fingerprints = {Model.from_mujoco(m).fingerprint() for m in (one, two)}
    assert len(fingerprints) == 2
