"""Activations of actuators: how fast they change, and what they are after a step."""

from __future__ import annotations

import math
from typing import Any

from pluriverse.control_laws import AFFINE_BIAS, FIXED_GAIN, JOINT, JOINT_IN_PARENT, SITE, is_disabled
from pluriverse.model import Model
from pluriverse.trace.functions import clamp, floor, maximum, minimum, select, sqrt

from .dc_motor import MINIMUM, DCMotor
from .muscle import activation_rate
from .spatial import dot, scale
from .tree import BALL

NONE, INTEGRATOR, FILTER, FILTER_EXACT, MUSCLE, DC_MOTOR, PID = range(7)  # mjtDyn
GAIN_ORIENTATION, GAIN_PID = 4, 5  # mjtGain


def effective_controls(model: Model, actuator: int, controls: list[Any], act: list[Any], dt: float) -> list[Any]:
    """The controls, clamped already, as far as a slew rate lets the first one come."""
    kind, prm = int(model.actuator_dyntype[actuator]), model.actuator_dynprm[actuator]
    if kind == DC_MOTOR:
        return DCMotor.of(model, actuator).effective(controls, act, dt)
    if kind == PID and prm[1] > 0:
        first = nearest(controls[0], act[0], turn_period(model, actuator))
        return [clamp(first, act[0] - float(prm[1]) * dt, act[0] + float(prm[1]) * dt), *controls[1:]]
    return controls


def activation_rates(
    model: Model, actuator: int, controls: list[Any], act: list[Any], length: Any, velocity: Any, dt: float
) -> list[Any]:
    """d/dt of an actuator's activations. controls: the effective ones."""
    kind, prm = int(model.actuator_dyntype[actuator]), model.actuator_dynprm[actuator]
    idle = [0.0] * (len(act) - len(controls))  # activations in front of those that the dynamics drive
    if kind == INTEGRATOR:
        return [*idle, *controls]
    if kind in (FILTER, FILTER_EXACT):
        target = nearest(controls[0], act[-1], turn_period(model, actuator))
        return [*idle, (target - act[-1]) * (1.0 / max(float(prm[0]), MINIMUM))]
    if kind == MUSCLE:
        return [*idle, activation_rate(controls[0], act[-1], prm)]
    if kind == PID:
        return _pid_rates(model, actuator, controls, act, length, dt)
    if kind == DC_MOTOR:
        return DCMotor.of(model, actuator).rates(controls, act, length, velocity, dt)
    return []


def _pid_rates(model: Model, actuator: int, controls: list[Any], act: list[Any], length: Any, dt: float) -> list[Any]:
    """Of the slew-limited setpoint and of the error's integral, those that there are."""
    limit, slew = (float(x) for x in model.actuator_dynprm[actuator, :2])
    rates = []
    if slew > 0:
        rates.append((controls[0] - act[0]) * (1.0 / dt))
    if model.actuator_gainprm[actuator, 0] > 0:
        error = controls[0] - nearest(length, controls[0], turn_period(model, actuator))
        if limit > 0:
            error = select(act[-1] >= limit, minimum(error, 0.0), error)
            error = select(act[-1] <= -limit, maximum(error, 0.0), error)
        rates.append(error)
    return rates


def next_activations(
    model: Model, actuator: int, act: list[Any], rates: list[Any], length: Any, velocity: Any, dt: float
) -> list[Any]:
    """What an actuator's activations are when a step has been made; those of a disabled actuator are held."""
    rates = [0.0] * len(rates) if is_disabled(model, actuator) else rates
    new = advanced_activations(model, actuator, act, rates, velocity, dt)
    return _anchored_activations(model, actuator, new, length)


def own_rows(model: Model, actuator: int) -> range:
    """The rows of act that an actuator has."""
    first = int(model.actuator_actadr[actuator])
    return range(first, first + int(model.actuator_actnum[actuator])) if first >= 0 else range(0)


def advanced_activations(
    model: Model, actuator: int, act: list[Any], rates: list[Any], velocity: Any, dt: float
) -> list[Any]:
    """An actuator's activations after `dt` at these rates, clamped (MuJoCo's `mj_nextActivation`)."""
    kind = int(model.actuator_dyntype[actuator])
    if kind == DC_MOTOR:
        motor = DCMotor.of(model, actuator)
        return [motor.advanced(k, *pair, velocity, dt) for k, pair in enumerate(zip(act, rates, strict=True))]
    step = dt
    if kind == FILTER_EXACT:
        tau = max(float(model.actuator_dynprm[actuator, 0]), MINIMUM)
        step = tau * -math.expm1(-dt / tau)
    new = [a + rate * step for a, rate in zip(act, rates, strict=True)]
    if model.actuator_actlimited[actuator]:
        low, high = (float(x) for x in model.actuator_actrange[actuator])
        new = [clamp(a, low, high) for a in new]
    return new


def _anchored_activations(model: Model, actuator: int, act: list[Any], length: Any) -> list[Any]:
    """Setpoints of rotations that are activations, brought near to what they are compared with."""
    if model.actuator_dyntype[actuator] in (INTEGRATOR, FILTER, FILTER_EXACT):
        period = turn_period(model, actuator)
        if period > 0:
            return [*act[:-1], nearest(act[-1], length, period)]
    if model.actuator_dyntype[actuator] == INTEGRATOR and model.actuator_gaintype[actuator] == GAIN_ORIENTATION:
        angle = sqrt(maximum(dot(act, act), MINIMUM))
        return scale(act, nearest(angle, 0.0, 2.0 * math.pi) / angle)
    return act


def turn_period(model: Model, actuator: int) -> float:
    """After what change of its setpoint a servo of a rotation is the same; 0: never."""
    gain, bias = model.actuator_gaintype[actuator], model.actuator_biastype[actuator]
    servo = (
        gain == FIXED_GAIN
        and bias == AFFINE_BIAS
        and model.actuator_gainprm[actuator, 0] == -model.actuator_biasprm[actuator, 1]
        and model.actuator_dyntype[actuator] in (NONE, INTEGRATOR, FILTER, FILTER_EXACT)
    )
    if not servo and gain != GAIN_PID:
        return 0.0
    kind, (target, reference) = model.actuator_trntype[actuator], model.actuator_trnid[actuator]
    gear = model.actuator_gear[model.actuator_outadr[actuator]]
    if kind == SITE and reference >= 0 and not gear[:3].any():
        return 2.0 * math.pi * float(math.hypot(*gear[3:]))
    if kind in (JOINT, JOINT_IN_PARENT) and model.jnt_type[target] == BALL:
        return 2.0 * math.pi * float(math.hypot(*gear[:3]))
    return 0.0


def nearest(setpoint: Any, to: Any, period: float) -> Any:
    """The setpoint that means the same and lies nearest to a number."""
    if period == 0:
        return setpoint
    return setpoint - floor((setpoint - to) * (1.0 / period) + 0.5) * period
