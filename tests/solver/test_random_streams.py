"""Random streams: the published numbers of Philox, independence of batch and rank, and what each call draws."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
import torch

import pluriverse as gs


def scene(n_envs: int, first_env: int = 0) -> gs.Scene:
    made = gs.Scene(show_FPS=False)
    made.add_entity(gs.morphs.Box(size=(0.1, 0.1, 0.1)))
    made.build(n_envs=n_envs, first_env=first_env)
    return made


@pytest.fixture
def seeded() -> ModuleType:
    gs.init(backend=gs.cpu, seed=5, logging_level="warning")
    yield gs
    gs.destroy()


def test_philox_gives_the_numbers_of_its_authors(gs_cpu: ModuleType) -> None:
    """The known answers of Random123, philox4x32-10: counter words (block, draw low, draw high, purpose)."""
    from pluriverse.runtime import runtime

    runtime.warp()
    from pluriverse.solver.philox import philox

    zero = philox(torch.zeros(1, dtype=torch.int64), torch.zeros(1, dtype=torch.int64), 0, 0, 4)
    assert [f"{word:08x}" for word in zero[0].tolist()] == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]
    # The third known answer, from the digits of pi, has a first counter word that no block number reaches: numpy's
    # kin of the generator, written here in plain integers, stands for the general case.
    draws, env, seed, purpose = 0x0370734413198A2E % 2**62, 0x299F31D0, 0xA4093822, 0x03707344
    words = philox(torch.tensor([draws]), torch.tensor([env]), seed, purpose, 8)[0].tolist()
    for block in (0, 1):
        counter = (block, draws % 2**32, draws >> 32, purpose)
        assert words[4 * block : 4 * block + 4] == plain_philox(counter, (seed, env))
    assert [
        f"{w:08x}" for w in plain_philox((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0))
    ] == [*("d16cfe09", "94fdcceb", "5001e420", "24126ea1")]


def plain_philox(counter: tuple[int, ...], key: tuple[int, int]) -> list[int]:
    c, (k0, k1) = list(counter), key
    for _ in range(10):
        first, second = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [second >> 32 ^ c[1] ^ k0, second % 2**32, first >> 32 ^ c[3] ^ k1, first % 2**32]
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return c


def test_an_environment_draws_the_same_in_every_batch(seeded: ModuleType) -> None:
    whole, part = scene(8), scene(3, first_env=2)
    for draw in (
        lambda s: s.random_stream("a").uniform((2, 3), -1.0, 2.0),
        lambda s: s.random_stream("a").normal(4),
        lambda s: s.random_stream("b").integers(-3, 9, (5,)),
    ):
        expected, found = draw(whole), draw(part)
        assert torch.equal(expected[2:5], found)
        assert not torch.equal(expected[0], expected[1])


def test_purposes_draws_and_seeds_differ(seeded: ModuleType) -> None:
    made = scene(4)
    stream = made.random_stream("a")
    assert stream is made.random_stream("a")
    first, second, other = stream.uniform(3), stream.uniform(3), made.random_stream("b").uniform(3)
    assert not torch.equal(first, second)
    assert not torch.equal(first, other)
    gs.destroy()
    gs.init(backend=gs.cpu, seed=6, logging_level="warning")
    assert not torch.equal(first, scene(4).random_stream("a").uniform(3))


@pytest.mark.parametrize("index", [[2, 0], torch.tensor([2, 0]), np.array([True, False, True, False])])
def test_only_the_chosen_environments_draw(seeded: ModuleType, index: object) -> None:
    made, untouched = scene(4), scene(4)
    chosen = made.random_stream("a").uniform(2, envs_idx=index)
    expected = untouched.random_stream("a").uniform(2)
    order = [0, 2] if isinstance(index, np.ndarray) else [2, 0]
    assert torch.equal(chosen, expected[order])
    after = made.random_stream("a").uniform(2)
    assert torch.equal(after[[1, 3]], expected[[1, 3]])  # their first draw
    assert torch.equal(after[[0, 2]], untouched.random_stream("a").uniform(2)[[0, 2]])  # their second


def test_distributions(seeded: ModuleType) -> None:
    stream = scene(50).random_stream("a")
    uniform, normal, integers = (
        stream.uniform(4000, -1.0, 3.0),
        stream.normal(4000, 2.0, 0.5),
        stream.integers(0, 7, 4000),
    )
    n = uniform.numel()
    assert uniform.min() >= -1.0
    assert uniform.max() <= 3.0
    assert abs(uniform.mean().item() - 1.0) < 5 * (4 / 12**0.5) / n**0.5
    assert abs(normal.mean().item() - 2.0) < 5 * 0.5 / n**0.5
    assert abs(normal.std().item() - 0.5) < 5 * 0.5 / (2 * n) ** 0.5
    counts = torch.bincount(integers.flatten(), minlength=7).float()
    assert counts.shape == (7,)
    assert ((counts - n / 7).square() / (n / 7)).sum() < 30  # chi squared of 6 degrees of freedom


def test_without_environment_axis(seeded: ModuleType) -> None:
    made = scene(0)
    assert made.random_stream("a").uniform().shape == ()
    assert made.random_stream("a").normal((2, 3)).shape == (2, 3)


def test_double_precision_fills_the_mantissa() -> None:
    gs.init(backend=gs.cpu, seed=5, precision="64", logging_level="warning")
    values = scene(4).random_stream("a").uniform(1000)
    assert values.dtype == torch.float64
    assert (values != values.float().double()).float().mean() > 0.99
    gs.destroy()


def test_wrong_arguments_are_refused(seeded: ModuleType) -> None:
    made = scene(4)
    with pytest.raises(gs.GenesisException, match="purpose=''"):
        made.random_stream("")
    with pytest.raises(gs.GenesisException, match="high must lie above low"):
        made.random_stream("a").integers(3, 3)
    with pytest.raises(gs.GenesisException, match="shape=-1"):
        made.random_stream("a").uniform(-1)
    with pytest.raises(gs.GenesisException, match="names 1 more than once"):
        made.random_stream("a").uniform(envs_idx=[1, 1])
    with pytest.raises(gs.GenesisException, match="first_env=-1"):
        gs.Scene(show_FPS=False).build(n_envs=2, first_env=-1)
