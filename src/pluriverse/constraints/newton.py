"""The primal Newton solver: the acceleration that minimises MuJoCo's convex cost.

cost(a) = 1/2 (a - a_smooth)' M (a - a_smooth) + sum over rows of D/2 min(J a - reference, 0)^2.

One iteration solves for the minimiser a* of the cost with the present set of active rows. If no row changes sign
between a and a*, a* is the exact minimum. Else the first iterations go to a* and try again with its active set, which
nearly always suffices. Later ones search the exact minimum along v = a* - a, so that the cost falls from then on. There
only the rows that change matter: phi'(t) = h (t - 1) + sum over those rows of +-D j (x + t j), with h = v' H v a sum of
squares.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from pluriverse.dynamics.spatial import dot, sub
from pluriverse.trace.functions import absolute, logical_not, maximum, select

from .cones import Pyramid, times
from .contacts import Contacts

FAR = 1e30
FREE_STEPS = 4  # whole steps before the first line search, at most half of all


@dataclass(frozen=True)
class NewtonOptions:
    """Limits of the solver, with MuJoCo's names; `scale` is 1 / (meaninertia max(1, nv))."""

    iterations: int
    ls_iterations: int
    tolerance: float
    ls_tolerance: float
    scale: float


Consider = Callable[[Any, Any, Any, Any], None]


class Problem(Protocol):
    """What the solver minimises: inertia, rows and contacts, and the acceleration, which holds the start."""

    contacts: Contacts
    long_step: float | None  # share of a beyond which a step is solved again; None: that makes a* no more exact

    @property
    def run(self) -> Any: ...

    @property
    def one_sided(self) -> int:
        """How many one-sided rows of joint coordinates there are."""

    def solve(self) -> None:
        """Finds the target: the minimiser for the rows that are active at the present acceleration."""

    def target_motions(self) -> Any:
        """The table of body motions (`Contacts.motion_table`) that the target makes."""

    def rows_change(self) -> Any:
        """Whether a one-sided row of joint coordinates changes sign on the way to the target."""

    def step_and_size(self) -> tuple[Any, Any]:
        """Sums of |target - a| and of |target|."""

    def consider_rows(self, consider: Consider) -> Any:
        """consider(x, y, D, share) for each one-sided row: residual here and at the target, weight, and which share of
        it this lane counts. Returns v' J' D J v of the two-sided rows, v being the way to the target."""

    def energy(self) -> Any:
        """v' M v."""

    def advance(self, t: Any) -> None:
        """Moves the acceleration by a share t of the way."""


def minimise(problem: Problem, options: NewtonOptions) -> Any:
    """Moves the acceleration to the minimum. Returns whether the iterations ran out."""
    run, contacts = problem.run, problem.contacts
    running = run.variable(True)
    free_steps = run.variable(float(min(FREE_STEPS, options.iterations // 2)))
    for _ in run.repeat(options.iterations, running):
        problem.solve()
        changed = problem.rows_change()
        changed = run.lane_any(_contacts_change(problem) | changed)
        goes_on = changed if problem.long_step is None else changed | _far(problem, problem.long_step)
        step, finished = run.variable(1.0), run.variable(logical_not(goes_on))
        for _ in run.when(changed & (free_steps.value < 0.5), together=True):
            step.value, finished.value = _line_search(problem, options)
        free_steps.value = free_steps.value - 1.0
        t = step.value
        problem.advance(t)
        for _ in run.when(goes_on if contacts.capacity else False):
            for k in run.each(contacts.records):
                x, y = contacts.parts("now", k), contacts.parts("target", k)
                contacts.set_vector("now", k, [a + t * (b - a) for a, b in zip(x, y, strict=True)])
        running.value = logical_not(finished.value)
    return running.value


def _far(problem: Problem, share: float) -> Any:
    """Whether a step is longer than a share of the acceleration, or of 1 m/s^2 or rad/s^2 where that is smaller."""
    step, size = problem.step_and_size()
    return step > share * maximum(size, 1.0)


def _contacts_change(problem: Problem) -> Any:
    """Notes each contact's relative acceleration at the target; whether one of its rows changes sign."""
    run, contacts = problem.run, problem.contacts
    if not contacts.capacity:
        return False
    there = problem.target_motions()
    changed = run.variable(False)
    for k in run.each(contacts.records):
        target = sub(contacts.in_frame(k, contacts.relative_motion(there, k)), contacts.parts("reference", k))
        contacts.set_vector("target", k, target)
        exists = contacts.records.weight[k] > 0.0
        changed.value = changed.value | (exists & contacts.cone(k).changes(contacts.parts("now", k), target))
    return changed.value


def _line_search(problem: Problem, options: NewtonOptions) -> tuple[Any, Any]:
    """The minimum along the step, and whether the solver may stop there by its tolerance."""
    run, contacts = problem.run, problem.contacts
    h = run.variable(0.0)
    one_sided = problem.one_sided + (0 if contacts.elliptic else 2 * (contacts.width - 1) * contacts.capacity)
    changing = run.records("changing", {"x": "float", "j": "float", "D": "float"}, one_sided)

    def consider(x: Any, y: Any, D: Any, share: float) -> None:
        j = y - x
        h.value = h.value + select(x < 0.0, D * share * (j * j), 0.0)
        for _ in run.when((x * j < 0.0) & (x * y < 0.0) & (absolute(D) > 0.0)):
            changing.append(x=x, j=j, D=select(x < 0.0, -D, D) * share)

    h.value = h.value + problem.consider_rows(consider)
    shares = run.table([1.0 / run.lanes if trunk else 1.0 for trunk in contacts.trunks] or [1.0])

    def share_of(k: Any) -> Any:
        return shares[contacts.node(k)] if run.lanes > 1 else 1.0

    for k in run.each(contacts.records) if contacts.capacity else ():
        x, y, cone = contacts.parts("now", k), contacts.parts("target", k), contacts.cone(k)
        if isinstance(cone, Pyramid):
            for (a, D), (b, _) in zip(cone.rows(x), cone.rows(y), strict=True):
                consider(a, b, D, share_of(k))
        else:
            j = sub(y, x)
            h.value = h.value + dot(j, times(cone.curvature(x), j)) * share_of(k)
    curvature = problem.energy() + run.lane_sum(h.value)
    curved = _curved(contacts, share_of) if contacts.elliptic else None
    return _minimum_along(run, changing, curved, curvature, options)


def _curved(contacts: Contacts, share_of: Callable[[Any], Any]) -> Callable[[Any, LineSums], None]:
    """Adds, at a place along the step, by how much the elliptic cones' cost leaves the parabola that it is at the
    start."""

    def add_to(here: Any, sums: LineSums) -> None:
        for k in contacts.run.each(contacts.records):
            x, y, cone = contacts.parts("now", k), contacts.parts("target", k), contacts.cone(k)
            j = sub(y, x)
            at = [a + here * b for a, b in zip(x, j, strict=True)]
            W, W0 = cone.curvature(at), cone.curvature(x)
            change = [[a - b for a, b in zip(r, s, strict=True)] for r, s in zip(W, W0, strict=True)]
            force, share = times(change, at), share_of(k)
            sums.slope.value = sums.slope.value + share * dot(j, force)
            sums.bend.value = sums.bend.value + share * dot(j, times(change, j))
            sums.cost.value = sums.cost.value + (0.5 * share) * dot(at, force)

    return add_to


@dataclass(frozen=True)
class LineSums:
    """Slope, curvature and cost at a place along a step, beside those of its parabola."""

    slope: Any
    bend: Any
    cost: Any


def _minimum_along(
    run: Any, changing: Any, curved: Callable[[Any, LineSums], None] | None, h: Any, options: NewtonOptions
) -> tuple[Any, Any]:
    """Newton's method on phi', which is piecewise linear but for elliptic cones, kept inside a shrinking bracket."""
    t, low, high, gain = run.variable(1.0), run.variable(0.0), run.variable(FAR), run.variable(0.0)
    searching = run.variable(True)
    for _ in run.repeat(options.ls_iterations, searching):
        here = t.value
        sums = LineSums(run.variable(0.0), run.variable(0.0), run.variable(0.0))
        for k in run.each(changing):
            x, j = changing.x[k], changing.j[k]
            at = x + here * j
            D = select(at * x < 0.0, changing.D[k], 0.0)
            sums.slope.value = sums.slope.value + D * j * at
            sums.bend.value = sums.bend.value + D * j * j
            sums.cost.value = sums.cost.value + 0.5 * D * (at * at)
        if curved is not None:
            curved(here, sums)
        derivative = run.lane_sum(sums.slope.value) + h * (here - 1.0)
        curvature = maximum(run.lane_sum(sums.bend.value) + h, 1e-6 * h)
        gain.value = run.lane_sum(sums.cost.value) + h * here * (0.5 * here - 1.0)
        converged = absolute(derivative) <= options.ls_tolerance * h
        low.value = select(derivative < 0.0, here, low.value)
        high.value = select(derivative > 0.0, here, high.value)
        newton = here - derivative / curvature
        inside = (newton > low.value) & (newton < high.value)
        t.value = select(converged, here, select(inside, newton, 0.5 * (low.value + high.value)))
        searching.value = logical_not(converged)
    small = options.scale * absolute(gain.value) < options.tolerance
    return t.value, small | (0.5 * options.scale * h < options.tolerance)
