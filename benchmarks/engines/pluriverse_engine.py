"""pluriverse through its public API: `control_actuators` and `scene.step()`, called from Python or in a graph."""

from __future__ import annotations

from typing import Any

import torch

import pluriverse as gs
from engines.base import Health, Motion, Steppable
from scenes import Case


class PluriverseEngine(Steppable):
    """One `scene.step()` after another, called from Python. `gs.init` must have been called."""

    name = "pluriverse"

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        dt = float(case.model.opt.timestep)
        self.scene = gs.Scene(
            sim_options=gs.options.SimOptions(dt=dt * case.substeps, substeps=case.substeps),
            profiling_options=gs.options.ProfilingOptions(show_FPS=False),
            show_viewer=False,
        )
        self.scene.add_entity(gs.morphs.MJCF(file=str(case.file), use_file_options=True))
        self.scene.build(n_envs=case.n_envs)
        self.solver = self.scene.sim.rigid_solver
        sizes = {name: getattr(self.solver.model, name) for name in ("nq", "nv", "nu")}
        expected = {name: getattr(case.model, name) for name in sizes}
        if sizes != expected:
            raise RuntimeError(f"pluriverse has built a model with {sizes}; MuJoCo has {expected}.")
        self._controls = [torch.as_tensor(c, dtype=gs.tc_float, device=gs.device) for c in case.controls]
        self.solver.set_qpos(torch.as_tensor(case.qpos, dtype=gs.tc_float, device=gs.device))
        self.solver.set_dofs_velocity(0.0)
        self.scene.reset(self.scene.get_state())  # makes it the state that a reset goes back to
        self.settings = {"path": "scene.step() called from Python", "precision": str(gs.tc_float)}

    def restart(self) -> None:
        self.scene.reset()
        self.command(0)  # after a reset the first command also writes gains; later ones write targets only

    def command(self, block: int) -> None:
        if self.case.model.nu:
            self.solver.control_actuators(self._controls[block])

    def advance(self, steps: int) -> None:
        for _ in range(steps // self.case.substeps):
            self.scene.step()

    def wait(self) -> None:
        if gs.device is not None and gs.device.type == "cuda":
            torch.cuda.synchronize(gs.device)

    def motion(self) -> Motion:
        solver = self.solver
        parts = (solver.get_qpos(), solver.get_dofs_velocity(), solver.get_dofs_acc())
        return Motion(*(part.double().cpu().numpy() for part in parts))

    def health(self) -> Health:
        frozen = self.solver.get_error_envs_mask().cpu().numpy()
        return Health(int((frozen | ~self.motion().finite()).sum()), _unconverged(self.solver), overflow=0)


class PluriverseGraphEngine(PluriverseEngine):
    """The steps between two controls captured once with `torch.cuda.graph`, as a training loop would, and replayed."""

    name = "pluriverse_graph"

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.settings["path"] = "scene.step() captured in a torch.cuda.CUDAGraph of the steps between two controls"
        stream = torch.cuda.Stream(gs.device)
        self.restart()
        stream.wait_stream(torch.cuda.current_stream(gs.device))
        with torch.cuda.stream(stream):
            self.scene.step()  # nothing is to happen for the first time while capturing
        stream.synchronize()
        self._graphs: dict[int, Any] = {}
        for steps in set(case.lengths):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=stream):
                super().advance(steps)
            self._graphs[steps] = graph

    def run(self) -> None:
        for block, steps in self.case.blocks():
            self.command(block)
            self._graphs[steps].replay()


def _unconverged(solver: Any) -> int | None:
    """Environments whose solver stopped at its limit, where the solver tells."""
    mask = getattr(solver, "get_unconverged_envs_mask", None)
    return None if mask is None else int(mask().sum())
