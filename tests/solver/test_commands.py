"""Commands, gains and actuators: the control laws they write, against the textbook and against MuJoCo's actuators."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import mujoco
import numpy as np
import pytest
import torch

import kernel_doubles
from kernel_doubles import ARM_AND_BALL

SHOULDER, FINGER, TIP = 6, 10, 11
SCALAR = [SHOULDER, FINGER, TIP]


@pytest.fixture
def make(gs_cpu: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Any:
    kernel_doubles.install(monkeypatch)

    def build(n_envs: int = 3) -> Any:
        scene = gs_cpu.Scene(show_FPS=False)
        scene.add_entity(gs_cpu.morphs.MJCF(file=ARM_AND_BALL), name="arm")
        scene.build(n_envs=n_envs)
        return scene

    return build


def set_motion(solver: Any, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Random qpos (unit quaternions) and qvel, as numpy (n_envs, ...)."""
    rng = np.random.default_rng(seed)
    model, n = kernel_doubles.KinematicsDouble.mj_model, max(solver.n_envs, 1)
    qpos, qvel = rng.normal(size=(n, model.nq)), rng.normal(size=(n, model.nv))
    for q in qpos:
        mujoco.mj_normalizeQuat(model, q)
    solver.set_qpos(qpos)
    solver.set_dofs_velocity(qvel)
    return qpos, qvel


def position_of(qpos: np.ndarray) -> np.ndarray:
    """(n_envs, 3) position of the dofs SCALAR."""
    return qpos[:, [7, 12, 13]]


def test_limp_until_commanded(make: Any) -> None:
    solver = make().rigid_solver
    set_motion(solver)
    assert (solver.get_dofs_control_force() == 0).all()


def test_gains_start_from_the_first_actuator(make: Any) -> None:
    solver = make(0).rigid_solver
    assert solver.get_dofs_kp(SHOULDER).tolist() == [50]
    assert solver.get_dofs_kv(SHOULDER).tolist() == [5]
    lower, upper = solver.get_dofs_force_range(SCALAR)
    assert lower.tolist() == [-20, -2, -np.inf]  # a motor's force is limited by gear times ctrlrange
    assert upper.tolist() == [30, 2, np.inf]
    assert solver.get_dofs_kp([0, 1]).tolist() == [0, 0]


def test_what_is_no_pd_controller_has_no_kp(make: Any) -> None:
    solver = make().rigid_solver
    with pytest.raises(Exception, match=r"'arm': dof 10 \(joint 'finger'\), dof 11 \(joint 'tip'\): .* no PD"):
        solver.get_dofs_kp(SCALAR)
    solver.set_dofs_kp(7.0, TIP)
    solver.set_dofs_kp(8.0, FINGER, envs_idx=[0, 1, 2])
    assert solver.get_dofs_kp(SCALAR)[2].tolist() == [50, 8, 7]


def test_modes_are_their_formulas(make: Any) -> None:
    solver = make().rigid_solver
    qpos, qvel = set_motion(solver)
    q, v = position_of(qpos), qvel[:, SCALAR]
    kp, kv = np.array([10.0, 20, 30]), np.array([1.0, 2, 3])
    solver.set_dofs_kp(kp, SCALAR)
    solver.set_dofs_kv(kv, SCALAR)
    solver.set_dofs_force_range(-1000, 1000, SCALAR)
    target, rate = np.random.default_rng(1).normal(size=(2, 3, 3))

    def force() -> np.ndarray:
        return solver.get_dofs_control_force(SCALAR).numpy()

    solver.control_dofs_position(target, SCALAR)
    np.testing.assert_allclose(force(), kp * (target - q) - kv * v, rtol=1e-4, atol=1e-4)
    solver.control_dofs_position_velocity(target, rate, SCALAR)
    np.testing.assert_allclose(force(), kp * (target - q) + kv * (rate - v), rtol=1e-4, atol=1e-4)
    solver.control_dofs_velocity(rate, SCALAR)
    np.testing.assert_allclose(force(), kv * (rate - v), rtol=1e-4, atol=1e-4)
    solver.control_dofs_force(target, SCALAR)
    np.testing.assert_allclose(force(), target, rtol=1e-6)
    solver.control_dofs_position(0.5, SCALAR)  # the velocity target of before is gone
    np.testing.assert_allclose(force(), kp * (0.5 - q) - kv * v, rtol=1e-4, atol=1e-4)


def test_velocity_commands_have_no_constant_bias(make: Any) -> None:
    """As in Genesis: f = kv (target velocity - velocity), whatever the position law's bias is."""
    solver = make().rigid_solver
    _, qvel = set_motion(solver)
    solver.set_dofs_force_range(-1000, 1000, SCALAR)
    solver.set_dofs_act_bias(7.0, -3.0, -2.0, SCALAR)
    expected = 2 * (1.5 - qvel[:, SCALAR])
    solver.control_dofs_velocity(1.5, SCALAR)
    np.testing.assert_allclose(solver.get_dofs_control_force(SCALAR).numpy(), expected, rtol=1e-4, atol=1e-4)
    solver.set_dofs_act_bias(8.0, -3.0, -2.0, SCALAR)
    np.testing.assert_allclose(solver.get_dofs_control_force(SCALAR).numpy(), expected, rtol=1e-4, atol=1e-4)


def test_any_sequence_of_commands_is_the_last_of_each_dof(make: Any) -> None:
    """Against a law of numpy for every dof and environment, whatever was remembered of earlier calls."""
    scene = make()
    solver, rng = scene.rigid_solver, np.random.default_rng(3)
    qpos, qvel = set_motion(solver)
    solver.set_dofs_force_range(-1e6, 1e6, SCALAR)
    solver.set_dofs_kp(0.0, SCALAR)
    solver.set_dofs_kv(0.0, SCALAR)
    q, v = position_of(qpos), qvel[:, SCALAR]
    kp, kv, target, rate = np.zeros((4, 3, 3))
    law = np.full((3, 3), "force", dtype=object)
    laws = {
        "position": lambda: kp * (target - q) - kv * v,
        "velocity": lambda: kv * (rate - v),
        "both": lambda: kp * (target - q) + kv * (rate - v),
        "force": lambda: target,
    }
    for _ in range(150):
        columns = [[0, 1, 2], [1], [1, 2], [2, 0]][rng.integers(4)]
        envs = [None, None, [0, 1, 2], [1], [0, 2]][rng.integers(5)]
        place = np.ix_(range(3) if envs is None else envs, columns)
        value, other = rng.normal(size=(2, *target[place].shape)).astype(np.float32)
        dofs = [SCALAR[i] for i in columns]
        kind = rng.choice([*laws, "kp", "kv", "reset"])
        if kind == "reset":
            scene.reset(envs_idx=envs)
            place = np.ix_(range(3) if envs is None else envs, range(3))
            law[place], target[place] = "force", 0.0
            solver.set_qpos(qpos)
            solver.set_dofs_velocity(qvel)
        elif kind in ("kp", "kv"):
            value = np.abs(value)
            (solver.set_dofs_kp if kind == "kp" else solver.set_dofs_kv)(torch.tensor(value), dofs, envs)
            (kp if kind == "kp" else kv)[place] = value
        else:
            law[place] = kind
            rate[place], target[place] = (value if kind == "velocity" else other), value
            command = {"both": "position_velocity"}.get(kind, kind)
            given = (torch.tensor(value), torch.tensor(other)) if kind == "both" else (torch.tensor(value),)
            getattr(solver, f"control_dofs_{command}")(*given, dofs, envs)
        expected = np.select([law == name for name in laws], [force() for force in laws.values()])
        np.testing.assert_allclose(solver.get_dofs_control_force(SCALAR).numpy(), expected, rtol=1e-4, atol=1e-4)


def test_actuators_are_commanded_again_after_some_environments_were_reset(make: Any) -> None:
    scene = make()
    solver, ctrl = scene.rigid_solver, torch.tensor([[0.1, 0.2, 0.3, 0.4]]).expand(3, 4)
    for _ in range(3):
        set_motion(solver)
        solver.control_actuators(ctrl)
        expected = solver.get_dofs_control_force()
        scene.reset(envs_idx=[0, 2])
        assert (solver.get_dofs_control_force()[[0, 2]] == 0).all()
        set_motion(solver)
        solver.control_actuators(ctrl)
        torch.testing.assert_close(solver.get_dofs_control_force(), expected)
        solver.control_actuators(ctrl)
        torch.testing.assert_close(solver.get_dofs_control_force(), expected)


def test_gains_set_later_act_on_the_command_that_stands(make: Any) -> None:
    solver = make().rigid_solver
    qpos, _ = set_motion(solver)
    solver.set_dofs_force_range(-1e6, 1e6, SHOULDER)
    solver.control_dofs_position(1.0, SHOULDER)
    solver.control_dofs_force(4.0, SHOULDER, envs_idx=[1])
    solver.set_dofs_kp([[100.0], [100.0], [200.0]], SHOULDER)
    solver.set_dofs_kv(0.0, SHOULDER)
    expected = np.array([100, 0, 200]) * (1 - qpos[:, 7]) + [0, 4, 0]
    np.testing.assert_allclose(solver.get_dofs_control_force(SHOULDER)[:, 0].numpy(), expected, rtol=1e-4)


def test_modes_of_environments_and_dofs_are_independent(make: Any) -> None:
    solver = make().rigid_solver
    set_motion(solver)
    solver.control_dofs_force(1.0, SCALAR)
    solver.control_dofs_position(0.3, SHOULDER, envs_idx=[2])
    solver.control_dofs_force([2.0], FINGER, envs_idx=torch.tensor([True, False, False]))
    forces = solver.get_dofs_control_force(SCALAR)
    assert forces[:2].tolist() == [[1, 2, 1], [1, 1, 1]]
    assert forces[2, 1:].tolist() == [1, 1]
    expected = 50 * (0.3 - solver.get_qpos(7)[2]) - 5 * solver.get_dofs_velocity(SHOULDER)[2]
    torch.testing.assert_close(forces[2, :1], expected.clamp(-20, 30))


def test_forces_are_clamped(make: Any) -> None:
    solver = make().rigid_solver
    solver.control_dofs_force([-100.0, 100.0, 100.0], SCALAR)
    assert solver.get_dofs_control_force(SCALAR)[0].tolist() == [-20, 2, 100]
    solver.set_dofs_force_range([[-1.0]] * 3, [[1.0], [2.0], [3.0]], TIP)
    assert solver.get_dofs_control_force(TIP)[:, 0].tolist() == [1, 2, 3]
    with pytest.raises(Exception, match="a lower bound lies above its upper bound"):
        solver.set_dofs_force_range(1.0, -1.0, TIP)


def test_reset_ends_commands_and_keeps_gains(make: Any) -> None:
    scene = make()
    solver = scene.rigid_solver
    solver.set_dofs_kp(77.0, SHOULDER)
    solver.control_dofs_position(1.0, SHOULDER)
    scene.reset(envs_idx=[0, 2])
    assert (solver.get_dofs_control_force(SHOULDER)[:, 0] != 0).tolist() == [False, True, False]
    solver.set_dofs_kp(78.0, SHOULDER)  # must not bring the targets back
    assert (solver.get_dofs_control_force(SHOULDER)[:, 0] != 0).tolist() == [False, True, False]
    scene.reset()
    assert (solver.get_dofs_control_force(SHOULDER) == 0).all()
    assert solver.get_dofs_kp(SHOULDER)[:, 0].tolist() == [78, 78, 78]


@pytest.mark.parametrize("n_envs", [0, 4])
def test_actuators_are_mujocos(make: Any, n_envs: int) -> None:
    solver = make(n_envs).rigid_solver
    qpos, qvel = set_motion(solver)
    model = kernel_doubles.KinematicsDouble.mj_model
    ctrl = np.random.default_rng(2).normal(size=(max(n_envs, 1), model.nu), scale=2)
    for _ in range(2):  # the second time only the controls are written
        solver.control_actuators(ctrl if n_envs else ctrl[0])
        expected = []
        for env in range(max(n_envs, 1)):
            data = mujoco.MjData(model)
            data.qpos, data.qvel, data.ctrl = qpos[env], qvel[env], ctrl[env]
            mujoco.mj_forward(model, data)
            expected.append(data.qfrc_actuator.copy())
        got = solver.get_dofs_control_force().numpy()
        np.testing.assert_allclose(np.atleast_2d(got), expected, rtol=1e-4, atol=1e-4)
        ctrl = ctrl[::-1] * 0.5


def test_one_actuator_of_two_on_a_dof(make: Any) -> None:
    solver = make().rigid_solver
    solver.control_actuators(1.0, 2)  # pull: 3 ctrl + 0.5
    assert solver.get_dofs_control_force(FINGER)[:, 0].tolist() == [3.5] * 3
    solver.control_actuators(0.25, 1, envs_idx=[1])  # push: gear 2
    assert solver.get_dofs_control_force(FINGER)[:, 0].tolist() == [3.5, 4.0, 3.5]


def test_a_dof_takes_one_kind_of_command(make: Any) -> None:
    scene = make()
    solver = scene.rigid_solver
    solver.control_actuators(0.0)
    with pytest.raises(Exception, match=r"cannot take entity 'arm': dof 10 \(joint 'finger'\). control_actuators"):
        solver.control_dofs_force(1.0, FINGER)
    solver.control_dofs_force(0, FINGER)  # releases, the second actuator's law too
    assert (solver.get_dofs_control_force(FINGER) == 0).all()
    solver.control_dofs_force(1.0, FINGER)
    assert (solver.get_dofs_control_force(FINGER) == 1).all()
    with pytest.raises(Exception, match=r"control_actuators cannot take .*control_dofs_\* commands this already"):
        solver.control_actuators(0.0)
    solver.control_actuators([0.1, 0.1], [0, 3])
    scene.reset()
    solver.control_actuators(0.0)


@pytest.mark.parametrize("method", ["control_dofs_position", "control_dofs_velocity"])
def test_free_and_ball_joints_take_forces_only(make: Any, method: str) -> None:
    solver = make().rigid_solver
    with pytest.raises(Exception, match=r"dofs 0, 1, 2, 3, 4, 5 \(joint 'root'\), dofs 7, 8, 9 \(joint 'wrist'\)\."):
        getattr(solver, method)(0.0)
    solver.control_dofs_force(torch.arange(12.0), envs_idx=[1])
    forces = solver.get_dofs_control_force()
    assert forces[0].tolist() == [0.0] * 12
    assert forces[1, :6].tolist() == list(range(6))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.control_dofs_position([0.0, 1.0, 2.0, 3.0], SCALAR), "position: shape"),
        (lambda s: s.control_dofs_force(float("nan")), "force is nan"),
        (lambda s: s.control_dofs_force(0.0, 99), "index 99 is out of range"),
        (lambda s: s.control_dofs_force(0.0, 0, 3), "envs_idx=3: index 3 is out of range"),
        (lambda s: s.control_actuators(0.0, "servo"), "actuators_idx='servo'"),
        (lambda s: s.set_dofs_kp([1.0, np.inf], [6, 10]), r"kp\[1\] is inf"),
        (lambda s: s.set_dofs_kp(-5.0), "kp is -5; allowed are finite numbers >= 0"),
        (lambda s: s.set_dofs_kv(torch.tensor([[0.0], [-1.0], [0.0]]), 6), r"kv\[1, 0\] is -1; allowed"),
        (lambda s: s.set_dofs_force_range([0.0, 2.0], [1.0, 1.0], [6, 10]), "lower bound lies above"),
        (lambda s: s.control_dofs_force(1e39), r"force is 1e\+39, which does not fit float32"),
        (lambda s: s.set_gravity([0.0, 0.0, 1e39]), r"gravity\[2\] is 1e\+39, which does not fit float32"),
        (lambda s: s.control_dofs_force(0.0, [6, 6]), "dofs_idx names 6 more than once"),
        (lambda s: s.control_actuators(0.0, 0, [1, 1]), "envs_idx names 1 more than once"),
    ],
)
def test_bad_input_changes_nothing(make: Any, call: Any, message: str) -> None:
    solver = make().rigid_solver
    solver.control_dofs_force(1.5, SCALAR)
    before = solver.get_dofs_control_force()
    with pytest.raises(Exception, match=message):
        call(solver)
    torch.testing.assert_close(solver.get_dofs_control_force(), before)


TWO_ON_A_JOINT = """
<mujoco><worldbody>
  <body><joint name="a" actuatorfrcrange="-1 1.5" damping=".1"/><geom size=".1" pos=".2 0 0"/></body>
  <body pos="0 1 0"><joint name="b" actuatorfrcrange="-3 0.5"/><geom size=".1" pos=".2 0 0"/></body></worldbody>
  <actuator><position joint="a" kp="3" kv=".5"/><motor joint="a" gear="2" ctrlrange="-.6 .6"/>
    <position joint="b" kp="3" kv=".5"/><motor joint="b" gear="2" ctrlrange="-.6 .6"/></actuator>
</mujoco>
"""


def test_the_force_limit_of_a_joint_clamps_the_sum_of_its_actuators(gs_cpu: ModuleType) -> None:
    """Over steps of the compiled kernel, against MuJoCo."""
    scene = gs_cpu.Scene(show_FPS=False, sim_options=gs_cpu.options.SimOptions(dt=0.002))
    entity = scene.add_entity(gs_cpu.morphs.MJCF(file=TWO_ON_A_JOINT), name="arm")
    scene.build(n_envs=5)
    model = mujoco.MjModel.from_xml_string(TWO_ON_A_JOINT)
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    model.opt.timestep = 0.002
    ctrl = np.array([[0.1, 0.2, 0.1, 0.1], [1, 1, 1, 1], [-1, 0.2, -1, -1], [1, -1, 1, -1], [0, 0, -1, 0.5]])
    entity.control_actuators(ctrl)
    reference = [mujoco.MjData(model) for _ in ctrl]
    for data, own in zip(reference, ctrl, strict=True):
        data.ctrl = own
    for _ in range(5):
        for data in reference:
            mujoco.mj_forward(model, data)
        expected = [data.qfrc_actuator for data in reference]
        np.testing.assert_allclose(entity.get_dofs_control_force().numpy(), expected, rtol=1e-4, atol=1e-4)
        for data in reference:
            mujoco.mj_step(model, data)
        scene.step()
    np.testing.assert_allclose(entity.get_qpos().numpy(), [data.qpos for data in reference], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(entity.get_dofs_velocity().numpy(), [data.qvel for data in reference], rtol=1e-4)


def test_ranges_that_do_not_meet_clamp_one_after_the_other(gs_cpu: ModuleType) -> None:
    """As in MuJoCo, where the joint's range has the last word."""
    xml = """<mujoco><worldbody><body><joint name="a" actuatorfrcrange="-1 1"/><geom size=".1"/></body></worldbody>
      <actuator><motor joint="a" forcerange="-10 -5"/></actuator></mujoco>"""
    scene = gs_cpu.Scene(show_FPS=False)
    entity = scene.add_entity(gs_cpu.morphs.MJCF(file=xml))
    scene.build()
    entity.control_actuators(-7.0)
    assert entity.get_dofs_control_force().tolist() == [-1]
    lower, upper = entity.get_dofs_force_range()
    assert (lower <= upper).all()
