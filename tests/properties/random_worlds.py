"""Random worlds as MJCF: trees of joint stacks and shapes, actuators and couplings, and a random state of one."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from hypothesis import strategies as st

from physics_reference import Sample
from pluriverse.model import Model
from pluriverse.solver.state import mocap_rest

# Contact bits: everything meets the floor; spheres and capsules also meet each other.
BITS = {"sphere": "contype='6' conaffinity='5'", "capsule": "contype='6' conaffinity='5'"}
FLAT = "contype='2' conaffinity='1'"
SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "box": 3, "ellipsoid": 3}
ROOTS = (("free",), ("ball",), ("hinge",), ("slide", "hinge"), ("slide", "slide", "slide", "ball"))
STACKS = (("hinge",), ("slide",), ("hinge", "hinge"), ("slide", "hinge", "slide"), ("hinge", "ball"), ("ball",), ())
ACTUATORS = (
    '<motor joint="{j}" gear="{g}" ctrlrange="-1 1"/>',
    '<position joint="{j}" kp="{k}" kv=".3" gear="{g}" forcerange="-3 2"/>',
    '<velocity joint="{j}" kv="{k}"/>',
    '<general joint="{j}" dyntype="filter" dynprm=".1" gainprm="{k}" biastype="affine" biasprm=".1 -2 -.1"/>',
)

tenths = st.integers(-10, 10).map(lambda k: k / 10)
sizes = st.integers(1, 4).map(lambda k: k / 20)
positive = st.integers(1, 30).map(lambda k: k / 10)


@dataclass(frozen=True)
class World:
    """MJCF of a world, and a seed for its state."""

    bodies: str
    after: str
    option: str
    seed: int

    def compiled(self, frame: str = "", gravity: str = "0 0 -9.81") -> mujoco.MjModel:
        """The world, in a frame (attributes of `<frame>`)."""
        return mujoco.MjModel.from_xml_string(
            f'<mujoco><option gravity="{gravity}" {self.option}/><compiler inertiafromgeom="true"/><worldbody>'
            f'<frame {frame}><geom type="plane" size="5 5 1" contype="1" conaffinity="2"/>{self.bodies}</frame>'
            f"</worldbody>{self.after}</mujoco>"
        )

    def sample(self, mj_model: mujoco.MjModel) -> Sample:
        """A state: a disturbed rest pose, velocities, controls."""
        rng = np.random.default_rng(self.seed)
        qpos = mj_model.qpos0.copy()
        mujoco.mj_integratePos(mj_model, qpos, 0.4 * rng.normal(size=mj_model.nv), 1.0)
        return Sample(
            qpos=qpos,
            qvel=rng.normal(size=mj_model.nv),
            warmstart=rng.normal(size=mj_model.nv),
            ctrl=rng.normal(size=mj_model.nu),
            act=rng.normal(size=mj_model.na),
            mocap=mocap_rest(Model.from_mujoco(mj_model)),
        )


def _vector(draw: st.DrawFn, of: st.SearchStrategy = tenths) -> str:
    return " ".join(str(draw(of)) for _ in range(3))


def _direction(draw: st.DrawFn) -> str:
    return " ".join(str(k) for k in draw(st.tuples(*[st.integers(-2, 2)] * 3).filter(any)))


def _joint(draw: st.DrawFn, kind: str, name: str) -> str:
    if kind == "free":
        return f'<joint name="{name}" type="free"/>'
    text = f'<joint name="{name}" type="{kind}" pos="{_vector(draw, sizes)}" armature="{draw(sizes)}"'
    text += f' damping="{draw(sizes)}" stiffness="{draw(st.sampled_from([0, 2]))}"'
    text += f' frictionloss="{draw(st.sampled_from([0, 0.3]))}"'
    if kind != "ball":
        text += f' axis="{_direction(draw)}" ref="{draw(tenths)}" springref="{draw(tenths)}"'
    if draw(st.booleans()):
        text += f' limited="true" range="{"0" if kind == "ball" else "-20"} 20"'
    return text + "/>"


def _geom(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(sorted(SIZES)))
    size = " ".join(str(draw(sizes)) for _ in range(SIZES[kind]))
    place = f'pos="{_vector(draw, sizes)}" euler="{_vector(draw, st.integers(-60, 60))}"'
    return (
        f'<geom type="{kind}" size="{size}" {place} condim="{draw(st.sampled_from([1, 3]))}" {BITS.get(kind, FLAT)}/>'
    )


def _body(draw: st.DrawFn, stack: tuple[str, ...], joints: list[tuple[str, str]], depth: int) -> str:
    place = _vector(draw, sizes) if depth else f"{draw(tenths)} {draw(tenths)} {draw(positive)}"
    turn, lifted = _vector(draw, st.integers(-90, 90)), draw(st.sampled_from([0, 0.5]))
    text = f'<body pos="{place}" euler="{turn}" gravcomp="{lifted}">'
    for kind in stack:
        joints.append((f"j{len(joints)}", kind))
        text += _joint(draw, kind, joints[-1][0])
    text += "".join(_geom(draw) for _ in range(draw(st.integers(1, 2))))
    for _ in range(draw(st.integers(0, 2 - depth))):
        text += _body(draw, draw(st.sampled_from(STACKS)), joints, depth + 1)
    return text + "</body>"


@st.composite
def worlds(draw: st.DrawFn, option: str = "") -> World:
    """Up to three trees over a floor."""
    joints: list[tuple[str, str]] = []
    bodies = "".join(_body(draw, draw(st.sampled_from(ROOTS)), joints, 0) for _ in range(draw(st.integers(1, 3))))
    scalar = [name for name, kind in joints if kind in ("hinge", "slide")]
    chosen = draw(st.lists(st.sampled_from(scalar), max_size=3)) if scalar else []
    actuators = "".join(
        draw(st.sampled_from(ACTUATORS)).format(j=name, g=draw(tenths) or 1, k=draw(positive)) for name in chosen
    )
    after = f"<actuator>{actuators}</actuator>"
    if len(scalar) > 1 and draw(st.booleans()):
        after += f'<equality><joint joint1="{scalar[0]}" joint2="{scalar[1]}" polycoef=".1 .5 .2 0 0"/></equality>'
    integrator = draw(st.sampled_from(["Euler", "implicitfast"]))
    return World(bodies, after, f'integrator="{integrator}" {option}', draw(st.integers(0, 1000)))
