"""The models that physics tests run on: robots from files, and small worlds that hold one feature each."""

from __future__ import annotations

import functools
from pathlib import Path

import mujoco
import pytest

import pluriverse
from actuated_worlds import ACTUATED
from pluriverse.collision.narrow_phase import CONVEX
from pluriverse.collision_pairs import contact_pairs
from pluriverse.importers.refusals import refuse_unsupported
from pluriverse.model import Model
from robot_files import FILES as ROBOTS
from robot_files import robot_file

ASSETS = Path(pluriverse.__file__).parent / "assets" / "xml"
OWN = {path.stem: path for path in sorted(ASSETS.rglob("*.xml"))}
SCENES = {
    name: Path(__file__).parents[2] / "shared" / "scenes" / f"{name}.xml"
    for name in ("cubes", "franka", "humanoid", "quad")
}

FLOOR = '<geom name="floor" type="plane" size="5 5 1"/>'


def world(bodies: str, option: str = "", before: str = "", after: str = "") -> str:
    """MJCF text of a small world."""
    return (
        f'<mujoco><option integrator="implicitfast" {option}/>{before}<worldbody>{bodies}</worldbody>{after}</mujoco>'
    )


JOINTS = """
<body pos="0 0 1" euler="20 30 40"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>
  <joint type="slide" axis="0 0 1" damping=".3"/><joint type="ball" pos=".1 0 .05" armature=".02"/>
  <geom type="box" size=".2 .1 .05" pos=".05 .02 .1" euler="10 20 30"/>
  <body pos=".3 0 .1" euler="0 40 0"><joint axis="0 1 0" pos="0 .1 0"/><joint axis="1 0 1" pos=".1 0 0" ref="20"/>
    <joint type="slide" axis="1 1 0" ref=".1"/><geom type="capsule" size=".05 .2" mass="1.5"/>
    <body pos="0 0 .3" euler="10 0 90"><geom type="sphere" size=".1" mass=".4"/></body>
    <body pos="0 .2 0"><joint type="ball"/><geom type="ellipsoid" size=".1 .05 .02"/></body></body></body>
<body pos="0 2 0"><freejoint/><geom type="cylinder" size=".1 .2" pos=".1 0 .2"/>
  <body pos=".2 0 0"><joint axis="0 0 1" armature=".05"/><geom size=".1"/></body></body>
"""

LEG = """
<body name="thigh{k}" pos="{x} {y} 0"><joint axis="0 1 0" range="-40 50" limited="true" frictionloss=".1"/>
  <geom type="capsule" fromto="0 0 0 {dx} 0 -.2" size=".03" contype="0"/>
  <body pos="{dx} 0 -.2"><joint axis="0 1 0" damping=".05" armature=".01"/>
    <geom type="capsule" fromto="0 0 0 0 0 -.2" size=".02" contype="0"/>
    <geom name="foot{k}" size=".03" pos="0 0 -.22" contype="0" friction="{mu}"/></body></body>
"""


def four_legs() -> str:
    """A trunk with four legs of equal structure, whose sizes and places differ, that meet only the floor."""
    legs = [
        LEG.format(k=k, x=x, y=y, dx=0.02 * (k + 1), mu=0.5 + 0.1 * k)
        for k, (x, y) in enumerate([(0.3, 0.2), (0.3, -0.2), (-0.3, 0.2), (-0.3, -0.2)])
    ]
    trunk = '<body pos="0 0 .43"><freejoint/><geom type="box" size=".3 .15 .05" contype="0" conaffinity="0"/>'
    motors = "".join(f'<position joint="hip{k}" kp="20" kv=".5"/>' for k in range(4))
    legs = [leg.replace("<joint axis", f'<joint name="hip{k}" axis', 1) for k, leg in enumerate(legs)]
    return world(f"{FLOOR}{trunk}{''.join(legs)}</body>", after=f"<actuator>{motors}</actuator>")


def chain(links: int) -> str:
    """Pendulums in a row, the first and the last coupled by an equality."""
    bodies = ""
    for k in reversed(range(links)):
        axis = ("0 1 0", "1 0 0")[k % 2]
        bodies = (
            f'<body pos="0 0 -.1"><joint name="j{k}" axis="{axis}" damping=".01" armature=".002"/>'
            f'<geom type="capsule" fromto="0 0 0 0 0 -.1" size=".02" contype="0" conaffinity="0"/>{bodies}</body>'
        )
    equality = f'<equality><joint joint1="j{links - 1}" joint2="j0" polycoef="0 .5 0 0 0"/></equality>'
    return world(bodies, after=equality)


TORSION = """
<geom name="floor" type="plane" size="5 5 1" condim="1"/>
<body pos="0 0 .15"><freejoint/><geom size=".15" condim="4" friction=".5 .03 .01"/>
  <body pos=".3 0 0"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 -.1" size=".06" condim="6"
    friction=".8 .02 .005"/></body></body>
<body pos=".1 .1 .4"><freejoint/><geom type="capsule" size=".1 .2" euler="0 90 0" condim="3"/></body>
<body pos="-.4 0 .1"><freejoint/><geom name="d" size=".12" condim="6" friction="1 .05 .02"/></body>
<body pos="-1 0 .1"><freejoint/><geom size=".1"/></body>
<body pos="1 0 .1"><joint type="slide" axis="0 0 1"/><joint type="slide" axis="1 0 0"/>
  <joint axis="0 0 1"/><geom size=".1" condim="1"/></body>
"""

UNTOUCHED = '<default><geom contype="0" conaffinity="0"/></default>'

SMALL = {
    "joints": world(JOINTS, before='<default><geom contype="0" conaffinity="0"/></default>'),
    "gravcomp": world(
        """<body gravcomp="1"><joint axis="0 1 0" pos="0 0 .2"/><geom size=".1" pos=".3 0 0"/>
             <body pos=".5 0 0" gravcomp=".5"><joint axis="1 1 0"/><geom size=".1" pos=".1 .1 0"/>
               <body pos=".1 0 .1" gravcomp="2"><geom size=".05" pos="0 .1 0"/></body></body></body>
           <body pos="0 3 0" gravcomp=".7"><freejoint/><geom type="box" size=".1 .1 .2" pos="0 .1 0"/></body>""",
    ),
    "springs": world(
        """<body pos="0 0 1"><joint type="free" stiffness="3" damping=".2"/><geom type="box" size=".1 .2 .3"/>
             <body pos=".3 0 0"><joint type="ball" stiffness="2" damping=".1"/>
               <geom size=".1" pos=".1 0 .1"/></body></body>
           <body pos="0 3 1"><joint axis="0 1 0" stiffness="5" springref="30"/><geom size=".1" pos=".2 0 0"/>
             <body pos=".4 0 0"><joint type="slide" axis="1 0 0" stiffness="50" springref=".1" damping="1"/>
               <geom size=".1"/></body></body>""",
        before='<default><geom contype="0" conaffinity="0"/></default>',
    ),
    "frictionloss": world(
        """<body pos="0 0 1"><joint axis="0 1 0" frictionloss=".5"/><geom size=".1" pos=".3 0 0"/>
             <body pos=".5 0 0"><joint type="slide" axis="1 0 0" frictionloss="2" solreffriction=".05 1"/>
               <geom size=".1"/><body pos=".2 0 0"><joint type="ball" frictionloss=".02"
               solimpfriction=".8 .9 .01 .5 2"/><geom size=".1" pos="0 .2 0"/></body></body></body>
           <body pos="0 3 0"><joint type="free" frictionloss="1" solreffriction="-50 -20"/>
             <geom type="box" size=".1 .2 .3"/></body>""",
        before='<default><geom contype="0" conaffinity="0"/></default>',
    ),
    "equality": world(
        """<body pos="0 0 1"><joint name="a" axis="0 1 0" ref="10"/><geom size=".1" pos=".3 0 0"/>
             <body pos=".5 0 0"><joint name="b" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/>
               <body pos=".3 0 0"><joint name="c" type="slide" axis="1 0 0" range="-.1 .1" limited="true"/>
                 <geom size=".1"/></body></body></body>
           <body pos="0 3 0"><joint name="d" axis="1 0 0"/><geom size=".1" pos="0 .2 0"/></body>""",
        before='<default><geom contype="0" conaffinity="0"/></default>',
        after="""<equality><joint joint1="a" joint2="b" polycoef=".1 .5 -.3 .2 .1" solref=".05 .7"/>
          <joint joint1="c" polycoef=".05 0 0 0 0" solimp=".8 .95 .02 .3 3"/>
          <joint joint1="d" joint2="a" solref="-300 -20"/><joint joint1="d" active="false"/></equality>""",
    ),
    "connect": world(
        """<body name="a" pos="0 0 1"><freejoint/><geom type="box" size=".1 .2 .3"/></body>
           <body name="b" pos=".5 0 1" euler="20 30 40"><freejoint/><geom type="box" size=".1 .2 .1"/></body>
           <body name="c" pos="0 1 1"><freejoint/><geom size=".1" pos=".1 0 0"/></body>""",
        before=UNTOUCHED,
        after="""<equality><connect body1="a" body2="b" anchor=".2 .1 .05" solref=".05 .8" solimp=".8 .95 .02 .3 3"/>
          <weld body1="b" body2="c" anchor=".1 .05 .2" torquescale=".7" solref=".1 .7"/>
          <weld body1="c" body2="a" relpose=".1 1 .1 1 .1 .2 .1" solref="-300 -20" active="false"/>
          <connect body1="c" anchor="0 .1 .1" solref=".06 1"/></equality>""",
    ),
    "four_bar": world(
        """<body name="base" pos="0 0 1"><freejoint/><geom type="box" size=".3 .1 .05"/>
             <body pos="-.2 0 .05"><joint name="crank" axis="0 1 0"/>
               <geom type="capsule" fromto="0 0 0 0 0 .2" size=".02"/>
               <body name="rod" pos="0 0 .2"><joint axis="0 1 0"/>
                 <geom type="capsule" fromto="0 0 0 .4 0 .1" size=".02"/></body></body>
             <body name="rocker" pos=".2 0 .05"><joint axis="0 1 0" damping=".1"/>
               <geom type="capsule" fromto="0 0 0 0 0 .3" size=".02"/></body></body>""",
        before=UNTOUCHED,
        after="""<equality><connect name="pin" body1="rod" body2="rocker" anchor=".4 0 .1"/></equality>
          <actuator><motor joint="crank"/></actuator>""",
    ),
    "sites": world(
        """<body pos="0 0 1"><joint axis="0 1 1" pos="0 .2 0"/><joint type="slide" axis="1 0 0"/>
             <geom type="box" size=".1 .15 .2"/>
             <body pos=".3 0 0"><joint axis="0 1 0"/><joint axis="1 0 1" damping="1"/><geom type="box" size=".1 .2 .3"/>
               <site name="a" pos=".1 .2 .1" euler="10 20 30"/></body>
             <body pos="0 .3 0" euler="20 30 40"><joint type="ball"/><geom type="box" size=".1 .2 .1"/>
               <body name="fixed" pos=".1 0 0" euler="1 2 50"><geom type="box" size=".1 .1 .05"/>
                 <site name="b" pos=".1 0 .1" euler="50 20 30"/></body></body></body>
           <body name="post" pos=".2 .4 1.2"><site name="c" pos="0 0 .1" euler="0 30 0"/></body>""",
        before=UNTOUCHED,
        after="""<equality><weld site1="a" site2="b" torquescale="2" solimp=".5 .7 .1"/>
          <connect site1="b" site2="c" solref=".1 1"/>
          <connect body1="fixed" body2="post" anchor="0 .1 0" solref=".2 1" active="false"/>
          <weld site1="c" site2="a" solref=".2 1" active="false"/></equality>""",
    ),
    "mocap": world(
        f"""{FLOOR}
           <body name="target" mocap="true" pos=".6 0 .7" euler="0 40 0"><geom type="capsule" size=".05 .1"/>
             <body name="tool" pos="0 0 .1" euler="30 0 0"><geom type="capsule" size=".04 .1"/>
               <site name="tip" pos="0 .1 0"/><site name="grip" euler="0 0 20"/></body>
             <body pos="0 0 -.2"><joint name="hung" axis="0 1 0"/><geom size=".05" pos="0 0 -.1"/>
               <body pos="0 0 -.2"><joint type="ball"/><geom size=".04" pos=".02 0 -.1"/></body></body></body>
           <body name="plate" mocap="true" pos="-.5 0 .3" euler="5 10 0"><geom type="plane" size="1 1 .1"/></body>
           <body pos="0 0 .4"><joint axis="0 0 1" damping=".1"/><joint axis="0 1 0" damping=".1"/>
             <geom size=".05" pos=".05 0 0"/>
             <body pos=".3 0 0"><joint axis="0 1 0" damping=".1"/>
               <geom type="capsule" fromto="0 0 0 -.2 0 0" size=".03"/>
               <body name="hand" pos=".3 0 0"><joint type="ball" damping=".01"/><geom type="box" size=".05 .04 .03"/>
                 <site name="palm" pos="0 0 .03"/></body></body></body>
           <body pos=".55 .05 .9"><freejoint/><geom size=".08"/></body>
           <body pos="-.6 0 .35"><freejoint/><geom type="box" size=".05 .06 .07"/></body>""",
        before='<default><geom condim="3"/></default>',
        after="""<equality><weld name="drag" body1="target" body2="hand" torquescale=".3" solref=".04 1"/>
          <connect site1="palm" site2="tip" active="false"/><weld site1="grip" site2="palm" active="false"/></equality>
          <contact><exclude body1="tool" body2="hand"/></contact>""",
    ),
    "polynomial": world(
        """<body pos="0 0 1"><joint type="free" stiffness="3 4 20" damping=".2 .3 .1"/>
             <geom type="box" size=".1 .2 .3"/>
             <body pos=".3 0 0"><joint type="ball" stiffness="0 2 1" damping="0 .1 .2"/>
               <geom size=".1" pos=".1 0 .1"/></body></body>
           <body pos="0 3 1"><joint axis="0 1 0" stiffness="5 -2" springref="30" damping=".1 .4"/>
             <geom size=".1" pos=".2 0 0"/>
             <body pos=".4 0 0"><joint type="slide" axis="1 0 0" stiffness="50 0 900" springref=".1" damping="0 0 3"/>
               <geom size=".1"/></body></body>""",
        before=UNTOUCHED,
    ),
    "tendons": world(
        """<site name="w" pos=".2 .1 1.5"/>
           <body pos="0 0 1"><joint name="a" axis="0 1 0" damping=".2 .1"/><geom size=".1" pos=".3 0 0"/>
             <site name="s" pos=".2 0 .1"/>
             <body pos=".4 0 0"><joint name="b" axis="0 1 1"/><geom size=".1" pos=".2 0 0"/>
               <site name="t" pos=".2 .1 .1"/></body>
             <body pos="-.3 0 0"><joint name="c" type="slide" axis="1 0 0"/><geom size=".1" pos="-.1 0 0"/>
               <body pos="-.1 0 0" euler="10 20 30"><site name="u" pos="0 0 .1"/></body></body></body>
           <body pos=".3 .6 1"><freejoint/><geom type="box" size=".1 .15 .2"/><site name="f" pos=".1 0 .1"/></body>""",
        before=UNTOUCHED,
        after="""<tendon>
          <spatial range=".4 .7" margin=".05" solimplimit=".8 .95 .02 .3 3" solreflimit=".04 .9"><site site="w"/>
            <site site="f"/></spatial>
          <spatial stiffness="30 50 20" springlength=".5 .9" damping="2 1"><site site="w"/><site site="s"/>
            <site site="t"/><pulley divisor="2"/><site site="s"/><site site="u"/><pulley divisor=".5"/><site site="f"/>
            <site site="t"/></spatial>
          <spatial armature=".4" frictionloss=".2"><site site="f"/><site site="t"/><site site="u"/></spatial>
          <fixed range="-.1 .1" margin=".4" armature=".1" damping=".3"><joint joint="a" coef="1"/>
            <joint joint="b" coef="-2"/></fixed>
          <fixed frictionloss=".4" solreffriction=".05 1" stiffness="10"><joint joint="b" coef=".7"/>
            <joint joint="c" coef="3"/></fixed></tendon>""",
    ),
    "wrapping": world(
        """<geom name="drum" type="cylinder" size=".1 .3" pos=".2 0 1.1" euler="80 10 0"/>
           <site name="w" pos=".2 .05 1.4"/><site name="over" pos=".2 0 1.25"/>
           <body pos="0 0 1"><joint axis="0 1 0"/><joint axis="1 0 0" pos="0 .1 0"/><geom size=".1" pos=".3 0 0"/>
             <geom name="ball" size=".08" pos=".35 0 .1" euler="20 30 40"/><site name="beside" pos=".35 -.05 .25"/>
             <site name="a" pos=".3 0 -.1"/><site name="b" pos=".45 .05 .2"/><site name="inside" pos=".36 0 .11"/>
             <geom name="ring" type="cylinder" size=".06 .1" pos=".3 .1 .1" euler="80 10 0"/>
             <site name="core" pos=".3 .1 .1"/>
             <body pos=".5 0 0"><joint type="ball"/><geom size=".1" pos=".2 0 0"/><site name="c" pos=".1 0 .15"/>
               <site name="d" pos=".05 .1 -.15"/></body></body>
           <body pos=".4 .5 1"><joint type="slide" axis="0 1 1"/><geom size=".1"/><site name="e" pos="0 0 .1"/>
             <site name="aside" pos="-.2 -.4 .3"/></body>""",
        before=UNTOUCHED,
        after="""<tendon>
          <spatial stiffness="30"><site site="w"/><geom geom="drum"/><site site="a"/><geom geom="ball"/>
            <site site="c"/></spatial>
          <spatial damping="2 1"><site site="a"/><geom geom="drum" sidesite="over"/><site site="e"/>
             <pulley divisor="3"/>
            <site site="b"/><geom geom="ball" sidesite="beside"/><site site="d"/></spatial>
          <spatial frictionloss=".5"><site site="b"/><geom geom="ball" sidesite="inside"/><site site="e"/></spatial>
          <spatial limited="true" range=".2 .4"><site site="e"/><geom geom="ring" sidesite="core"/>
            <site site="c"/></spatial>
          <spatial stiffness="5 3" springlength=".1"><site site="c"/><geom geom="ball" sidesite="aside"/>
             <site site="w"/>
            <geom geom="drum" sidesite="aside"/><site site="d"/></spatial></tendon>""",
    ),
    "tendon_equality": world(
        """<site name="w" pos="0 0 1.6"/>
           <body pos="0 0 1"><joint name="a" axis="0 1 0" ref="10"/><geom size=".1" pos=".3 0 0"/>
             <body pos=".5 0 0"><joint name="b" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/>
               <site name="s" pos=".2 0 0"/>
             </body></body>
           <body pos="0 1 1"><joint name="c" axis="1 0 0"/><geom size=".1" pos="0 .2 0"/>
             <site name="t" pos="0 .3 .1"/></body>""",
        before=UNTOUCHED,
        after="""<tendon><spatial name="rope"><site site="w"/><site site="s"/></spatial>
            <spatial name="string"><site site="w"/><site site="t"/></spatial>
            <fixed name="sum"><joint joint="a" coef="1"/><joint joint="b" coef="-.5"/></fixed></tendon>
          <equality><tendon tendon1="rope" tendon2="sum" polycoef=".02 .3 -.3 .2 .1" solref=".05 .7"/>
            <tendon tendon1="string" polycoef=".05 0 0 0 0" solref=".05 1" solimp=".8 .95 .02 .3 3"/>
            <tendon tendon1="sum" tendon2="string" solref="-300 -20"/>
            <tendon tendon1="sum" active="false"/></equality>""",
    ),
    "limits": world(
        """<body pos="0 0 1"><joint type="ball" range="0 40" limited="true" margin=".1"/><geom size=".1" pos=".3 0 0"/>
             <body pos=".5 0 0"><joint axis="0 1 0" range="-10 20" limited="true" margin=".4"/>
               <geom size=".1" pos=".2 0 0"/>
               <body pos=".3 0 0"><joint axis="1 0 0" range="-30 30" limited="true" solreflimit="-200 -5"
                 solimplimit=".7 .9 .2 .3 2.5"/><geom size=".1" pos="0 .1 0"/>
                 <body pos=".2 0 0"><joint type="slide" axis="1 0 0" range="-.05 .05" limited="true"
                   solimplimit=".9 .9 .1"/><geom size=".1"/>
                   <body pos=".2 0 0"><joint type="ball" range="0 60" limited="true" solimplimit=".5 .99 .3 .6 1"/>
                     <geom size=".1" pos="0 .1 0"/></body></body></body></body></body>""",
        before='<default><geom contype="0" conaffinity="0"/></default>',
    ),
    "shapes": world(
        """<geom type="plane" size="5 5 1" euler="8 5 0" friction=".4" contype="1" conaffinity="2"/>
           <body pos="0 0 .14"><freejoint/><geom type="box" size=".1 .2 .15"/></body>
           <body pos="1 0 .10"><freejoint/><geom type="cylinder" size=".1 .2" condim="1" priority="1"/></body>
           <body pos="2 0 -.02"><freejoint/><geom type="ellipsoid" size=".1 .2 .15" margin=".02"/></body>
           <body pos="3 0 -.1"><freejoint/><geom type="mesh" mesh="rock" priority="1" friction=".9"/></body>
           <body pos="4 0 -.09"><freejoint/><geom type="capsule" size=".1 .2" solref="-2000 -50"/>{""}
             <body pos="0 .4 -.05"><joint axis="1 0 0" range="-30 30" limited="true"/>
               <geom type="sphere" size=".15" solimp=".8 .9 .01 .4 1" solmix="3"/></body></body>""",
        before="""<asset><mesh name="rock" vertex=".2 0 0 -.2 .05 0 0 .15 .02 .03 -.2 0 0 .02 .2 .05 .05 -.15 .1 .1 .1
          -.1 -.1 .1 -.1 .1 -.1 .1 -.1 -.1 .12 .08 -.1"/></asset><default><geom contype="2" conaffinity="1"/>
          </default>""",
    ),
    "contact_parameters": world(
        f"""{FLOOR}
           <body pos="0 0 .12"><freejoint/><geom name="a" size=".1" condim="1" priority="1"/></body>
           <body pos="1 0 .12"><freejoint/><geom name="b" size=".1" margin=".05" gap=".03" friction=".1"/></body>
           <body pos="2 0 .12"><freejoint/><geom name="c" size=".1" solref="-3000 -90" priority="2"
             friction=".3"/></body>
           <body pos="3 0 .12"><freejoint/><geom name="d" type="capsule" size=".1 .2" euler="80 0 0"/></body>
           <body pos="3.1 0 .3"><freejoint/><geom name="e" type="capsule" size=".1 .2" euler="0 85 0" solmix="2"
             solref=".03 .8" friction=".6"/></body>""",
        option='impratio="4"',
        before='<default><geom contype="1" conaffinity="1" solimp=".85 .97 .01 .4 3"/></default>',
        after="""<contact><pair geom1="d" geom2="floor" condim="3" friction=".7 .3 .01 .001 .001" margin=".01"
          solref=".04 1.2" solimp=".7 .9 .02 .5 2"/></contact>""",
    ),
    "round": world(
        """<geom name="floor" type="plane" size="5 5 1"/><geom type="sphere" size=".2" pos=".6 0 .1"/>
           <body pos="-.6 0 .1" euler="20 10 0"><geom type="capsule" size=".1 .3"/></body>
           <body pos="0 0 .2"><freejoint/><geom size=".15"/><body pos=".3 0 0"><joint axis="0 1 0"/>
             <geom type="capsule" fromto="0 0 0 .3 0 .1" size=".06"/></body></body>
           <body pos=".1 .1 .5"><freejoint/><geom type="capsule" size=".1 .2" euler="0 90 0"/></body>
           <body pos="-.4 0 .5"><joint type="slide" axis="0 0 1"/><geom size=".12"/></body>""",
    ),
    "torsion": world(TORSION, option='impratio="2"'),
    "elliptic": world(
        TORSION.replace('condim="4"', 'condim="3"').replace('condim="6"', 'condim="3"'),
        option='cone="elliptic" impratio="3"',
    ),
    "elliptic_torsion": world(
        TORSION,
        option='cone="elliptic"',
        after="""<contact><pair geom1="d" geom2="floor" condim="6" friction=".7 .3 .01 .001 .002"
          solreffriction=".05 1.1"/></contact>""",
    ),
    "damped": world(
        """<body pos="0 0 1"><joint axis="0 1 0" damping="2"/><geom size=".1" pos=".3 0 0"/>
             <body pos=".5 0 0"><joint type="ball" damping="1"/><geom type="box" size=".1 .2 .1" pos=".2 0 0"/>
               <body pos=".3 0 0"><joint axis="0 1 0" damping="3" armature=".01" range="-10 10" limited="true"/>
                 <geom size=".05" pos=".1 0 0"/></body></body></body>""",
        before='<default><geom contype="0" conaffinity="0"/></default>',
    ),
    "actuators": world(
        """<body pos="0 0 1"><joint name="a" axis="0 1 0"/><geom size=".1" pos=".3 0 0"/>
             <body pos=".5 0 0"><joint name="b" axis="1 1 0" actuatorfrcrange="-1 1.5"/><geom size=".1" pos=".2 0 0"/>
               <body pos=".3 0 0"><joint name="c" type="slide" axis="1 0 0"/><geom size=".1"/>
                 <body pos=".2 0 0"><joint name="d" axis="0 1 0"/><geom size=".1" pos="0 0 .1"/></body>
           </body></body></body>
           <body pos="0 3 0"><joint name="e" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/></body>""",
        before='<default><geom contype="0" conaffinity="0"/></default>',
        after="""<actuator><position joint="a" kp="30" kv="2" forcerange="-2 3" gear="1.5"/>
          <motor joint="a" gear="-2" ctrlrange="-.5 .5" ctrllimited="true"/>
          <position joint="b" kp="10" kv="1"/><velocity joint="c" kv="5" ctrlrange="-1 1" ctrllimited="true"/>
          <general joint="d" gainprm="3" biastype="affine" biasprm=".5 -2 -.3" forcerange="-1 1" gear="-1.2"/>
          <general joint="d" gainprm="2" biastype="none" biasprm="9 9 9"/>
          <velocity joint="e" kv="4" forcerange="-1 1"/></actuator>""",
    ),
    "four_legs": four_legs(),
    "chain": chain(40),
    **ACTUATED,
}

LARGE = {"dm_humanoid_cmu", "g1", "scene_cubes"}  # in the long form only


def names(kind: str) -> list[str]:
    """Names of models: `small`, `robots` (of moderate size), or `large`."""
    robots = [f"own_{name}" for name in OWN] + [f"scene_{name}" for name in SCENES] + list(ROBOTS)
    return {
        "small": list(SMALL),
        "robots": [name for name in robots if name not in LARGE],
        "large": sorted(LARGE),
    }[kind]


@functools.cache
def load(name: str, *, masked: bool = False, **option: float) -> mujoco.MjModel:
    """A compiled model by name or from MJCF text, not to be changed.

    Replaced are integrators other than Euler by implicitfast, and the solver by Newton. Pairs of the convex collider,
    whose contacts are MuJoCo's only nearly (tests/collision), are excluded. A robot without a floor gets one. `masked`:
    its geoms meet the floor only. `option`: fields of mjOption.
    """
    text = SMALL.get(name, name if name.startswith("<") else "")
    spec = mujoco.MjSpec.from_string(text) if text else mujoco.MjSpec.from_file(str(_file(name)))
    planes = [g for g in spec.geoms if g.type == mujoco.mjtGeom.mjGEOM_PLANE]
    if not text and not planes:
        planes = [spec.worldbody.add_geom(name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1])]
    if spec.option.integrator != mujoco.mjtIntegrator.mjINT_EULER:
        spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.option.solver = mujoco.mjtSolver.mjSOL_NEWTON
    spec.option.iterations, spec.option.ls_iterations = 50, 50
    for field, value in option.items():
        setattr(spec.option, field, value)
    if masked:
        for geom in spec.geoms:
            geom.contype = int(geom in planes)
    for number, body in enumerate(spec.bodies):
        body.name = body.name or f"body{number}"
    mj_model = spec.compile()
    model = Model.from_mujoco(mj_model)
    convex = [p for p in contact_pairs(model) if tuple(model.geom_type[[p.geom1, p.geom2]]) in CONVEX]
    for one, two in {tuple(model.geom_bodyid[[p.geom1, p.geom2]]) for p in convex}:
        spec.add_exclude(bodyname1=model.body_names[one], bodyname2=model.body_names[two])
        mj_model = spec.compile()
    refuse_unsupported(mj_model)
    return mj_model


def _file(name: str) -> Path:
    kind, _, rest = name.partition("_")
    path = {"own": OWN, "scene": SCENES}.get(kind, {}).get(rest) or Path(robot_file(name))
    if not path.is_file():
        pytest.skip(f"{path.name} is not beside the checkout")
    return path
