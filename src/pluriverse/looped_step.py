"""The step of a model of many alike trees: `step.step` in traced loops over the trees, on arrays."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pluriverse.constraints.candidates import candidates
from pluriverse.constraints.contact_jacobian import ContactJacobian
from pluriverse.constraints.contacts import Contacts
from pluriverse.constraints.looped_problem import LoopedProblem, looped_motion_table
from pluriverse.constraints.newton import NewtonOptions, minimise
from pluriverse.constraints.pair_loops import PairLoops, loop_groups
from pluriverse.control_laws import one_law_each
from pluriverse.dynamics.fluid import has_medium
from pluriverse.dynamics.integrate import integrate_positions
from pluriverse.dynamics.replicas import tree_groups
from pluriverse.dynamics.tree import Tree
from pluriverse.integrators import implicit_acceleration
from pluriverse.looped_smooth import LoopedSmooth
from pluriverse.smooth import FAR, by_dof
from pluriverse.trace.functions import absolute

if TYPE_CHECKING:
    from pluriverse.step import Inputs, StepSettings

LONG_STEP = 0.02  # share of the acceleration beyond which a step is solved again: see `step._long_step`


def step_in_loops(tree: Tree, qpos: Any, qvel: Any, qacc: Any, inputs: Inputs, settings: StepSettings) -> Any:
    """Advances one step. qpos, qvel, qacc: arrays by row and by dof; qacc becomes this step's.

    Returns arrays of new qpos and qvel, and whether the solver ran out.
    """
    run, model = tree.run, tree.model
    smooth = LoopedSmooth(tree, qpos, qvel, inputs, settings)
    pairs = candidates(tree) if settings.contacts else []
    contacts = Contacts(tree, pairs, settings.cone == "elliptic", settings.max_contacts)
    jacobian = None
    if contacts.capacity:
        jacobian = ContactJacobian(run, model.nv, contacts)
        _detect(contacts, jacobian, smooth)
        velocities, accelerations = (partial(looped_motion_table, contacts, smooth, values) for values in (qvel, qacc))
        contacts.make_rows(velocities, accelerations, inputs.friction, settings)
    problem = LoopedProblem(smooth, contacts, qacc, LONG_STEP, jacobian)
    scale = 1.0 / (model.stat_meaninertia * max(1, model.nv))
    limits = (settings.iterations, settings.ls_iterations, settings.tolerance, settings.ls_tolerance)
    unconverged = minimise(problem, NewtonOptions(*limits, scale))
    return *_integrated(smooth, qpos, qvel, qacc, settings), unconverged


def _detect(contacts: Contacts, jacobian: ContactJacobian, smooth: LoopedSmooth) -> None:
    """Finds where geoms touch, and stores where bodies are."""
    groups, _ = loop_groups(smooth.tree, contacts.candidates, everything=True)
    loops = PairLoops(smooth.tree, contacts.nodes, contacts.candidates, groups)
    for replica in smooth.each():
        poses = smooth.load(replica)[0].poses
        for node, bodies in zip(replica.nodes, replica.group.nodes, strict=True):
            place = replica.pick(contacts.places(bodies))
            jacobian.place(node, poses[node], place, replica.dof_shift)
            loops.place_body(place, poses[node])
            for geoms in node.geoms:
                slots, solid_slots = loops.slots(geoms)
                solid = None if solid_slots is None else replica.pick(solid_slots)
                loops.place_geom(replica.pick(slots), solid, poses[node], *replica.geom_frame(geoms))
    contacts.collide_in(loops, groups)


def _integrated(smooth: LoopedSmooth, qpos: Any, qvel: Any, qacc: Any, settings: StepSettings) -> tuple[Any, Any]:
    """Arrays of qpos and qvel after the step."""
    run, model = smooth.run, smooth.tree.model
    new_qpos, new_qvel = run.array(model.nq, scratch=True), run.array(model.nv, scratch=True)
    for replica in smooth.each():
        kept, _, _ = smooth.load(replica)
        q, new_q = replica.rows(qpos), replica.rows(new_qpos)
        v, new_v, a = (replica.dofs(array) for array in (qvel, new_qvel, qacc))
        damped = implicit_acceleration(replica, kept, v, {d: a[d] for d in kept.armature}, settings, by_sweep=True)
        velocity = {d: v[d] + rate * settings.dt for d, rate in damped.items()}
        for d, value in velocity.items():
            new_v[d] = value
        for row, value in integrate_positions(replica, q, by_dof(replica, velocity), settings.dt).items():
            new_q[row] = value
    return new_qpos, new_qvel


def loops_pay(tree: Tree, settings: StepSettings) -> bool:
    """Whether the step is traced in loops over alike trees: where most of a large model is such trees, and nothing in
    it ties trees together but contacts."""
    model = tree.model
    looped = sum(group.count * len(group.nodes) for group in tree_groups(tree) if group.count >= FEWEST)
    plain = not (model.neq or model.ntendon or model.nmocap or has_medium(model)) and one_law_each(model)
    simple = settings.integrator in ("Euler", "implicitfast", "approximate_implicitfast")
    return plain and simple and model.nv > LARGE and 2 * looped > len(tree.nodes)


FEWEST, LARGE = 4, 36  # alike trees; dofs


def all_finite(run: Any, *arrays: tuple[Any, int]) -> Any:
    """Whether the numbers in arrays (with their lengths) are finite and not absurd."""
    total = run.variable(0.0)
    for array, size in arrays:
        for i in run.range(size):
            total.value = total.value + absolute(array[i])
    return total.value < FAR
