"""The step and the kinematics of one model as compiled kernels."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from pluriverse.control_delays import memory_size
from pluriverse.control_laws import general_actuators, one_law_each
from pluriverse.dynamics.body_states import BODY_STATE_ROWS, body_states
from pluriverse.dynamics.fluid import has_medium
from pluriverse.dynamics.tree import Tree, lane_groups, merge_fixed_bodies
from pluriverse.looped_step import all_finite, loops_pay, step_in_loops
from pluriverse.model import Model, array_fields
from pluriverse.runtime import runtime
from pluriverse.smooth import lane_dofs
from pluriverse.status_bits import NON_FINITE, UNCONVERGED, number_of
from pluriverse.step import Inputs, StepSettings, finite, solver_path, step
from pluriverse.trace.functions import logical_not, select
from pluriverse.trace.kernel import Kernel, Launcher
from pluriverse.trace.program import Program
from pluriverse.trace.source import Target, cached_source

if TYPE_CHECKING:
    import torch

MOST_DUPLICATION = 1.75  # how often lanes may compute the trunk again: bodies computed on all lanes over bodies


class Batch(Protocol):
    """The tensors of a batch of environments, (rows, n_padded) each, environment index fastest (see `state.State`)."""

    n_envs: int
    n_padded: int
    qpos: torch.Tensor
    qvel: torch.Tensor
    qacc: torch.Tensor
    act: torch.Tensor
    mocap: torch.Tensor
    control: torch.Tensor  # (laws, 5, n_padded)
    ctrl: torch.Tensor
    eq_active: torch.Tensor
    friction: torch.Tensor
    gravity: torch.Tensor
    status: torch.Tensor
    status_alarm: torch.Tensor  # int32 in host memory, by `status_bits.BITS`: 0 while no environment has that bit


class StepKernel:
    """Steps a batch of environments of one model on one device."""

    def __init__(self, model: Model, settings: StepSettings, device: torch.device, dtype: torch.dtype) -> None:
        folded = [model.jnt_actfrcrange, model.geom_friction[:, 1:]]  # of the inputs, what has no buffer
        if general_actuators(model):
            folded += [getattr(model, f.name) for f in array_fields() if f.name.startswith("actuator_")]
        key = f"{model.fingerprint()}|{settings}|{'|'.join(array.tobytes().hex() for array in folded)}"
        lanes = lane_count(model, settings) if device.type == "cuda" else 1
        together = _target(device, dtype).together
        self._kernel = _compiled(
            "step", f"{key}|{lanes}", device, dtype, lambda: trace_step(model, settings, lanes, together)
        )
        self._launcher: Launcher | None = None
        self._batch: Batch | None = None

    def launch(self, state: Batch, n_steps: int) -> None:
        """Advances every environment by n_steps steps, in place; asynchronous on CUDA (torch's current stream)."""
        if self._launcher is None or state is not self._batch:
            self._batch = state
            source = self._kernel.source
            arrays = {name: getattr(state, name) for name in (*source.buffers, *source.flags, *source.alarms)}
            self._launcher = _bound(self._kernel, state, arrays)
        self._launcher.launch(n_steps)


class KinematicsKernel:
    """Computes the pose and velocity of every body, moving or not."""

    def __init__(self, model: Model, device: torch.device, dtype: torch.dtype) -> None:
        self._kernel = _compiled("kinematics", model.fingerprint(), device, dtype, lambda: trace_kinematics(model))
        self._launcher: Launcher | None = None
        self._bound: tuple[Batch, torch.Tensor] | None = None

    def launch(self, state: Batch, poses: torch.Tensor) -> None:
        """Writes poses (nbody, 13, N): xpos, xquat (wxyz), angular velocity, linear velocity of the frame origin;
        world axes."""
        if self._launcher is None or self._bound is None or self._bound[0] is not state or self._bound[1] is not poses:
            self._bound = (state, poses)
            arrays = {name: getattr(state, name) for name in self._kernel.source.buffers if name != "poses"}
            self._launcher = _bound(self._kernel, state, arrays | {"poses": poses})
        self._launcher.launch()


def trace_step(model: Model, settings: StepSettings, lanes: int = 1, together: int = 1) -> Program:
    """The program of `n_steps` steps of one environment. together: environments of a CPU vector (see `Program`)."""
    run = Program(lanes, together)
    qpos, qvel, qacc = (run.buffer(name) for name in ("qpos", "qvel", "qacc"))
    inputs = Inputs.of(model, run)
    status = run.flag_row("status")
    n_steps = run.count("n_steps")
    tree = Tree(model, run, inputs.mocap)
    if loops_pay(tree, settings):
        _trace_in_loops(tree, settings, inputs, (qpos, qvel, qacc), status, n_steps)
        return run
    q = {rows[0]: (rows, run.variable(qpos.read(_row(rows)))) for rows in lane_rows(tree)}
    dofs = lane_dofs(tree)
    v, a = ({d: run.variable(buffer.read(_row(lanes_))) for d, lanes_ in dofs.items()} for buffer in (qvel, qacc))
    act = run.buffer("act") if memory_size(model) else None
    w = [run.variable(act.read(k)) for k in range(memory_size(model))] if act else []
    alive = run.variable(logical_not(status.test(NON_FINITE)))
    exhausted = run.variable(False)
    for _ in run.range(n_steps):
        positions = [q[k][1].value if k in q else None for k in range(model.nq)]
        velocities = [v[d].value if d in v else None for d in range(model.nv)]
        accelerations = {d: run.variable(variable.value) for d, variable in a.items()}
        activations = [variable.value for variable in w]
        new_q, new_v, new_w, unconverged = step(
            tree, positions, velocities, activations, accelerations, inputs, settings
        )
        healthy = logical_not(run.lane_any(logical_not(finite([*new_q.values(), *new_v.values(), *new_w]))))
        alive.value = alive.value & healthy  # an environment that is not finite stays as it was before
        exhausted.value = exhausted.value | unconverged
        for k, (_rows, variable) in q.items():
            variable.value = select(alive.value, new_q[k], positions[k])
        for d in dofs:
            v[d].value = select(alive.value, new_v[d], velocities[d])
            a[d].value = select(alive.value, accelerations[d].value, a[d].value)
        for k, variable in enumerate(w):
            variable.value = select(alive.value, new_w[k], activations[k])
    for rows, variable in q.values():
        qpos.write(rows, variable.value)
    for d, lanes_ in dofs.items():
        qvel.write(lanes_, v[d].value)
        qacc.write(lanes_, a[d].value)
    if act:
        for k, variable in enumerate(w):
            act.write(k, variable.value)
    status.raise_where(logical_not(alive.value), NON_FINITE, number_of(NON_FINITE))
    status.raise_where(exhausted.value, UNCONVERGED, number_of(UNCONVERGED))
    return run


def _trace_in_loops(
    tree: Tree, settings: StepSettings, inputs: Inputs, buffers: tuple[Any, Any, Any], status: Any, n_steps: Any
) -> None:
    """`trace_step` with the state in arrays."""
    run, model = tree.run, tree.model
    state = [(run.array(size), size, buffer) for size, buffer in zip((model.nq, model.nv, model.nv), buffers)]
    qpos, qvel, qacc = (array for array, _, _ in state)
    for array, size, buffer in state:
        for i in run.range(size):
            array[i] = buffer.read(i)
    alive = run.variable(logical_not(status.test(NON_FINITE)))
    exhausted = run.variable(False)
    for _ in run.range(n_steps):
        acceleration = run.array(model.nv, scratch=True)
        for i in run.range(model.nv):
            acceleration[i] = qacc[i]
        new_q, new_v, unconverged = step_in_loops(tree, qpos, qvel, acceleration, inputs, settings)
        alive.value = alive.value & all_finite(run, (new_q, model.nq), (new_v, model.nv))
        exhausted.value = exhausted.value | unconverged
        for (old, size, _), new in zip(state, (new_q, new_v, acceleration)):
            for i in run.range(size):
                old[i] = select(alive.value, new[i], old[i])
    for array, size, buffer in state:
        for i in run.range(size):
            buffer.write(i, array[i])
    status.raise_where(logical_not(alive.value), NON_FINITE, number_of(NON_FINITE))
    status.raise_where(exhausted.value, UNCONVERGED, number_of(UNCONVERGED))


def trace_kinematics(model: Model) -> Program:
    """The program of body poses and velocities of one environment."""
    run = Program()
    qpos, qvel, poses = (run.buffer(name) for name in ("qpos", "qvel", "poses"))
    tree = Tree(model, run, run.buffer("mocap") if model.nmocap else None)
    states = body_states(tree, [qpos.read(k) for k in range(model.nq)], [qvel.read(d) for d in range(model.nv)])
    for body, numbers in enumerate(states):
        for k, number in enumerate(numbers):
            poses.write(BODY_STATE_ROWS * body + k, number)
    return run


def lane_count(model: Model, settings: StepSettings) -> int:
    """Lanes of an environment on CUDA: as many as alike limbs fill, if the trunk is not computed again too often.

    It depends on the model alone, never on the number of environments, so that results do not either.
    """
    shares_no_code = model.ntendon or not one_law_each(model) or has_medium(model) or settings.integrator == "implicit"
    if solver_path(model, settings) != "sweep" or shares_no_code:
        return 1
    merged = merge_fixed_bodies(model)
    bodies = sum(model.body_treeid[body] >= 0 for body in merged)
    for lanes in (4, 2):
        if len(lane_groups(model, merged, lanes)) * lanes <= MOST_DUPLICATION * bodies:
            return lanes
    return 1


def lane_rows(tree: Tree) -> list[tuple[int, ...]]:
    """Rows of qpos by lane."""
    joints = [joint for node in tree.nodes for joint in node.joints]
    return [tuple(q + k for q in joint.qpos) for joint in joints for k in range(joint.qpos_width)]


def _row(rows: tuple[int, ...]) -> Any:
    return rows if len(set(rows)) > 1 else rows[0]


def _compiled(stem: str, key: str, device: torch.device, dtype: torch.dtype, trace: Callable[[], Program]) -> Kernel:
    runtime.warp()
    target = _target(device, dtype)
    folder = runtime.cache_dir() / "kernels"
    return Kernel(cached_source(folder, stem, key, target, trace), target, runtime.warp_device(), folder)


def _target(device: torch.device, dtype: torch.dtype) -> Target:
    return Target(cuda=device.type == "cuda", double=dtype.itemsize == 8)


def _bound(kernel: Kernel, state: Batch, arrays: dict[str, torch.Tensor]) -> Launcher:
    return kernel.bind(arrays, state.n_envs, state.n_padded, len(os.sched_getaffinity(0)))
