"""Twenty Pandas at once, on a GPU if there is one: all hold a pose, then three of them leave it.

python examples/parallel_simulation.py
"""

from __future__ import annotations

import argparse

import torch

import pluriverse as gs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--n_envs", type=int, default=20)
    args = parser.parse_args()

    gs.init(backend=gs.gpu)

    scene = gs.Scene(
        show_viewer=False,
        viewer_options=gs.options.ViewerOptions(camera_pos=(3.5, -1.0, 2.5), camera_lookat=(0.0, 0.0, 0.5)),
        rigid_options=gs.options.RigidOptions(dt=0.01),
    )
    scene.add_entity(gs.morphs.Plane())
    franka = scene.add_entity(gs.morphs.MJCF(file="xml/franka_emika_panda/panda.xml"))

    scene.build(n_envs=args.n_envs, env_spacing=(1.0, 1.0))

    # One row for each environment; a single row would do as well.
    pose = torch.tensor([0, 0, 0, -1.0, 0, 1.0, 0, 0.02, 0.02], device=gs.device)
    franka.control_dofs_position(pose.tile(args.n_envs, 1))
    for _ in range(args.steps):
        scene.step()
    assert bool(((franka.get_qpos() - pose).abs() < 0.02).all()), "an arm does not hold its pose"

    # A part of the environments: packed rows, one for each index.
    chosen = torch.tensor([1, 5, 7], device=gs.device)
    franka.control_dofs_position(torch.tensor([0.5, -0.5], device=gs.device), dofs_idx_local=[0, 1], envs_idx=chosen)
    for _ in range(args.steps):
        scene.step()

    shoulder = franka.get_dofs_position([0, 1])
    print(f"first two joints of environments 0 and 1: {shoulder[:2].tolist()}")
    assert bool((shoulder[chosen] - shoulder.new_tensor([0.5, -0.5])).abs().max() < 0.05), "the three did not move"
    assert shoulder[0].abs().max() < 0.02, "another one moved"


if __name__ == "__main__":
    main()
