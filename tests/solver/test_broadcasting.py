"""One contract says how values spread: checked against numpy for every number of environments and every shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pluriverse.errors import GenesisException
from pluriverse.solver.broadcasting import FINITE_OR_INFINITE, NOT_NEGATIVE, Allowed, Field, spread
from pluriverse.solver.indexing import FAULT_COUNT, EnvAxis, Envs, RowAxis

CPU = torch.device("cpu")
N_ROWS = 4
N_ENVS = [0, 1, 2, 3, 4, 7]


def storage(n_envs: int) -> torch.Tensor:
    padded = 16
    return torch.arange(N_ROWS * padded, dtype=torch.float32).reshape(N_ROWS, padded).clone()


def row_axis() -> RowAxis:
    return RowAxis(np.arange(N_ROWS), CPU, argument="dofs_idx", owner="the solver")


def device_mask(mask: torch.Tensor, axis: EnvAxis) -> Envs:
    """What a mask on a GPU is resolved to, made on the CPU."""
    return Envs(None, mask, axis.total, axis.total, True, from_mask=True, faults=axis.faults)


@st.composite
def cases(draw: st.DrawFn) -> tuple[int, Any, list[int], Any, list[int], Any, np.ndarray]:
    """n_envs, row index, its list, env index, its list, a value, and the (envs, rows) array that it means."""
    n_envs = draw(st.sampled_from(N_ENVS))
    total = max(n_envs, 1)
    rows = draw(st.lists(st.integers(0, N_ROWS - 1), unique=True, min_size=1))
    envs = list(range(total))
    env_index: Any = None
    if n_envs and draw(st.booleans()):
        envs = draw(st.lists(st.integers(0, total - 1), unique=True, min_size=1))
        env_index = draw(st.sampled_from([list, np.array, torch.tensor]))(envs)
    shapes = [(), (len(rows),), (1, len(rows)), (1,)]
    if n_envs:
        shapes += [(len(envs), len(rows)), (len(envs), 1)]
        if len(envs) not in (1, len(rows)):
            shapes.append((len(envs),))
    shape = draw(st.sampled_from(shapes))
    value = np.array(draw(st.lists(st.integers(-9, 9), min_size=int(np.prod(shape)), max_size=int(np.prod(shape)))))
    value = value.reshape(shape).astype(draw(st.sampled_from([np.float32, np.float64, np.int32])))
    per_env = shape == (len(envs),) and shape[0] not in (1, len(rows))
    meant = np.broadcast_to(value[:, None] if per_env else value, (len(envs), len(rows)))
    given_as = draw(st.sampled_from([np.asarray, torch.as_tensor, lambda v: v.tolist()]))
    return n_envs, rows, rows, env_index, envs, given_as(value), meant


@given(cases())
def test_values_spread_like_numpy_says(case: Any) -> None:
    n_envs, row_index, rows, env_index, envs, value, meant = case
    axis, target = EnvAxis(n_envs, CPU), storage(n_envs)
    expected = target.clone().numpy()
    expected[np.ix_(rows, envs)] = meant.T
    chosen_rows, chosen_envs = row_axis().select(row_index), axis.select(env_index)
    Field(target).write(chosen_rows, chosen_envs, spread(value, chosen_envs, len(rows), name="value", like=target))
    np.testing.assert_array_equal(target.numpy(), expected)
    back = Field(target).read(chosen_rows, chosen_envs)
    np.testing.assert_array_equal(back.numpy(), meant if n_envs else meant[0])


@given(st.data())
def test_trailing_axes_stay_together(data: st.DataObject) -> None:
    n_envs = data.draw(st.sampled_from(N_ENVS))
    total = max(n_envs, 1)
    target = torch.zeros(N_ROWS, 3, 16)
    rows = row_axis().select(data.draw(st.sampled_from([None, [2, 0], [1], slice(1, 3)])))
    envs = EnvAxis(n_envs, CPU).select(data.draw(st.sampled_from([None, [total - 1]])) if n_envs else None)
    shapes = [(3,), (rows.count, 3), (1, rows.count, 3)] + ([(envs.count, rows.count, 3)] if n_envs else [])
    shape = data.draw(st.sampled_from(shapes))
    value = torch.randn(shape)
    Field(target).write(rows, envs, spread(value, envs, rows.count, (3,), name="pos", like=target))
    meant = value.expand(envs.count, rows.count, 3)
    torch.testing.assert_close(Field(target).read(rows, envs), meant if n_envs else meant[0])


@pytest.mark.parametrize("resolve", ["host", "device"])
@pytest.mark.parametrize("rows", [[0, 1, 2], [3, 1]])
def test_boolean_mask_takes_broadcast_full_and_packed_rows(resolve: str, rows: list[int]) -> None:
    axis, mask = EnvAxis(4, CPU), torch.tensor([False, True, False, True])
    envs = axis.select(mask) if resolve == "host" else device_mask(mask, axis)
    full = torch.randn(4, len(rows))
    for value, meant in (
        (torch.tensor(5.0), torch.full((2, len(rows)), 5.0)),
        (full[0], full[:1].expand(2, -1)),
        (full, full[mask]),  # a row for each environment of the scene: row i is for environment i
        (full[:2], full[:2]),  # a row for each True
    ):
        target = storage(4)
        before = target.clone()
        Field(target).write(row_axis().select(rows), envs, spread(value, envs, len(rows), name="value", like=target))
        expected = before.clone()
        expected[np.ix_(rows, [1, 3])] = meant.T
        torch.testing.assert_close(target, expected)
    assert not axis.faults.any()


def test_packed_rows_that_do_not_match_a_device_mask_are_noted() -> None:
    axis = EnvAxis(4, CPU)
    envs = device_mask(torch.tensor([False, True, True, True]), axis)
    spread(torch.zeros(2, 3), envs, 3, name="value", like=torch.zeros(1))
    assert axis.faults[FAULT_COUNT] == 1


@pytest.mark.parametrize("shape", [(2,), (2, 3), (3, 2), (1, 3, 3), (0,)])
def test_wrong_shapes_are_refused(shape: tuple[int, ...]) -> None:
    envs = EnvAxis(5, CPU).select(None)
    with pytest.raises(GenesisException, match=r"position: shape .* Allowed: \(\), \(3,\), \(1, 3\), \(5, 3\), \(5,\)"):
        spread(np.zeros(shape), envs, 3, name="position", like=torch.zeros(1))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "position is nan"),
        ([0.0, float("nan"), 0.0], r"position\[1\] is nan"),
        (torch.tensor([[0.0, 0.0, torch.inf]]), r"position\[0, 2\] is inf"),
        (np.array([True, False, True]), "holds bool"),
        (torch.tensor([1j, 0, 0]), "holds torch.complex64"),
        (1e39, r"position is 1e\+39, which does not fit float32"),
        (-(10**400), "position is an integer of 1329 bits, which does not fit float32"),
        ([0, 0, 1e39], r"position\[2\] is 1e\+39, which does not fit float32: the largest number is 3.4e\+38"),
        (np.array([[0, -1e39, 0]]), r"position\[0, 1\] is -1e\+39, which does not fit"),
        (torch.tensor([0, 1e300, 0], dtype=torch.float64), r"position\[1\] is 1e\+300, which does not fit"),
        ("three", "holds <U5"),
        ([[1.0], [2.0, 3.0]], "does not form a rectangular array"),
        (None, "holds object"),
    ],
)
def test_bad_numbers_are_refused_with_their_place(value: Any, message: str) -> None:
    with pytest.raises(GenesisException, match=message):
        spread(value, EnvAxis(0, CPU).select(None), 3, name="position", like=torch.zeros(1))


def test_infinity_where_it_is_allowed() -> None:
    envs = EnvAxis(0, CPU).select(None)
    assert spread(np.inf, envs, 3, name="upper", like=torch.zeros(1), allowed=FINITE_OR_INFINITE).isinf().all()
    with pytest.raises(GenesisException, match="numbers or infinities"):
        spread(np.nan, envs, 3, name="upper", like=torch.zeros(1), allowed=FINITE_OR_INFINITE)
    with pytest.raises(GenesisException, match="does not fit float32"):
        spread(1e39, envs, 3, name="upper", like=torch.zeros(1), allowed=FINITE_OR_INFINITE)


@pytest.mark.parametrize("make", [float, lambda x: [x], np.array, torch.tensor, lambda x: torch.tensor(x).double()])
def test_numbers_out_of_the_allowed_range(make: Any) -> None:
    envs, like = EnvAxis(0, CPU).select(None), torch.zeros(1)
    ratio = Allowed("numbers above 0 and up to 0.1", lowest=0.0, highest=0.1, above=True)
    for value, allowed in ((0.0, NOT_NEGATIVE), (0.1, ratio), (1e30, NOT_NEGATIVE)):
        assert spread(make(value), envs, 1, name="x", like=like, allowed=allowed).item() == np.float32(value)
    for value, allowed in ((-1e-9, NOT_NEGATIVE), (0.0, ratio), (0.11, ratio), (np.inf, ratio), (np.nan, NOT_NEGATIVE)):
        with pytest.raises(GenesisException, match=r"x(\[0\])? is .*; allowed are (finite|numbers above)"):
            spread(make(value), envs, 1, name="x", like=like, allowed=allowed)


def test_the_largest_number_fits() -> None:
    largest = torch.finfo(torch.float32).max
    envs = EnvAxis(0, CPU).select(None)
    for value in (largest, np.nextafter(largest, np.inf), torch.tensor(largest, dtype=torch.float64)):
        given = value if isinstance(value, torch.Tensor) else float(value)
        assert spread(given, envs, 1, name="x", like=torch.zeros(1)).item() == largest


def test_what_is_read_shares_no_memory() -> None:
    source = storage(1)
    for rows in (None, [2], slice(1, 2), [3, 1]):
        for n_envs in (0, 1, 3):
            got = Field(source).read(row_axis().select(rows), EnvAxis(n_envs, CPU).select(None))
            before = got.clone()
            source += 1
            torch.testing.assert_close(got, before)


def test_a_policys_output_with_gradient_may_be_written() -> None:
    target, envs = storage(2), EnvAxis(2, CPU).select(None)
    value = torch.zeros(2, N_ROWS, requires_grad=True)
    Field(target).write(row_axis().select(None), envs, spread(value, envs, N_ROWS, name="value", like=target))
    assert not target.requires_grad


def test_a_field_is_used_again_in_any_mode() -> None:
    """What is remembered of one call serves the next, whatever mode of autograd each is in."""
    field, envs = Field(storage(2)), EnvAxis(2, CPU).select(None)
    modes = (torch.inference_mode(), torch.enable_grad(), torch.no_grad(), torch.inference_mode())
    for k, mode in enumerate(modes):
        for rows in (row_axis().select(None), row_axis().select([3, 1])):
            with mode:
                field.write(rows, envs, torch.full((2, rows.count), float(k)))
                field.write_product(rows, envs, *(torch.full((2, rows.count), float(k + 1)) for _ in range(3)))
                assert (field.read(rows, envs) == (k + 1) + (k + 1) ** 2).all()
                field.write(rows, envs, -1.0)
    assert (field.tensor[:, :2] == -1).all()
    assert not field.tensor.is_inference()


@pytest.mark.parametrize("shape", [(), (3,), (1, 3), (4, 1), (4, 3)])
@pytest.mark.parametrize("rows", [[0, 1, 2], [3, 1, 0]])
def test_a_product_is_written_where_it_was_asked(shape: tuple[int, ...], rows: list[int]) -> None:
    field, base, factor = Field(storage(5)), torch.randn(4, 3), torch.randn(4, 3)
    expected = field.tensor.clone()
    chosen, envs = row_axis().select(rows), EnvAxis(5, CPU).select(slice(1, 5))
    value = spread(torch.randn(shape), envs, 3, name="value", like=field.tensor)
    field.write_product(chosen, envs, base, factor, value, -1.0)
    expected[np.ix_(rows, range(1, 5))] = (base - factor * value).T
    torch.testing.assert_close(field.tensor, expected)
