"""What cannot be simulated is refused by name, all of it at once."""

from __future__ import annotations

from pathlib import Path

import mujoco
import pytest

from importers import scenes
from pluriverse.errors import GenesisException
from pluriverse.importers.refusals import refuse_unsupported
from pluriverse.morphs import MJCF

BODY = '<body name="b"><joint name="j"/><geom name="g" size=".1"/>{inside}</body>'


def compiled(inside: str = "", world: str = "", top: str = "", option: str = "") -> mujoco.MjModel:
    xml = f"<mujoco>{option}<worldbody>{world}{BODY.format(inside=inside)}</worldbody>{top}</mujoco>"
    return mujoco.MjModel.from_xml_string(xml)


def actuator(text: str) -> dict[str, str]:
    return {"top": f"<actuator>{text}</actuator>"}


def option(text: str) -> dict[str, str]:
    return {"option": f"<option {text}/>"}


FLEX = '<flexcomp name="f" type="grid" count="3 3 1" spacing=".1 .1 .1" radius=".01" dim="2" mass="1"/>'
TENDON = '<tendon><fixed name="t" {}><joint joint="j" coef="1"/></fixed></tendon>'

REFUSED = {
    "adhesion of a body": (
        actuator('<adhesion name="a" body="b" ctrlrange="0 1"/>'),
        "actuator 'a': drives the contacts",
    ),
    "user dynamics": (
        actuator('<general name="a" joint="j" dyntype="user" actdim="1"/>'),
        "actuator 'a': is defined by callbacks",
    ),
    "user gain": (actuator('<general name="a" joint="j" gaintype="user"/>'), "actuator 'a': is defined by callbacks"),
    "user bias": (actuator('<general name="a" joint="j" biastype="user"/>'), "actuator 'a': is defined by callbacks"),
    "yielding spring": (
        {"world": '<body><joint name="k" stiffness="1" springyield="1"/><geom size=".1"/></body>'},
        "joint 'k': has a spring that yields",
    ),
    "pair adhesion": (
        {
            "world": '<geom name="t" size=".1" pos="2 0 0"/>',
            "top": '<contact><pair name="p" geom1="t" geom2="g" adhesion="1"/></contact>',
        },
        "pair 'p': has adhesion",
    ),
    "height field": (
        {
            "top": '<asset><hfield name="h" nrow="2" ncol="2" size="1 1 1 1"/></asset>',
            "world": '<geom name="t" type="hfield" hfield="h"/>',
        },
        "geom 't': collides as a height field",
    ),
    "surface velocity": (
        {"world": '<geom name="t" size=".1" surfacevel="1 0 0 0 0 0"/>'},
        "geom 't': has a surface velocity",
    ),
    "adhesion": ({"world": '<geom name="t" size=".1" adhesion="1"/>'}, "geom 't': has adhesion"),
    "flex equality": (
        {"world": FLEX, "top": '<equality><flex name="e" flex="f"/></equality>'},
        "equality 'e': is not of type connect, weld, joint or tendon",
    ),
    "yielding tendon": (
        {"top": TENDON.format('stiffness="1" springyield="1"')},
        "tendon 't': has a spring that yields",
    ),
    "flex": (
        {"world": FLEX},
        "flex 'f': is deformable",
    ),
    "integrator": (option('integrator="discrete"'), "option mjINT_DISCRETE: supported are Euler, RK4, implicit and"),
    "solver": (option('solver="CG"'), "option mjSOL_CG: supported is Newton"),
    "noslip": (option('noslip_iterations="3"'), "option noslip_iterations=3"),
    "enabled flag": ({"option": '<option><flag override="enable"/></option>'}, "option mjENBL_OVERRIDE"),
}


@pytest.mark.parametrize(("parts", "message"), REFUSED.values(), ids=REFUSED)
def test_refused_by_name(parts: dict[str, str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # MuJoCo logs warnings about flexes to a file there
    try:
        model = compiled(**parts)
    except ValueError as error:
        if any(text in str(error) for text in ("unrecognized attribute", "Schema violation", "too much data")):
            pytest.skip("this MuJoCo does not know the element")
        raise
    with pytest.raises(GenesisException, match=message):
        refuse_unsupported(model)


SUPPORTED = {
    "plain": {},
    "polynomial spring": {"world": '<body><joint stiffness="1 2 3" damping="1 2 3"/><geom size=".1"/></body>'},
    "measuring tendon": {"top": TENDON.format("")},
    "tendon": {"top": TENDON.format('stiffness="1 2" damping="1" range="0 1" frictionloss="1" armature="1"')},
    "tendon equality": {"top": TENDON.format("") + '<equality><tendon tendon1="t"/></equality>'},
    "height field that does not collide": {
        "top": '<asset><hfield name="h" nrow="2" ncol="2" size="1 1 1 1"/></asset>',
        "world": '<geom type="hfield" hfield="h" contype="0" conaffinity="0"/>',
    },
    "condim 6": {"world": '<geom size=".1" condim="6"/>'},
    "joint equality": {"top": '<equality><joint joint1="j" polycoef="0 1 2 0 0"/></equality>'},
    "weld": {"top": '<equality><weld body1="b"/></equality>'},
    "connect": {
        "inside": '<site name="s"/>',
        "world": '<site name="t"/>',
        "top": '<equality><connect body1="b" anchor="0 0 0"/><connect site1="s" site2="t"/></equality>',
    },
    "mocap": {"world": '<body name="m" mocap="true"><geom size=".1"/></body>'},
    "servo": actuator('<position joint="j" kp="2" kv="1" ctrlrange="-1 1" forcerange="-2 2"/>'),
    "constant affine gain": actuator('<general joint="j" gaintype="affine" gainprm="3" biastype="affine"/>'),
    "force limit": {"world": '<body><joint actuatorfrcrange="-1 1"/><geom size=".1"/></body>'},
    "force limit of several actuators": {
        "world": '<body><joint name="k" actuatorfrcrange="-1 1"/><geom size=".1"/></body>',
        **actuator('<motor joint="k"/><motor joint="k"/>'),
    },
    "affine gain": actuator('<general joint="j" gaintype="affine" gainprm="1 2 0"/>'),
    "activation": actuator('<intvelocity joint="j" kp="1" actrange="-1 1"/><general joint="j" dyntype="filter"/>'),
    "muscle": actuator('<muscle joint="j" lengthrange="0 1"/>'),
    "motors": actuator('<pid joint="j" kp="1" input="pos vel"/><dcmotor joint="j" motorconst="1" resistance="1"/>'),
    "actuator damping and armature": actuator('<motor joint="j" damping="1" armature="1"/>'),
    "delay": actuator('<motor joint="j" delay=".01" nsample="3" interp="cubic"/>'),
    "history without delay": actuator('<motor joint="j" nsample="3"/>'),
    "transmissions": {
        "inside": '<site name="s"/>',
        "world": '<body><joint name="ball" type="ball"/><geom size=".1"/></body>',
        "top": TENDON.format("") + '<actuator><motor tendon="t"/><motor site="s"/><motor joint="ball"/>'
        '<orientation joint="ball" kp="1"/></actuator>',
    },
    "limited gravity compensation": {
        "world": '<body gravcomp="1"><joint actuatorgravcomp="true" actuatorfrcrange="-1 1"/><geom size=".1"/></body>'
    },
    "RK4": option('integrator="RK4"'),
    "implicit": option('integrator="implicit"'),
    "fluid": option('density="1.2" viscosity="1" wind="1 0 0"'),
    "disabled actuators": option('actuatorgroupdisable="2"'),
    "unclamped controls": {"option": '<option><flag clampctrl="disable"/></option>'},
    "sensors": {"top": '<sensor><jointpos joint="j"/></sensor>'},
    "keyframe": {"top": '<keyframe><key qpos=".1"/></keyframe>'},
    "harmless flags": {"option": '<option><flag energy="enable" warmstart="disable" island="disable"/></option>'},
}


@pytest.mark.parametrize("parts", SUPPORTED.values(), ids=SUPPORTED)
def test_supported(parts: dict[str, str]) -> None:
    refuse_unsupported(compiled(**parts))


def test_everything_is_named_at_once() -> None:
    model = compiled(
        world=f'<geom name="t" size=".1" adhesion="1"/><geom size=".1" adhesion="2"/>{FLEX}',
        top='<actuator><general name="a" joint="j" gaintype="user"/></actuator><equality><flex flex="f"/></equality>',
        option='<option solver="PGS" noslip_iterations="2"/>',
    )
    with pytest.raises(GenesisException) as caught:
        refuse_unsupported(model)
    text = str(caught.value)
    for part in (
        "actuator 'a'",
        "geom 't', number 1 (unnamed, of body 'world')",
        "equality number 0 (unnamed)",
        "mjSOL_PGS",
        "noslip_iterations=2",
    ):
        assert part in text


def test_names_are_those_of_the_entity() -> None:
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><geom name="1/a/b" size=".1" adhesion="1"/></worldbody></mujoco>'
    )
    with pytest.raises(GenesisException, match="  - robot: geom 'a/b': has adhesion"):
        refuse_unsupported(model, ["floor", "robot"])


def test_unnamed_elements_are_those_of_the_entity() -> None:
    """They count within it, and none of them is said by the prefix of the merged model."""
    xml = """
      <mujoco><worldbody><geom type="plane" size="1 1 1"/><geom size=".1" adhesion="1"/>
        <body><joint name="j"/><geom size=".1"/><geom size=".1" adhesion="1"/></body></worldbody>
        <actuator><motor joint="j"/><general joint="j" gaintype="user"/></actuator>
        <equality><flex flex="f"/></equality></mujoco>""".replace("<body>", f'{FLEX}<body name="b">')
    nameless = xml.replace(' name="b"', "").replace(FLEX, "").replace('<equality><flex flex="f"/></equality>', "")
    with pytest.raises(GenesisException) as caught:
        scenes.compiled(MJCF(file=xml), MJCF(file=nameless))
    text = str(caught.value)
    for part in (
        "e0: geom number 1 (unnamed, of body 'world'), number 3 (unnamed, of body 'b'): has adhesion",
        "e1: geom number 1 (unnamed, of body 'world'), number 3 (unnamed, of body number 0): has adhesion",
        "e0: actuator number 1 (unnamed): is defined by callbacks",
        "e1: actuator number 1 (unnamed): is defined by callbacks",
        "e0: equality number 0 (unnamed): is not of type connect",
    ):
        assert part in text
    assert "0/" not in text
    assert "1/" not in text


ONE_SPHERE = '<mujoco><worldbody><body><geom size=".1"/></body></worldbody></mujoco>'


def test_errors_of_mujoco_name_the_entity() -> None:
    massless = '<mujoco><worldbody><body name="b"><joint/></body></worldbody></mujoco>'
    with pytest.raises(GenesisException, match=r"cannot compile the scene: (.|\n)*'b' of entity 'e1'") as caught:
        scenes.compiled(MJCF(file=ONE_SPHERE), MJCF(file=massless))
    assert "1/b" not in str(caught.value)
