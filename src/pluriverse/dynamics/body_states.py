"""Pose and velocity of every body of the model, for those who look on."""

from __future__ import annotations

from typing import Any

import numpy as np

from pluriverse.dynamics.kinematics import body_motions, forward_kinematics, unit_quaternion
from pluriverse.dynamics.spatial import add, cross, quaternion_product, scale
from pluriverse.dynamics.tree import BALL, FREE, HINGE, Node, Tree, rotation, tidy
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
        place, quaternion = frame_on_moving_body(tree, body)
        weld = int(tree.model.body_weldid[body])
        if weld == 0:
            states.append([*place, *quaternion, *[0.0] * 6])
            continue
        node = tree.node(weld)
        offset = poses[node].point(place)  # from the reference point
        motion = motions[node]
        linear = add(motion[3:], cross(motion[:3], offset))
        turn = quaternion_product(turns[node], quaternion)
        states.append([*add(poses[node].world, offset), *turn, *motion[:3], *linear])
    return states


def orientations(tree: Tree, qpos: list[Any]) -> dict[Node, list[Any]]:
    """The quaternion of each moving body."""
    turns: dict[Node, list[Any]] = {}
    for node in tree.nodes:
        start = turns[node.parent] if node.parent else [1.0, 0.0, 0.0, 0.0]
        fixed = quaternion_from(tree.merged[node.bodies[0]].rotation)
        turn = quaternion_product(start, fixed)
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


def frame_on_moving_body(tree: Tree, body: int) -> tuple[list[float], list[float]]:
    """A body's frame in that of the moving body (or world) which carries it: position, quaternion."""
    model = tree.model
    place, turn = np.zeros(3), np.eye(3)
    while body != int(model.body_weldid[body]):
        R = rotation(model.body_quat[body])
        place, turn = model.body_pos[body] + R @ place, R @ turn
        body = int(model.body_parentid[body])
    return [tidy(x) for x in place], quaternion_from(turn)


def quaternion_from(R: np.ndarray) -> list[float]:
    """The quaternion (wxyz, w >= 0) of a (3, 3) rotation matrix."""
    squares = np.array([np.trace(R), R[0, 0], R[1, 1], R[2, 2]])
    largest = int(squares.argmax())
    if largest == 0:
        q = np.array([1 + squares[0], R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    else:
        i = largest - 1
        j, k = (i + 1) % 3, (i + 2) % 3
        q = np.zeros(4)
        q[0] = R[k, j] - R[j, k]
        q[1 + i] = 1 + R[i, i] - R[j, j] - R[k, k]
        q[1 + j], q[1 + k] = R[j, i] + R[i, j], R[k, i] + R[i, k]
    q = q / np.linalg.norm(q)
    return [tidy(x) for x in (q if q[0] >= 0 else -q)]
