"""General actuators: controls and activations become forces along transmissions (MuJoCo's `mj_fwdActuation`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pluriverse.control_delays import delay_weights, past_rows
from pluriverse.control_laws import AFFINE_BIAS, AFFINE_GAIN, FIXED_GAIN, TENDON, general_actuators, is_disabled
from pluriverse.model import Model
from pluriverse.trace.expression import is_zero
from pluriverse.trace.functions import absolute, clamp, cos, maximum, select, sin, sqrt

from .activation import (
    GAIN_ORIENTATION,
    GAIN_PID,
    activation_rates,
    advanced_activations,
    effective_controls,
    nearest,
    next_activations,
    own_rows,
    turn_period,
)
from .dc_motor import DCMotor, servo_inputs
from .kinematics import Pose
from .muscle import Muscle
from .passive import rotation_between
from .spatial import Vector, dot, scale
from .transmission import Transmission
from .transmissions import transmissions
from .tree import Node, Tree

GAIN_MUSCLE, GAIN_DC_MOTOR = 2, 3  # mjtGain
BIAS_MUSCLE = 2  # mjtBias
CHART_QUATERNION = 2  # mjtCtrlChart
ALMOST = 1e-5  # share of a limit that rounding may take from a clamped sum or norm


@dataclass(eq=False)
class Drive:
    """One actuator at a state."""

    model: Model
    actuator: int
    dt: float
    controls: list[Any]  # clamped, slew-limited
    act: list[Any]
    outputs: list[Transmission]
    velocities: list[Any]
    rates: list[Any]  # d act / dt
    forces: list[Any]  # along each output
    disabled: bool

    @property
    def length(self) -> Any:
        return self.outputs[0].length

    @property
    def velocity(self) -> Any:
        return self.velocities[0]

    @property
    def motor(self) -> DCMotor | None:
        """Its constants, where it is a DC motor."""
        is_motor = self.model.actuator_gaintype[self.actuator] == GAIN_DC_MOTOR
        return DCMotor.of(self.model, self.actuator) if is_motor else None

    def pulls(self) -> list[Any]:
        """Forces along the outputs with what is mechanical in a motor, which no limit touches (actuator_force)."""
        motor = None if self.disabled else self.motor
        if motor is None:
            return self.forces
        return [self.forces[0] + motor.mechanical_force(self.act, self.rates, self.length)]

    def next_act(self) -> list[Any]:
        """Activations after a step at the present rates."""
        return advanced_activations(self.model, self.actuator, self.act, self.rates, self.velocity, self.dt)


def drives(
    tree: Tree,
    poses: dict[Node, Pose],
    qpos: list[Any],
    qvel: list[Any],
    act: list[Any],
    tendons: list[Transmission],
    ctrl: Any,
    dt: float,
    *,
    clamp_ctrl: bool,
    elapsed: Any,
) -> list[Drive]:
    """All general actuators with their forces.

    ctrl: the buffer of controls; act: activations by row, then past controls; elapsed: share of the step that has
    passed: 0, 0.5 or 1.
    """
    model, found = tree.model, []
    for actuator in general_actuators(model):
        outputs = transmissions(tree, poses, qpos, tendons, actuator)
        velocities = [output.velocity(qvel) for output in outputs]
        controls = _controls(model, actuator, ctrl, act, clamp_ctrl, elapsed)
        own = [act[k] for k in own_rows(model, actuator)]
        controls = effective_controls(model, actuator, controls, own, dt)
        rates = activation_rates(model, actuator, controls, own, outputs[0].length, velocities[0], dt)
        drive = Drive(model, actuator, dt, controls, own, outputs, velocities, rates, [], is_disabled(model, actuator))
        drive.forces = [0.0] * len(outputs) if drive.disabled else _forces(drive)
        found.append(drive)
    _limit_tendons(model, found)
    for drive in found:
        _limit(drive)
    return found


def activation_rates_by_row(found: list[Drive], na: int) -> list[Any]:
    """(na,) d act / dt."""
    rates: list[Any] = [0.0] * na
    for drive in found:
        rows = own_rows(drive.model, drive.actuator)
        rates[rows.start : rows.stop] = drive.rates
    return rates


def activations_after(found: list[Drive], act: list[Any], dt: float) -> list[Any]:
    """(na,) act after a step of Euler's method."""
    new = list(act)
    for drive in found:
        rows = own_rows(drive.model, drive.actuator)
        new[rows.start : rows.stop] = next_activations(
            drive.model, drive.actuator, drive.act, drive.rates, drive.length, drive.velocity, dt
        )
    return new


def remember_controls(model: Model, ctrl: Any, act: list[Any]) -> list[Any]:
    """act with the present controls of delayed actuators as the newest of the past ones."""
    new = list(act)
    for actuator in general_actuators(model):
        first = int(model.actuator_ctrladr[actuator])
        for u in range(first, first + int(model.actuator_ctrlnum[actuator])):
            rows = past_rows(model, actuator, u)
            if rows:
                new[rows.start : rows.stop] = [ctrl.read(u), *act[rows.start : rows.stop - 1]]
    return new


def slopes(drive: Drive, tendon_free: Any, joint_free: Any) -> list[Any]:
    """-d force / d velocity along each output, as implicit integrators take it; none where a limit holds the force.

    tendon_free, joint_free: whether the sum of actuator forces on the tendon or joint that it drives is not clamped.
    """
    model, a = drive.model, drive.actuator
    if drive.disabled:
        return [0.0] * len(drive.outputs)
    free = tendon_free & joint_free
    low, high = (float(x) for x in model.actuator_forcerange[a])
    motor = drive.motor
    if motor is not None:
        force = _electric_force(drive, motor)
        if model.actuator_forcelimited[a]:
            tendon_free = tendon_free & (force > low) & (force < high)
        slope = motor.slope(drive.controls, drive.act, drive.rates, drive.length, drive.velocity, tendon_free, drive.dt)
        return [select(joint_free, slope, 0.0)]
    if model.actuator_gaintype[a] == GAIN_ORIENTATION:
        if model.actuator_forcelimited[a]:
            free = free & (dot(drive.forces, drive.forces) < (high * (1.0 - ALMOST)) ** 2)
        return [select(free, -float(model.actuator_biasprm[a, 2]), 0.0)] * len(drive.outputs)
    slope = _gain_slope(drive)
    if model.actuator_biastype[a] == AFFINE_BIAS:
        slope = slope - float(model.actuator_biasprm[a, 2])
    if model.actuator_forcelimited[a] and not is_zero(slope):
        free = free & (drive.forces[0] > low) & (drive.forces[0] < high)
    return [select(free, slope, 0.0)]


def tendon_is_free(model: Model, found: list[Drive], tendon: int) -> Any:
    """Whether the sum of the actuator forces on a tendon is not clamped."""
    if not model.tendon_actfrclimited[tendon]:
        return True
    total = _tendon_total(model, found, tendon)
    low, high = (float(x) for x in model.tendon_actfrcrange[tendon])
    return (total > low + ALMOST * abs(low)) & (total < high - ALMOST * abs(high))


def _controls(model: Model, actuator: int, ctrl: Any, act: list[Any], clamp_ctrl: bool, elapsed: Any) -> list[Any]:
    """Of an actuator, as late as its delay says, clamped."""
    first, controls = int(model.actuator_ctrladr[actuator]), []
    for u in range(first, first + int(model.actuator_ctrlnum[actuator])):
        past = [act[row] for row in past_rows(model, actuator, u)]
        value = _delayed(model, actuator, past, elapsed) if past else ctrl.read(u)
        if clamp_ctrl and model.actuator_ctrllimited[u]:
            value = clamp(value, *(float(x) for x in model.actuator_ctrlrange[u]))
        controls.append(value)
    return controls


def _delayed(model: Model, actuator: int, past: list[Any], elapsed: Any) -> Any:
    """The past control that acts now; the stages of RK4 look at different times."""

    def value(share: float) -> Any:
        weights = delay_weights(model, actuator, share)
        return dot([past[k] for k in weights], list(weights.values()))

    return select(elapsed < 0.25, value(0.0), select(elapsed < 0.75, value(0.5), value(1.0)))


def _forces(drive: Drive) -> list[Any]:
    """Before any limit."""
    model, a = drive.model, drive.actuator
    gain, bias = int(model.actuator_gaintype[a]), int(model.actuator_biastype[a])
    if drive.motor is not None:
        return [_electric_force(drive, drive.motor)]
    if gain == GAIN_ORIENTATION:
        return _orientation_forces(drive)
    force = _pid_force(drive) if gain == GAIN_PID else _gain(drive) * _input(drive)
    if bias == AFFINE_BIAS:
        b0, b1, b2 = (float(x) for x in model.actuator_biasprm[a, :3])
        force = force + drive.length * b1 + drive.velocity * b2 + b0
    elif bias == BIAS_MUSCLE:
        force = force + _muscle(model, a, model.actuator_biasprm[a]).bias(drive.length)
    return [force]


def _input(drive: Drive) -> Any:
    """What the gain multiplies: the last activation, that of the next step where it acts early, or the control."""
    if not drive.act:
        value = drive.controls[0]
    else:
        value = (drive.next_act() if drive.model.actuator_actearly[drive.actuator] else drive.act)[-1]
    return nearest(value, drive.length, turn_period(drive.model, drive.actuator))


def _gain(drive: Drive) -> Any:
    model, a = drive.model, drive.actuator
    prm = model.actuator_gainprm[a]
    if model.actuator_gaintype[a] == FIXED_GAIN:
        return float(prm[0])
    if model.actuator_gaintype[a] == AFFINE_GAIN:
        return drive.length * float(prm[1]) + drive.velocity * float(prm[2]) + float(prm[0])
    return _muscle(model, a, prm).gain(drive.length, drive.velocity)


def _gain_slope(drive: Drive) -> Any:
    """-d gain / d velocity times what it multiplies."""
    model, a = drive.model, drive.actuator
    slope: Any = 0.0
    if model.actuator_gaintype[a] == AFFINE_GAIN:
        slope = -float(model.actuator_gainprm[a, 2])
    elif model.actuator_gaintype[a] == GAIN_MUSCLE:
        slope = -_muscle(model, a, model.actuator_gainprm[a]).gain_slope(drive.length, drive.velocity)
    return 0.0 if is_zero(slope) else slope * _input(drive)


def _muscle(model: Model, actuator: int, prm: Any) -> Muscle:
    output = model.actuator_outadr[actuator]
    return Muscle.of(prm, model.actuator_lengthrange[output], model.actuator_acc0[output])


def _pid_force(drive: Drive) -> Any:
    """The part of a PID controller's force that its setpoints make; the bias has the rest."""
    model, a = drive.model, drive.actuator
    position, velocity, feedforward, _ = servo_inputs(int(model.actuator_ctrlspec[a]), drive.controls)
    position = nearest(position, drive.length, turn_period(model, a))
    force = (
        feedforward - position * float(model.actuator_biasprm[a, 1]) - velocity * float(model.actuator_biasprm[a, 2])
    )
    ki = float(model.actuator_gainprm[a, 0])
    if drive.act and ki > 0:
        force = force + (drive.next_act() if model.actuator_actearly[a] else drive.act)[-1] * ki
    return force


def _electric_force(drive: Drive, motor: DCMotor) -> Any:
    return motor.electric_force(drive.controls, drive.act, drive.next_act(), drive.length, drive.velocity)


def _orientation_forces(drive: Drive) -> list[Any]:
    """Torques of a servo along the shortest rotation to its target."""
    model, a = drive.model, drive.actuator
    if model.actuator_ctrlspec[a] == CHART_QUATERNION:
        target = drive.controls
    elif drive.act:
        target = _exponential(drive.next_act() if model.actuator_actearly[a] else drive.act)
    else:
        target = _exponential(drive.controls)
    present = _exponential([output.length for output in drive.outputs])
    kp, constant, kv = (float(x) for x in (model.actuator_gainprm[a, 0], *model.actuator_biasprm[a, [0, 2]]))
    error = rotation_between(present, target)
    return [e * kp + v * kv + constant for e, v in zip(error, drive.velocities, strict=True)]


def _exponential(turn: Vector) -> Vector:
    """The quaternion of a rotation vector."""
    angle = sqrt(dot(turn, turn) + 1e-20)
    return [cos(angle * 0.5), *scale(turn, sin(angle * 0.5) / angle)]


def _tendon_total(model: Model, found: list[Drive], tendon: int) -> Any:
    """The sum of the actuator forces on a tendon, what is mechanical in them left out."""
    total: Any = 0.0
    for drive in found:
        if model.actuator_trntype[drive.actuator] == TENDON and model.actuator_trnid[drive.actuator, 0] == tendon:
            total = total + drive.forces[0]
    return total


def _limit_tendons(model: Model, found: list[Drive]) -> None:
    """Scales the forces of actuators whose sum on a tendon is out of the tendon's range."""
    for tendon in range(model.ntendon):
        if not model.tendon_actfrclimited[tendon]:
            continue
        total = _tendon_total(model, found, tendon)
        low, high = (float(x) for x in model.tendon_actfrcrange[tendon])
        safe = select(absolute(total) > 0.0, total, 1.0)
        factor = select(total < low, low / safe, select(total > high, high / safe, 1.0))
        factor = select(absolute(total) > 0.0, factor, 1.0)
        for drive in found:
            if model.actuator_trntype[drive.actuator] == TENDON and model.actuator_trnid[drive.actuator, 0] == tendon:
                drive.forces = [drive.forces[0] * factor]


def _limit(drive: Drive) -> None:
    """Clamps the forces to the actuator's range; a servo of an orientation keeps the direction of its torque."""
    model, a = drive.model, drive.actuator
    if not model.actuator_forcelimited[a]:
        return
    low, high = (float(x) for x in model.actuator_forcerange[a])
    if model.actuator_gaintype[a] == GAIN_ORIENTATION:
        norm = sqrt(maximum(dot(drive.forces, drive.forces), 1e-30))
        drive.forces = scale(drive.forces, select(norm > high, high / norm, 1.0))
    else:
        drive.forces = [clamp(force, low, high) for force in drive.forces]
