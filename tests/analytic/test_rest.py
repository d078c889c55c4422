"""What stands still stays still, and the solver has nothing to do there."""

from __future__ import annotations

from types import ModuleType

import torch


def test_a_settled_scene_converges(gs_cpu: ModuleType) -> None:
    """A box on the floor and an arm that holds a pose: no environment runs out of iterations, and nothing creeps."""
    scene = gs_cpu.Scene(
        rigid_options=gs_cpu.options.RigidOptions(strict=True, integrator="approximate_implicitfast"), show_FPS=False
    )
    scene.add_entity(gs_cpu.morphs.Plane())
    box = scene.add_entity(gs_cpu.morphs.Box(size=(0.2, 0.2, 0.2), pos=(1.0, 0.0, 0.1)))
    arm = scene.add_entity(gs_cpu.morphs.MJCF(file="xml/franka_emika_panda/panda.xml"))
    scene.build(n_envs=2)
    pose = torch.tensor([0.0, -0.3, 0.0, -2.0, 0.0, 1.8, 0.8, 0.02, 0.02])
    arm.set_qpos(pose)
    arm.control_dofs_position(pose)
    for _ in range(200):
        scene.step()
    settled = box.get_pos()
    for _ in range(400):
        scene.step()
    assert not scene.rigid_solver.get_unconverged_envs_mask().any()
    assert (box.get_pos() - settled).abs().max() < 1e-4
    assert arm.get_dofs_velocity().abs().max() < 1e-3
