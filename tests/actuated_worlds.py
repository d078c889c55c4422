"""Small worlds of actuators and of fluids: each kind of transmission, activation, motor, limit and drag."""

from __future__ import annotations

BODIES = """<site name="world" pos=".1 .2 .3" euler="10 20 30"/>
 <body name="base" pos="0 0 1"><joint name="slide" type="slide" axis="1 0 0"/>
   <joint name="hinge" axis="0 1 0" pos=".1 0 0"/><geom type="box" size=".1 .15 .2"/>
   <site name="a" pos=".1 .1 .1" euler="20 10 0"/>
   <body name="arm" pos=".3 0 0"><joint name="ball" type="ball" damping=".1"/><geom type="box" size=".1 .2 .3"/>
     <site name="b" pos=".1 .2 .1" euler="10 20 30"/>
     <body name="tip" pos=".3 .1 0"><joint name="wrist" axis="1 1 0"/><geom size=".1" pos="0 0 .1"/>
       <site name="c" pos="0 .1 .1" euler="0 50 0"/></body></body>
   <body name="leg" pos="0 .4 0" euler="20 30 40"><joint name="knee" axis="1 0 0"/><geom type="box" size=".1 .2 .1"/>
     <body name="fixed" pos=".1 0 0" euler="1 2 50"><geom type="box" size=".1 .1 .05"/>
       <site name="d" pos=".1 0 .1" euler="50 20 30"/></body></body></body>"""
FREE = """<body pos="0 2 1"><joint name="free" type="free"/><geom type="box" size=".1 .2 .3" pos=".05 0 0"/>
 <site name="e" pos=".1 0 .2" euler="5 60 7"/></body>"""
FIXED = '<fixed name="fixed"{}><joint joint="slide" coef="2"/><joint joint="wrist" coef="-.5"/></fixed>'
PATH = '<spatial name="path"{}><site site="world"/><site site="b"/><site site="d"/></spatial>'
SWIMMERS = """
 <body pos="0 2 1"><joint type="free"/><geom type="box" size=".1 .2 .3" pos=".05 0 0" euler="10 20 30"/></body>
 <body pos="0 3 1"><joint type="free"/>
   <geom type="ellipsoid" size=".1 .4 .02" pos=".05 0 0" euler="10 20 30" fluidshape="ellipsoid"
     fluidcoef=".5 .3 1.5 1.1 .9"/><geom type="box" size=".05 .05 .05"/>
   <body pos=".3 0 0" euler="0 30 10"><geom type="cylinder" size=".05 .2" fluidshape="ellipsoid"/></body></body>
 <body pos="0 0 1"><joint type="slide" axis="1 1 0"/><joint name="hinge" axis="0 1 0"/>
   <geom type="capsule" size=".1 .2" fluidshape="ellipsoid" euler="0 90 0"/>
   <body pos=".3 .1 0"><joint type="ball"/>
     <geom type="sphere" size=".1" fluidshape="ellipsoid" fluidcoef="0 .2 .3 .4 .5"/>
     <geom type="box" size=".1 .2 .02" pos=".1 0 0" fluidshape="ellipsoid"/></body>
   <body pos="-.3 0 0"><joint axis="0 1 1" damping=".1"/><geom type="cylinder" size=".1 .1" pos=".1 0 0"/>
     <body pos=".1 .1 .1" euler="10 20 30"><geom type="capsule" size=".04 .1"/></body></body></body>"""


def _world(bodies: str, tendons: str = "", actuators: str = "", option: str = "") -> str:
    return f"""<mujoco><option integrator="implicitfast" {option}/>
      <default><geom contype="0" conaffinity="0"/></default><worldbody>{bodies}</worldbody>
      <tendon>{tendons}</tendon><actuator>{actuators}</actuator></mujoco>"""


LIMITED = BODIES
for given, limited in (
    ('name="hinge"', 'name="hinge" actuatorfrcrange="-.4 .5"'),
    ('name="wrist"', 'name="wrist" actuatorfrcrange="-.3 .3" actuatorgravcomp="true"'),
    ('name="knee"', 'name="knee" actuatorfrcrange="-.3 .3"'),
    ('name="slide"', 'name="slide" actuatorgravcomp="true"'),
    ('name="tip"', 'name="tip" gravcomp="1"'),
):
    LIMITED = LIMITED.replace(given, limited)

ACTUATED = {
    "transmissions": _world(
        BODIES + FREE,
        FIXED.format("") + PATH.format(""),
        """<motor joint="ball" gear="1 2 3"/><position joint="ball" kp="3" kv=".5" gear="0 .5 1"/>
        <position jointinparent="ball" kp="2" kv=".2" gear=".3 .5 -.7"/><motor joint="free" gear="1 2 3 .4 .5 .6"/>
        <velocity jointinparent="free" kv="2" gear="0 1 .5 .2 .3 0"/><motor jointinparent="knee"/>
        <motor site="b" gear="1 2 3 .4 .5 .6"/><velocity site="c" kv="2" gear="1 0 .5 0 .2 0"/>
        <position site="c" refsite="d" kp="3" kv=".4" gear=".2 0 1 0 0 0"/>
        <position site="c" refsite="a" kp="3" kv=".4" gear="0 0 0 0 .6 .8"/>
        <position site="e" refsite="world" kp="3" kv=".4" gear="0 0 .1 0 .6 .8"/>
        <motor site="d" refsite="world" gear=".3 .2 .1 .1 .2 .3"/>
        <position cranksite="b" slidersite="a" cranklength=".6" gear="2" kp="3" kv="1"/>
        <motor cranksite="b" slidersite="a" cranklength=".1" gear="2"/>
        <motor tendon="fixed" gear="2"/><position tendon="path" kp="5" kv="2" gear=".5"/>
        <orientation joint="ball" kp="2" kv=".3"/><orientation site="c" refsite="d" kp="1" kv=".1" input="quat"/>""",
    ),
    "activations": _world(
        BODIES,
        PATH.format(""),
        """<general joint="slide" dyntype="integrator" gainprm="3" actlimited="true" actrange="-.01 .02"/>
        <intvelocity joint="hinge" kp="5" kv=".3" actrange="-1 1"/>
        <general joint="wrist" dyntype="filter" dynprm=".05" gainprm="4" biastype="affine" biasprm=".1 -2 -.3"
          actearly="true"/>
        <general joint="knee" dyntype="filterexact" dynprm=".03" gainprm="2" actearly="true" gear="-1.5"/>
        <general joint="knee" dyntype="filterexact" dynprm=".001" gainprm="2 .5 -.3" gaintype="affine"
          ctrlrange="-1 1"/>
        <general joint="wrist" gainprm="2 .5 -.3" gaintype="affine" biastype="affine" biasprm="1 2 -3"
          ctrlrange="-.4 .4"/>
        <muscle joint="wrist" lengthrange="-1 1"/>
        <muscle tendon="path" lengthrange=".5 3" tausmooth=".3" force="30" ctrllimited="false"/>
        <muscle joint="knee" lengthrange="-1 1" range=".6 1.2" gear="-1" force="10"/>
        <cylinder joint="slide" timeconst=".1" area=".1" bias=".1 -1 -.2"/>
        <general joint="ball" dyntype="integrator" gaintype="so3" biastype="so3" gainprm="2" biasprm="0 -2 -.3"/>
        <position joint="ball" kp="2" kv=".3" gear="0 0 1" timeconst=".1"/>
        <intvelocity joint="ball" kp="2" kv=".3" gear="0 1 0" actrange="-9 9"/>
        <position site="c" refsite="d" kp="2" kv=".3" gear="0 0 0 0 0 1"/>""",
    ),
    "motors": _world(
        BODIES,
        FIXED.format(""),
        """<pid joint="slide" kp="3" kv=".5"/><pid joint="hinge" kp="3" kv=".5" ki="2" imax=".01" input="pos vel ff"/>
        <pid joint="wrist" kp="3" kv=".5" ki="2" slewmax="1"/><pid joint="knee" kp="3" slewmax="2" input="pos ff"/>
        <pid joint="ball" kp="2" kv=".2" gear="0 1 0" ki="1" slewmax="3"/>
        <pid tendon="fixed" kp="2" kv=".2" input="vel"/>
        <dcmotor joint="slide" motorconst=".5" resistance="2"/>
        <dcmotor joint="hinge" motorconst=".5" resistance="2" inductance=".02" input="pos vel ff"
          controller="3 1 .2"/>
        <dcmotor joint="wrist" motorconst=".5" resistance="2" cogging=".1 6 .2" lugre="10 .1 .2 .3 .05"/>
        <dcmotor joint="knee" motorconst=".5" resistance="2" thermal="2 5 1 .004 25 25" inductance=".01"/>
        <dcmotor joint="knee" motorconst=".5" resistance="2" input="none" cogging=".1 6 .2"/>
        <dcmotor tendon="fixed" motorconst=".5" resistance="2" input="pos voltage" controller="3 0 .2 2 1 .7"/>""",
    ),
    "force_limits": _world(
        LIMITED,
        FIXED.format(' actuatorfrcrange="-1 1.5"') + PATH.format(' actuatorfrcrange="-1 1"'),
        """<position joint="hinge" kp="3" kv=".5"/><velocity joint="hinge" kv="2" forcerange="-.2 .2"/>
        <intvelocity joint="hinge" kp="1" kv=".1" actrange="-1 1"/><position joint="wrist" kp=".1" kv=".05"/>
        <velocity joint="knee" kv=".5"/><motor tendon="fixed"/>
        <velocity tendon="fixed" kv="2" forcerange="-1 1"/><position tendon="path" kp="5" kv="2" gear=".5"/>
        <velocity tendon="path" kv=".5" forcerange="-.2 .2"/>
        <velocity site="b" kv="1" gear="1 0 0 0 0 1" forcerange="-1 1" group="3"/>
        <muscle joint="knee" lengthrange="-1 1" force="3" forcerange="-1 0"/>
        <intvelocity joint="slide" kp="3" kv=".5" actrange="-.1 .1" group="2"/>
        <dcmotor tendon="fixed" motorconst=".5" resistance="2" cogging=".1 6 .2" inductance=".01" input="pos"
          controller="3 0 .2"/>
        <motor joint="slide" damping="2 .1 .3" armature=".2" gear="1.5"/>
        <motor joint="ball" gear="1 2 3" damping="1" armature=".1"/>
        <motor tendon="fixed" damping=".2" armature=".3" gear="2"/>""",
    ),
    "fluid": _world(
        SWIMMERS, actuators='<velocity joint="hinge" kv="1"/>', option='density="80" viscosity=".3" wind="1 -2 .5"'
    ),
}
