"""Options take known names and right types only, and say what is allowed."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import torch

from pluriverse import constants
from pluriverse.errors import GenesisException
from pluriverse.options import RigidOptions, SimOptions, ViewerOptions, VisOptions
from pluriverse.options.base import Options, ignored, renamed


class Sample(Options):
    count: int = 1
    length: float = 0.5
    flag: bool = False
    vector: tuple[float, float, float] = (0.0, 0.0, 0.0)
    indices: tuple[int, ...] | None = None
    text: str = "a"
    either: int | str | None = None

    deprecated = {"number": renamed("count"), "gone": ignored("there is nothing left to do")}  # noqa: RUF012


def test_defaults_and_values() -> None:
    assert Sample().count == 1
    assert Sample(count=np.int64(3)).count == 3
    assert Sample(length=2).length == 2.0
    assert isinstance(Sample(length=np.float32(2)).length, float)
    assert Sample(length=torch.tensor(0.25)).length == 0.25
    assert Sample(vector=[1, 2, 3]).vector == (1.0, 2.0, 3.0)
    assert Sample(vector=np.arange(3)).vector == (0.0, 1.0, 2.0)
    assert Sample(indices=range(3)).indices == (0, 1, 2)
    assert Sample(indices=torch.tensor([4, 5])).indices == (4, 5)
    assert repr(Sample(count=2)) == "Sample(count=2)"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cuont": 2}, "Sample has no option 'cuont'. Did you mean 'count'\\? Allowed: count, length"),
        ({"zzzzz": 2}, "Sample has no option 'zzzzz'. Allowed: count"),
        ({"count": 1.0}, "Sample.count: got 1.0 \\(float\\), expected int"),
        ({"count": True}, "Sample.count: got True \\(bool\\), expected int"),
        ({"flag": 1}, "Sample.flag: got 1 \\(int\\), expected bool"),
        ({"length": "1"}, "Sample.length: got '1' \\(str\\), expected float"),
        ({"length": float("nan")}, "Sample.length: got NaN"),
        ({"length": None}, "Sample.length: got None"),
        ({"vector": (1, 2)}, "Sample.vector: got 2 values \\[1, 2\\], expected 3"),
        ({"vector": 5}, "Sample.vector: got 5 \\(int\\), expected \\(float, float, float\\)"),
        ({"vector": "xyz"}, "Sample.vector: got 'xyz'"),
        ({"vector": (1, 2, "x")}, "Sample.vector: got 'x' \\(str\\), expected float"),
        ({"vector": torch.tensor(1.0)}, "Sample.vector: got"),
        ({"indices": (1.5,)}, "Sample.indices: got 1.5 \\(float\\), expected int"),
        ({"either": 1.5}, "Sample.either: got 1.5 \\(float\\), expected int or str or None"),
    ],
)
def test_wrong_input(given: dict, message: str) -> None:
    with pytest.raises(GenesisException, match=message):
        Sample(**given)


def test_attributes_are_strict_too() -> None:
    options = Sample()
    options.count = 4
    assert options.count == 4
    with pytest.raises(GenesisException, match="Did you mean 'count'"):
        options.counts = 5  # type: ignore[attr-defined]
    with pytest.raises(GenesisException, match="expected int"):
        options.count = "5"  # type: ignore[assignment]


def test_replaced_is_a_checked_copy() -> None:
    first = Sample(count=2, text="b")
    assert (first.replaced(count=3).count, first.replaced(count=3).text, first.count) == (3, "b", 2)
    with pytest.raises(GenesisException, match="no option"):
        first.replaced(cuont=3)


def test_deprecated_names(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("pluriverse").propagate = True
    with caplog.at_level("WARNING", logger="pluriverse"):
        assert Sample(number=7, gone=True).count == 7  # type: ignore[call-arg]
    assert "'number' is deprecated: use 'count'" in caplog.text
    assert "'gone' is deprecated: it has no effect: there is nothing left to do" in caplog.text
    with pytest.raises(GenesisException, match="'number' is the former name of 'count'"):
        Sample(number=7, count=7)  # type: ignore[call-arg]


def test_genesis_defaults() -> None:
    sim, rigid = SimOptions(), RigidOptions()
    assert (sim.dt, sim.substeps, sim.gravity) == (0.01, 1, (0.0, 0.0, -9.81))
    assert rigid.integrator is constants.integrator.implicitfast
    assert rigid.constraint_solver is constants.constraint_solver.Newton
    assert (rigid.iterations, rigid.ls_iterations, rigid.ls_tolerance) == (50, 50, 1e-2)
    assert rigid.enable_self_collision
    assert not rigid.enable_adjacent_collision


def test_enumerations_by_member_and_by_name() -> None:
    assert RigidOptions(integrator=constants.integrator.Euler).integrator is constants.integrator.Euler
    assert RigidOptions(integrator="approximate_implicitfast").integrator.name == "approximate_implicitfast"
    assert RigidOptions(integrator="RK4").integrator is constants.integrator.RK4
    with pytest.raises(GenesisException, match="expected one of Euler, implicitfast, approximate_implicitfast"):
        RigidOptions(integrator="discrete")
    with pytest.raises(GenesisException, match="got 1 \\(int\\)"):
        RigidOptions(integrator=1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SimOptions(dt=0), "SimOptions.dt: got 0.0, expected a duration > 0"),
        (lambda: SimOptions(dt=float("inf")), "SimOptions.dt: got inf"),
        (lambda: SimOptions(substeps=0), "SimOptions.substeps: got 0"),
        (lambda: SimOptions(substeps_local=2), "substeps_local is a setting of soft bodies"),
        (lambda: SimOptions(requires_grad=True), "gradients through the step are not supported"),
        (lambda: RigidOptions(iterations=0), "RigidOptions.iterations: got 0"),
        (lambda: RigidOptions(tolerance=-1.0), "RigidOptions.tolerance: got -1.0"),
        (lambda: RigidOptions(impratio=0), "RigidOptions.impratio: got 0.0"),
        (lambda: RigidOptions(constraint_solver="CG"), "not supported yet: constraint_solver=CG \\(use Newton\\)"),
        (lambda: RigidOptions(contact_resolution="signorini"), "contact_resolution=signorini"),
        (lambda: RigidOptions(noslip_iterations=5), "noslip_iterations=5"),
        (lambda: RigidOptions(constraint_timeconst=0.02), "author solref in the model file"),
        (lambda: RigidOptions(enable_neutral_collision=False), "exclude the pairs in the model file"),
        (lambda: RigidOptions(use_hibernation=True), "use_hibernation=True"),
        (lambda: VisOptions(segmentation_level="body"), "got 'body', expected one of 'link', 'entity', 'geom'"),
        (lambda: ViewerOptions(res=(640,)), "ViewerOptions.res: got 1 values"),
    ],
)
def test_values_that_make_no_sense(make, message: str) -> None:
    with pytest.raises(GenesisException, match=message):
        make()


def test_all_unsupported_options_are_named_at_once() -> None:
    with pytest.raises(GenesisException, match="constraint_solver=CG .*; use_hibernation=True"):
        RigidOptions(constraint_solver="CG", use_hibernation=True)


def test_names_of_both_generations() -> None:
    assert VisOptions(env_separate_rigid=True).split_envs  # type: ignore[call-arg]
    assert RigidOptions(use_contact_island=True, prefer_parallel_linesearch=True)  # type: ignore[call-arg]
    assert ViewerOptions(max_FPS=60).max_FPS == 60


def test_options_of_missing_solvers() -> None:
    from pluriverse import options

    for name in ("MPMOptions", "FEMOptions", "ToolOptions", "LegacyCouplerOptions"):
        with pytest.raises(GenesisException, match=f"options.{name}: .* not part of this package"):
            getattr(options, name)(dt=1)
