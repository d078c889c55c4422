"""The State's layout, and that a reset leaves nothing of the past in the environments it names and touches no other."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch

from kernel_doubles import ARM_AND_BALL
from pluriverse.model import Model
from pluriverse.solver.indexing import EnvAxis, Envs
from pluriverse.solver.state import STATUS_NON_FINITE, State

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def model() -> Model:
    return Model.from_mujoco(mujoco.MjModel.from_xml_string(ARM_AND_BALL))


@pytest.mark.parametrize(("n_envs", "padded"), [(0, 16), (1, 16), (16, 16), (17, 32)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_layout(model: Model, n_envs: int, padded: int, dtype: torch.dtype) -> None:
    state = State(model, n_envs, CPU, dtype)
    assert (state.n_envs, state.n_padded) == (max(n_envs, 1), padded)
    rows = {
        "qpos": (model.nq,),
        "qvel": (model.nv,),
        "qacc": (model.nv,),
        "friction": (model.ngeom,),
        "gravity": (3,),
        "ctrl": (model.nu,),
        "eq_active": (model.neq,),
        "act": (model.na,),
        "mocap": (7 * model.nmocap,),
        "control": (model.nv + 1, 5),  # one further law: the slide has two actuators
        "status": (1,),
    }
    for name, shape in rows.items():
        tensor = getattr(state, name)
        assert tensor.shape == (*shape, padded)
        assert tensor.is_contiguous()
        assert tensor.dtype == (torch.int32 if name == "status" else dtype)
    assert state.nbytes == sum(getattr(state, name).nbytes for name in rows)
    # The padding too: a kernel steps it, and a quaternion of zeros would be a NaN.
    np.testing.assert_allclose(state.qpos.numpy(), np.tile(model.qpos0[:, None], padded), rtol=1e-6)
    np.testing.assert_allclose(state.friction.numpy(), np.tile(model.geom_friction[:, :1], padded), rtol=1e-6)


def masks() -> list[Envs]:
    axis, mask = EnvAxis(5, CPU), torch.tensor([False, True, False, True, False])
    on_device = Envs(None, mask, 5, 5, True, from_mask=True, faults=axis.faults)
    return [axis.select([1, 3]), axis.select(mask), on_device]


@pytest.mark.parametrize("envs", masks(), ids=["indices", "host mask", "device mask"])
def test_reset_of_a_subset(model: Model, envs: Envs) -> None:
    state = State(model, 5, CPU, torch.float32)
    initial = state.copy_motion()
    addresses = [t.data_ptr() for t in (state.qpos, state.qvel, state.qacc, state.status)]
    for tensor in (state.qpos, state.qvel, state.qacc):
        tensor.fill_(float("nan"))
    state.status.fill_(STATUS_NON_FINITE)
    state.restore_motion(initial, envs)
    torch.testing.assert_close(state.motion[:, [1, 3]], initial[:, [1, 3]])
    assert state.status[0, :5].tolist() == [1, 0, 1, 0, 1]
    assert state.motion[:, [0, 2, 4]].isnan().all()
    assert addresses == [t.data_ptr() for t in (state.qpos, state.qvel, state.qacc, state.status)]


def test_a_setter_forgets_the_warm_start_of_its_environments(model: Model) -> None:
    state = State(model, 3, CPU, torch.float32)
    state.qacc.fill_(7.0)
    state.forget_past(EnvAxis(3, CPU).select([2]))
    assert state.qacc[0, :3].tolist() == [7, 7, 0]
