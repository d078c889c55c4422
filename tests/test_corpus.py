"""Every model file of the packages at hand but the large ones: it builds, or is refused by the names of what is
unsupported in it. `full/test_corpus.py` holds all of them against MuJoCo."""

from __future__ import annotations

from types import SimpleNamespace

import mujoco
import numpy as np
import pytest

import corpus
from corpus_checks import differing_fields
from physics_reference import FloatStep, samples
from pluriverse.errors import GenesisException
from pluriverse.importers.scene_spec import EntitySource, compile_scene
from pluriverse.materials import Rigid
from pluriverse.model import Model, array_fields
from pluriverse.morphs import MJCF
from pluriverse.options import RigidOptions, SimOptions
from pluriverse.surfaces import Default

ROUNDING = 1e-12  # of arrays that a scene's compilation may round otherwise than the file's own


@pytest.fixture(scope="module", params=corpus.quick())
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def test_the_model_is_what_mujoco_compiles(name: str) -> None:
    mj_model = corpus.compiled(name)
    assert not differing_fields(Model.from_mujoco(mj_model), mj_model)


def test_it_steps_or_is_refused_by_name(name: str) -> None:
    mj_model = corpus.compiled(name)
    if corpus.refusals(mj_model):
        return
    (sample,) = samples(mj_model, 1)
    result = FloatStep(mj_model, sample).result()
    assert all(np.isfinite(part).all() for part in vars(result).values())


def test_it_means_the_same_in_a_scene(name: str) -> None:
    mj_model = corpus.compiled(name)
    if corpus.refusals(mj_model):
        return
    source = EntitySource("it", MJCF(file=str(corpus.files()[name]), use_file_options=True), Rigid(), Default())
    scene = compile_scene([source], SimOptions(), RigidOptions()).model
    model = Model.from_mujoco(mj_model)
    assert not _differences(scene, model)
    assert scene.opt.spelled() == model.opt.spelled()


def _differences(scene: Model, model: Model) -> list[str]:
    """The arrays in which the two differ. `<size nkey>` fills up with keyframes that hold nothing: they may lack."""
    keys = len(scene.key_names)
    wrong = []
    for field in array_fields():
        ours, theirs = getattr(scene, field.name), getattr(model, field.name)
        if field.name.startswith("key_"):
            theirs = theirs[:keys]
        if ours.shape != theirs.shape or not np.allclose(ours, theirs, rtol=ROUNDING, atol=ROUNDING, equal_nan=True):
            wrong.append(field.name)
    return wrong


@pytest.mark.parametrize(
    ("findings", "named"),
    [
        ("  - actuator 'a', number 3 (unnamed): has activation dynamics", True),
        ("  - panda: geom number 1 (unnamed, of body 'world'): collides as a height field", True),
        ("  - option mjINT_RK4: supported are Euler and implicitfast", True),
        ("  - a tendon acts", False),
        ("", False),
    ],
)
def test_a_refusal_must_name_elements(findings: str, named: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(mj_model: mujoco.MjModel) -> None:
        raise GenesisException(f"The model uses what is not supported yet:\n{findings}\nRemove these elements.")

    monkeypatch.setattr(corpus, "refuse_unsupported", refuse)
    if named:
        assert corpus.refusals(SimpleNamespace()) == [findings[4:]]
    else:
        with pytest.raises(AssertionError):
            corpus.refusals(SimpleNamespace())
