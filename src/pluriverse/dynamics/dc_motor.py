"""DC motors: circuit, on-board controller, heating, cogging and LuGre friction (MuJoCo's `dcmotor` actuator)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from pluriverse.model import Model
from pluriverse.trace.functions import absolute, clamp, exp, logical_not, maximum, minimum, select, sin

MINIMUM = 1e-15  # mjMINVAL
POSITION, VELOCITY, FEEDFORWARD, VOLTAGE = 1, 2, 4, 8  # mjtCtrlInput
CONTROLLER = POSITION | VELOCITY | FEEDFORWARD


@dataclass(frozen=True)
class DCMotor:
    """A motor's constants, with MuJoCo's places of the parameters."""

    signature: int  # of the controls: mjtCtrlInput
    actearly: bool
    electric_time: float  # dynprm[0] [s]; 0: the current follows at once
    current_slew: float  # dynprm[1] [A/s]; 0: unlimited
    thermal_resistance: float  # dynprm[2] [K/W]; 0: does not heat
    thermal_capacity: float  # dynprm[3] [J/K]
    ambient: float  # dynprm[4]
    sigma0: float  # dynprm[5], stiffness of the bristles; 0: no LuGre friction
    sigma1: float  # dynprm[6], their damping
    slew: float  # dynprm[7], of the first control per second; 0: unlimited
    integral_limit: float  # dynprm[8]; 0: unlimited
    resistance: float  # gainprm[0] [Ohm]
    constant: float  # gainprm[1], torque by current [N m/A]
    heat_coefficient: float  # gainprm[2], growth of the resistance [1/K]
    reference: float  # gainprm[3], temperature of the nominal resistance
    kp: float  # gainprm[4 .. 6], of the controller
    ki: float
    kd: float
    voltage_limit: float  # gainprm[7]; 0: unlimited
    cogging: float  # biasprm[0 .. 2]: amplitude, poles, phase
    poles: float
    phase: float
    coulomb: float  # biasprm[3 .. 5], of the friction
    static: float
    stribeck: float

    @classmethod
    def of(cls, model: Model, actuator: int) -> DCMotor:
        dyn, gain, bias = (getattr(model, f"actuator_{kind}prm")[actuator].tolist() for kind in ("dyn", "gain", "bias"))
        signature, early = int(model.actuator_ctrlspec[actuator]), bool(model.actuator_actearly[actuator])
        return cls(signature, early, *[float(x) for x in (*dyn[:9], *gain[:8], *bias[:6])])

    @property
    def slots(self) -> dict[str, int]:
        """Which of its activations is what."""
        present = {
            "slew": self.slew > 0,
            "integral": self.ki > 0,
            "temperature": self.thermal_resistance > 0,
            "bristle": self.sigma0 > 0,
            "current": self.electric_time > 0,
        }
        return {name: k for k, name in enumerate(name for name, there in present.items() if there)}

    def effective(self, controls: list[Any], act: list[Any], dt: float) -> list[Any]:
        """The controls, the first one as far as its slew rate lets it come."""
        if not (self.slew > 0 and controls):
            return controls
        previous, reach = act[0], self.slew * dt
        return [clamp(controls[0], previous - reach, previous + reach), *controls[1:]]

    def rates(self, controls: list[Any], act: list[Any], length: Any, velocity: Any, dt: float) -> list[Any]:
        """d/dt of its activations. controls: the effective ones."""
        first = controls[0] if controls else 0.0
        voltage = self.voltage(controls, act, length, velocity)
        rates = dict.fromkeys(self.slots, 0.0)
        for name, k in self.slots.items():
            if name == "slew":
                rates[name] = (first - act[k]) * (1.0 / dt)
            elif name == "integral":
                rates[name] = _held(first - length, act[k], self.integral_limit)
            elif name == "temperature":
                current = act[-1] if self.electric_time > 0 else self._steady_current(voltage, act, velocity)
                heat = self.hot_resistance(act) * current * current - act[k] * (1.0 / self.thermal_resistance)
                rates[name] = heat * (1.0 / self.thermal_capacity)
            elif name == "bristle":
                rates[name] = self._bristle_decay(velocity) * act[k] + velocity
            else:
                rate = (self._steady_current(voltage, act, velocity) - act[k]) * (1.0 / self.electric_time)
                limit = self.current_slew
                rates[name] = clamp(rate, -limit, limit) if limit > 0 else rate
        return list(rates.values())

    def advanced(self, k: int, act: Any, rate: Any, velocity: Any, dt: float) -> Any:
        """Activation k after a step: current and bristle exactly, the others by Euler's method."""
        if k == self.slots.get("current"):
            return act + rate * (self.electric_time * -math.expm1(-dt / self.electric_time))
        if k == self.slots.get("bristle"):
            decay = self._bristle_decay(velocity)
            kept = exp(decay * dt)
            moves = decay < -MINIMUM
            return kept * act + velocity * select(moves, (kept - 1.0) / select(moves, decay, -1.0), dt)
        new = act + rate * dt
        if k == self.slots.get("integral") and self.integral_limit > 0:
            return clamp(new, -self.integral_limit, self.integral_limit)
        return new

    def voltage(self, controls: list[Any], act: list[Any], length: Any, velocity: Any) -> Any:
        """At the terminals."""
        inputs = servo_inputs(self.signature, controls)
        if not self.signature & CONTROLLER:
            return inputs[3]
        commanded = self._commanded_voltage(inputs, act, length, velocity)
        if self.voltage_limit > 0:
            commanded = clamp(commanded, -self.voltage_limit, self.voltage_limit)
        return commanded + inputs[3]

    def electric_force(self, controls: list[Any], act: list[Any], next_act: list[Any], length: Any, v: Any) -> Any:
        """Torque of the current, before it is clamped. next_act: a step later."""
        if self.electric_time > 0:
            return (next_act if self.actearly else act)[-1] * self.constant
        return self._steady_current(self.voltage(controls, act, length, v), act, v) * self.constant

    def mechanical_force(self, act: list[Any], rates: list[Any], length: Any) -> Any:
        """Cogging and friction, which no limit of the current touches."""
        force: Any = sin(length * self.poles + self.phase) * self.cogging if self.cogging else 0.0
        if self.sigma0 > 0:
            k = self.slots["bristle"]
            force = force - (act[k] * self.sigma0 + rates[k] * self.sigma1)
        return force

    def slope(
        self, controls: list[Any], act: list[Any], rates: list[Any], length: Any, velocity: Any, free: Any, dt: float
    ) -> Any:
        """-d force / d velocity (MuJoCo's `mjd_actuator_vel`). free: the electric force is not clamped."""
        K, R = self.constant, self.hot_resistance(act)
        by_speed: Any = 0.0  # d voltage / d velocity
        if self.signature & CONTROLLER:
            by_speed = K - self.kd * max(self.resistance, MINIMUM) / K
            if self.voltage_limit > 0:
                commanded = self._commanded_voltage(servo_inputs(self.signature, controls), act, length, velocity)
                by_speed = select(absolute(commanded) < self.voltage_limit, by_speed, 0.0)
        electric = (K - by_speed) * K / R
        if self.electric_time > 0:
            electric = electric * -math.expm1(-dt / self.electric_time) if self.actearly else 0.0
            if self.current_slew > 0:
                electric = select(absolute(rates[-1]) < self.current_slew, electric, 0.0)
        return select(free, electric, 0.0) + (self.sigma1 if self.sigma1 > 0 else 0.0)

    def hot_resistance(self, act: list[Any]) -> Any:
        if not self.thermal_resistance > 0:
            return max(self.resistance, MINIMUM)
        warmth = act[self.slots["temperature"]] + (self.ambient - self.reference)
        return maximum((warmth * self.heat_coefficient + 1.0) * self.resistance, MINIMUM)

    def _steady_current(self, voltage: Any, act: list[Any], velocity: Any) -> Any:
        return (voltage - velocity * self.constant) / self.hot_resistance(act)

    def _commanded_voltage(self, inputs: list[Any], act: list[Any], length: Any, velocity: Any) -> Any:
        """Of the on-board controller, whose drive makes up for the back-EMF."""
        torque = (inputs[0] - length) * self.kp + (inputs[1] - velocity) * self.kd + inputs[2]
        if self.ki > 0:
            torque = torque + act[self.slots["integral"]] * self.ki
        return torque * (self.resistance / self.constant) + velocity * self.constant

    def _bristle_decay(self, velocity: Any) -> Any:
        """d rate / d bristle, from the Stribeck curve."""
        ratio = velocity * (1.0 / max(self.stribeck, MINIMUM))
        curve = exp(-(ratio * ratio)) * (self.static - self.coulomb) + self.coulomb
        return absolute(velocity) * -self.sigma0 / maximum(curve, MINIMUM)


def servo_inputs(signature: int, controls: list[Any]) -> list[Any]:
    """[position, velocity, feedforward, voltage] from the controls that there are; the others are 0."""
    given = iter(controls)
    return [next(given) if signature & kind else 0.0 for kind in (POSITION, VELOCITY, FEEDFORWARD, VOLTAGE)]


def _held(rate: Any, integral: Any, limit: float) -> Any:
    """The rate of an integral that stops at its limits."""
    if not limit > 0:
        return rate
    rate = select(integral >= limit, minimum(rate, 0.0), rate)
    return select(logical_not(integral > -limit), maximum(rate, 0.0), rate)
