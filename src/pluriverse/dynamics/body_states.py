"""Pose and velocity of every body of the model, for those who look on."""

from __future__ import annotations

from typing import Any

import numpy as np

from pluriverse.dynamics.kinematics import body_motions, forward_kinematics, unit_quaternion
from pluriverse.dynamics.spatial import add, cross, matvec, quaternion_product, scale
from pluriverse.dynamics.tree import BALL, FREE, HINGE, FixedBody, Node, Tree, rotation, tidy
from pluriverse.trace.functions import cos, sin

BODY_STATE_ROWS = 13  # position (3), quaternion (4), angular velocity (3), linear velocity of the frame origin (3)


def body_states(tree: Tree, qpos: list[Any], qvel: list[Any]) -> list[list[Any]]:
    """The 13 numbers of each body, in world axes: xpos, xquat (wxyz), angular velocity, velocity of the frame's
    origin."""
    poses = forward_kinematics(tree, qpos)
    motions = body_motions(tree, poses, qvel)
    turns = orientations(tree, qpos)
    states = []
    for body in range(tree.model.nbody):
        place, quaternion = frame_on_carrier(tree, body)
        carrier = tree.carrier_of(body)
        if isinstance(carrier, FixedBody):
            position = add(carrier.position, matvec(carrier.rotation, place))
            states.append([*position, *quaternion_product(unit_quaternion(carrier.quaternion), quaternion), *[0.0] * 6])
            continue
        offset = poses[carrier].point(place)  # from the reference point
        motion = motions[carrier]
        linear = add(motion[3:], cross(motion[:3], offset))
        turn = quaternion_product(turns[carrier], quaternion)
        states.append([*add(poses[carrier].world, offset), *turn, *motion[:3], *linear])
    return states


def orientations(tree: Tree, qpos: list[Any]) -> dict[Node, list[Any]]:
    """The quaternion of each moving body, of the sign that MuJoCo's xquat has: a product from the root on."""
    turns: dict[Node, list[Any]] = {}
    for node in tree.nodes:
        start = turns[node.parent] if node.parent else unit_quaternion(tree.fixed[node.carrier].quaternion)
        body = node.bodies[0]
        _, before = frame_on_carrier(tree, int(tree.model.body_parentid[body]))
        turn = quaternion_product(start, _product(before, tree.model.body_quat[body].tolist()))
        for joint in node.joints:
            row = joint.qpos[0]
            if joint.type == FREE:
                turn = unit_quaternion(qpos[row + 3 : row + 7])
            elif joint.type == BALL:
                turn = quaternion_product(turn, unit_quaternion(qpos[row : row + 4]))
            elif joint.type == HINGE:
                half = (qpos[row] - float(tree.model.qpos0[row])) * 0.5
                turn = quaternion_product(turn, [cos(half), *scale(joint.axis, sin(half))])
        turns[node] = turn
    return turns


def frame_on_carrier(tree: Tree, body: int) -> tuple[list[float], list[float]]:
    """A body's frame in that of the moving or fixed body which carries it: position, quaternion."""
    model = tree.model
    place, turn = np.zeros(3), [1.0, 0.0, 0.0, 0.0]
    while body != int(model.body_weldid[body]):
        place = model.body_pos[body] + rotation(model.body_quat[body]) @ place
        turn = _product(model.body_quat[body].tolist(), turn)
        body = int(model.body_parentid[body])
    return [tidy(x) for x in place], turn


def _product(p: list[float], q: list[float]) -> list[float]:
    """The product of two constant quaternions."""
    return [tidy(x) for x in quaternion_product(p, q)]
