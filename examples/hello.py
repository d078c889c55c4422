"""The smallest program: one Panda over a plane, limp, falling into its joint limits.

python examples/hello.py
"""

from __future__ import annotations

import argparse

import pluriverse as gs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1000)
    args = parser.parse_args()

    gs.init(backend=gs.cpu)

    scene = gs.Scene()
    scene.add_entity(gs.morphs.Plane())
    franka = scene.add_entity(gs.morphs.MJCF(file="xml/franka_emika_panda/panda.xml"))

    scene.build()
    for _ in range(args.steps):
        scene.step()

    qpos = franka.get_qpos()
    print(f"after {scene.get_time().item():.2f} s the joints are at {[round(q, 4) for q in qpos.tolist()]}")

    lower, upper = franka.get_dofs_limit()
    slack = 0.05  # limits are soft
    assert bool(((qpos > lower - slack) & (qpos < upper + slack)).all()), "a joint left its range"


if __name__ == "__main__":
    main()
