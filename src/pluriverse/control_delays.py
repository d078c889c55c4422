"""Delayed controls: which past ones an actuator remembers, and what of them acts now (MuJoCo's history buffers).

Steps have one duration, so a delayed control is a fixed mean of past ones. They are kept behind the activations, the
newest first, and are zeros at the start.
"""

from __future__ import annotations

import math

from pluriverse.model import Model

NEAREST, LINEAR = 0, 1  # interpolation between samples; beyond: cubic
SAME = 1e-9  # of a step: times that are one


def memory_size(model: Model) -> int:
    """Numbers that actuators carry from step to step: activations, and past controls."""
    return model.na + sum(len(past_rows(model, actuator, control)) for actuator, control in _delayed_controls(model))


def past_rows(model: Model, actuator: int, control: int) -> range:
    """Where the past values of an actuator's control lie behind the activations, the newest first."""
    first = model.na
    for other, other_control in _delayed_controls(model):
        count = int(model.actuator_history[other, 0])
        if (other, other_control) == (actuator, control):
            return range(first, first + count)
        first += count
    return range(0)


def _delayed_controls(model: Model) -> list[tuple[int, int]]:
    """Actuators with a delay, with each of their controls."""
    return [
        (actuator, int(model.actuator_ctrladr[actuator]) + k)
        for actuator in range(model.nactuator)
        if model.actuator_delay[actuator] > 0
        for k in range(int(model.actuator_ctrlnum[actuator]))
    ]


def delay_weights(model: Model, actuator: int, elapsed: float) -> dict[int, float]:
    """The weight of each past control, 0 the newest one, when a share of the present step has elapsed."""
    count, order = (int(x) for x in model.actuator_history[actuator])
    age = float(model.actuator_delay[actuator]) / model.opt.timestep - elapsed - 1.0  # in steps, from the newest one
    nearest = round(age)
    if abs(age - nearest) < SAME or age <= 0 or age >= count - 1:
        return {min(max(nearest, 0), count - 1): 1.0}
    newer, older = math.floor(age), math.floor(age) + 1
    if order == NEAREST:
        return {older: 1.0}
    share = older - age
    if order == LINEAR:
        return {older: 1.0 - share, newer: share}
    weights = {older: (1.0 + 2.0 * share) * (1.0 - share) ** 2, newer: share**2 * (3.0 - 2.0 * share)}
    # Slopes by central differences, none at the ends of what is remembered.
    for place, factor in ((older, share * (1.0 - share) ** 2), (newer, share**2 * (share - 1.0))):
        if 0 < place < count - 1:
            for neighbour, sign in ((place - 1, 0.5), (place + 1, -0.5)):
                weights[neighbour] = weights.get(neighbour, 0.0) + sign * factor
    return weights
