"""The State of a batch of environments: everything that a step reads and writes, as torch tensors."""

from __future__ import annotations

import numpy as np
import torch

from pluriverse.control_delays import memory_size
from pluriverse.control_laws import control_laws
from pluriverse.model import Model
from pluriverse.solver.broadcasting import column, copy_envs, fill_envs
from pluriverse.solver.indexing import Envs
from pluriverse.status_bits import BITS, CONTACT_OVERFLOW, NON_FINITE, UNCONVERGED
from pluriverse.trace.source import Target

STATUS_NON_FINITE = NON_FINITE  # the environment met a NaN or an infinity; it is frozen until it is reset
STATUS_SOLVER_LIMIT = UNCONVERGED  # the constraint solver has stopped at its iteration limit
STATUS_CONTACT_OVERFLOW = CONTACT_OVERFLOW  # contacts were lost, because there was no room for them

_CPU_LANES = 16  # environments in one vector of a CPU kernel


class State:
    """Tensors of shape (rows, N), environment index fastest. Kernels and CUDA graphs hold their addresses.

    They are allocated once. N is n_envs on CUDA. On the CPU it is rounded up to a multiple of 16; the padding holds
    environments that nobody reads. `n_envs=0` is stored as one environment.

    qpos: (nq, N), [m] and [rad], a free joint as xyz + wxyz.
    qvel: (nv, N), a free joint as linear velocity in world axes and angular velocity in body axes.
    qacc: (nv, N), the last acceleration, from which the constraint solver starts.
    act: (memory_size, N), activations of stateful actuators, then the past controls of delayed ones.
    mocap: (7 nmocap, N), position [m] and quaternion of each body that is moved from outside.
    ctrl: (nu, N), controls of the actuators that are no control law.
    eq_active: (neq, N), 1 where an equality constraint acts, else 0.
    friction: (ngeom, N), sliding friction.
    gravity: (3, N), [m/s^2], world frame.
    control: (n_laws, 5, N), the coefficients (c0, c1, c2, lo, hi) of `control_laws`.
    status: (1, N) int32, the STATUS bits.
    status_alarm: (3,) int32 in host memory by bit, 0 until it has risen in some environment: kernels write it. Of
        lost contacts it says for how many there should have been room, in `together` environments.
    """

    def __init__(self, model: Model, n_envs: int, device: torch.device, dtype: torch.dtype) -> None:
        self.n_envs = max(n_envs, 1)
        self.together = Target(device.type == "cuda", dtype.itemsize == 8).together  # environments that share lists
        self.n_padded = self.n_envs if device.type == "cuda" else -(-self.n_envs // _CPU_LANES) * _CPU_LANES
        # One buffer behind five names, so that a reset is one copy.
        self.parts = (model.nq, model.nv, model.nv, memory_size(model), 7 * model.nmocap)
        self.motion = torch.zeros(sum(self.parts), self.n_padded, dtype=dtype, device=device)
        self.qpos, self.qvel, self.qacc, self.act, self.mocap = self.motion.split(self.parts)
        self.ctrl = self.motion.new_zeros(model.nu, self.n_padded)
        self.eq_active = self.motion.new_zeros(model.neq, self.n_padded)
        self.friction = self.motion.new_zeros(model.ngeom, self.n_padded)
        self.gravity = self.motion.new_zeros(3, self.n_padded)
        self.control = self.motion.new_zeros(len(control_laws(model)), 5, self.n_padded)
        self.status = self.motion.new_zeros(1, self.n_padded, dtype=torch.int32)
        self.status_alarm = torch.zeros(len(BITS), dtype=torch.int32, pin_memory=device.type == "cuda")
        self.qpos.copy_(column(model.qpos0, self.qpos))
        self.mocap.copy_(column(mocap_rest(model), self.mocap))
        self.eq_active.copy_(column(model.eq_active0.astype(float), self.eq_active))
        self.friction.copy_(column(model.geom_friction[:, 0], self.friction))

    @property
    def nbytes(self) -> int:
        """Bytes of device memory that the tensors hold."""
        return sum(tensor.nbytes for tensor in self.saved().values())

    def saved(self) -> dict[str, torch.Tensor]:
        """The live tensors (..., N) that a saved state holds."""
        names = ("motion", "friction", "gravity", "control", "ctrl", "eq_active", "status")
        return {name: getattr(self, name) for name in names}

    def copy_motion(self) -> torch.Tensor:
        """(rows, N): a copy of qpos, qvel, qacc, act and mocap, for `restore_motion`."""
        return self.motion.clone()

    def restore_motion(self, motion: torch.Tensor, envs: Envs) -> None:
        """Puts the chosen environments back into a copied motion and marks them as healthy.

        The warm start comes with it, so that nothing of what an environment did before, a NaN included, is left.
        """
        copy_envs(self.motion, motion, envs)
        fill_envs(self.status, envs, 0)

    def forget_past(self, envs: Envs) -> None:
        """To be called when a setter has replaced a part of the motion: drops the warm start, which belonged to the
        motion before, and unfreezes the environment."""
        fill_envs(self.qacc, envs, 0.0)
        fill_envs(self.status, envs, 0)


def mocap_rest(model: Model) -> np.ndarray:
    """(7 nmocap,) where the model puts its mocap bodies, whose parent is the world."""
    bodies = [int(np.flatnonzero(model.body_mocapid == k)[0]) for k in range(model.nmocap)]
    return np.concatenate([np.zeros(0), *(x for b in bodies for x in (model.body_pos[b], model.body_quat[b]))])
