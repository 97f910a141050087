"""The posture generator: a posture and contact forces for a stance, near a guide, or what stands in the way.

The stages go from cheap to dear, and the first failure ends an attempt:

    region      where the loaded contacts balance the robot, whatever its posture (kept by value)
    reach       contacts in place within the joint limits
    balance     the same with the centre of mass inside the region; contacts polished; free coordinates fixed
    collision   distances; only where something is too near, the search goes on with rows that push apart
    forces      least contact forces within friction and torque limits

An attempt starts from each start and guide in turn, then from perturbed ones. Nothing but values is kept between calls:
the same call gives the same answer, to the bit.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from mcplan.core.posture_rows import Task
from mcplan.errors import InputError
from mcplan.model.robot import Robot
from mcplan.planning.posture.caution import cautious
from mcplan.planning.posture.clock import Clock
from mcplan.planning.posture.contact_region import ContactRegions, Support, contact_key
from mcplan.planning.posture.effort import effort
from mcplan.planning.posture.freedom import ContactRows, Freedom, contact_rows, settle
from mcplan.planning.posture.result import STAGES, PostureResult
from mcplan.planning.posture.settings import PostureSettings
from mcplan.planning.posture.task import PostureSearch, Search
from mcplan.planning.posture.violation import Violation
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.statics.equilibrium import Equilibrium, balance
from mcplan.statics.margins import friction_margin

LOOSE = 1e-3
"""m, rad: tolerance of the reach stage, and of free contacts before they are fixed."""

TOLERANCE = 1e-7
"""m, rad: tolerance of a posture that is found."""

CLOSE_ENOUGH = 0.02
"""m, rad: a step below this no longer improves the cost enough to matter."""

SPARE = 3e-4
"""m: distance beyond the one asked for that is aimed at."""

ROUNDING = 1e-4
"""m: a clearance may fall short of the one asked for by this much."""

PUSH = 0.02
"""m: the most that a pair is pushed apart before its distance is taken anew."""

SEE = 0.04
"""m: pairs nearer than this take part in resolving a collision."""


class Collisions(Protocol):
    """What the generator asks of a collision model."""

    def constraint_rows(self, q, margin: float, contacts=(), clearance: float = 0.0):
        """Return ``distance`` (k,) above what is allowed, ``rows`` (k, nv) and ``pairs`` of all pairs within margin."""
        ...


@dataclass
class _Attempt:
    """The best that one start led to."""

    q: np.ndarray
    contacts: tuple[Contact, ...]
    stage: str
    violations: tuple[Violation, ...]
    forces: Equilibrium | None = None
    support: Support | None = None
    clearance: float | None = None
    contact_error: float = np.inf
    passing: tuple[str, ...] = ()

    @property
    def rank(self) -> tuple[int, float]:
        amount = self.violations[0].amount if self.violations else 0.0
        return STAGES.index(self.stage), -amount


class PostureGenerator:
    """Finds postures in one scene.

    Parameters
    ----------
    robot, environment : the scene.
    settings : margins and budgets.
    collisions : a collision model of the scene; None leaves collisions out.
    """

    def __init__(
        self,
        robot: Robot,
        environment: Environment,
        settings: PostureSettings | None = None,
        collisions: Collisions | None = None,
    ):
        self.robot, self.environment = robot, environment
        self.settings = settings or PostureSettings()
        self.collisions = collisions
        weights = self.settings.weights
        W = weights.joints * effort(robot)
        W[:3], W[3:6] = weights.base_position, weights.base_orientation
        self._search = PostureSearch(robot, W, self.settings.joint_margin)
        self._regions = ContactRegions(robot.mass, self.settings.com_inset, self.settings.comfort)
        self._rows: dict[tuple, ContactRows] = {}
        self._bodies = {link: robot.frame(link)[0] for link in robot.link_names}

    def generate(
        self,
        contacts: Sequence[Contact],
        loaded: Iterable[str] | None,
        guide: np.ndarray | Sequence[np.ndarray],
        starts: Sequence[np.ndarray] = (),
        free: Mapping[str, Freedom] | None = None,
        seed: int = 0,
        passing: tuple[str, ...] = (),
    ) -> PostureResult:
        """Find a posture.

        Parameters
        ----------
        contacts : all contacts of the stance, in place at the posture.
        loaded : names of the patches that carry load; None for all.
        guide : (nq,) the posture that is preferred, or several of them: the first is preferred, all are starts.
        starts : (nq,) each: further starts, tried before the guides (the posture of a neighbouring stance).
        free : {patch: Freedom}: coordinates that may be chosen.
        seed : of the perturbed starts.
        passing : patches that are held in the air on their way: they touch nothing, and keep the clearance.
        """
        clock = Clock()
        guides = [np.array(g, dtype=float) for g in ([guide] if np.ndim(guide) == 1 else guide)]
        contacts, free = tuple(contacts), dict(free or {})
        names = tuple(contact.patch for contact in contacts)
        chosen = names if loaded is None else tuple(loaded)
        bearing = tuple(name for name in names if name in chosen)
        for name in (*chosen, *free):
            if name not in names:
                raise InputError(f"`{name}` is not among the contacts: {', '.join(names) or 'none'}")
        com = self.robot.com(guides[0])
        support = self._support(contacts, bearing, com)
        clock.lap("region")
        best: _Attempt | None = None
        if support.violation is not None:
            best = _Attempt(guides[0], contacts, "region", (support.violation,), support=support)
        else:
            given = [np.array(start, dtype=float) for start in starts] + guides
            rng = np.random.default_rng(seed)
            for k in range(len(given) + self.settings.restarts):
                if k >= len(given):
                    if (
                        best is not None
                        and best.stage == "reach"
                        and best.violations[0].amount > self.settings.hopeless
                    ):
                        break
                    start = self._perturbed(guides[k % len(guides)], rng)
                else:
                    start = given[k]
                clock.starts += 1
                attempt = self._attempt(contacts, bearing, free, passing, support, guides[0], start, clock)
                if best is None or attempt.rank > best.rank:
                    best = attempt
                if best.stage == "done":
                    break
        assert best is not None
        return self._result(best, bearing, clock)

    # -- stages ---------------------------------------------------------------------------------------------------

    def _attempt(
        self,
        contacts: tuple[Contact, ...],
        bearing: tuple[str, ...],
        free: dict[str, Freedom],
        passing: tuple[str, ...],
        support: Support,
        guide: np.ndarray,
        start: np.ndarray,
        clock: Clock,
    ) -> _Attempt:
        steps = self.settings.steps
        rows = [self._contact_rows(contact, free.get(contact.patch)) for contact in contacts]
        reach = self._run(self._search.task(rows, guide), start, steps, LOOSE, np.inf, clock)
        if not reach.found:
            return _Attempt(reach.q, contacts, "reach", self._missed(reach, contacts, rows, guide))
        q = reach.q
        hint = np.append(support.hint(self.robot.com(guide)), self.settings.weights.com)
        if any(freedom.names for freedom in free.values()):
            task = self._search.task(rows, guide, support.rows, hint)
            loose = self._run(task, q, steps, TOLERANCE, CLOSE_ENOUGH, clock)
            if not loose.found:
                missed = self._missed(loose, contacts, rows, guide)
                return _Attempt(loose.q, contacts, "balance", missed, support=support)
            q = loose.q
            if self.collisions is not None:
                attempt = _Attempt(q, contacts, "collision", (), None, support, None, loose.worst, passing)
                self._push_apart(attempt, task, free, clock)
                if attempt.violations:
                    return attempt
                q = attempt.q
            try:
                contacts = self._settle(contacts, free, q)
            except InputError:
                missed = tuple(Violation("reach", patch, LOOSE) for patch in free)
                return _Attempt(q, contacts, "balance", missed, support=support)
            if any(patch in bearing for patch in free):
                support = self._support(contacts, bearing, self.robot.com(q))
                if support.violation is not None:
                    return _Attempt(q, contacts, "balance", (support.violation,), support=support)
                hint[:2] = support.hint(self.robot.com(guide))
            rows = [self._contact_rows(contact, None) for contact in contacts]
            guide = q
        task = self._search.task(rows, guide, support.rows, hint)
        found = self._run(task, q, steps, TOLERANCE, CLOSE_ENOUGH, clock)
        if not found.found:
            missed = self._missed(found, contacts, rows, guide)
            return _Attempt(found.q, contacts, "balance", missed, support=support)
        attempt = _Attempt(found.q, contacts, "collision", (), None, support, None, found.worst, passing)
        if self.collisions is not None:
            self._push_apart(attempt, task, {}, clock)
            if attempt.violations:
                return attempt
        self._hold(attempt, bearing, clock)
        return attempt

    def _push_apart(self, attempt: _Attempt, task: Task, free: Mapping[str, Freedom], clock: Clock) -> None:
        """Resolve collisions by rows of the distances, taken anew every few steps."""
        assert self.collisions is not None
        settings = self.settings
        contacts = tuple(contact for contact in attempt.contacts if contact.patch not in attempt.passing)
        given_links = self._fixed_links(contacts, free)
        for rounds in range(settings.collision_rounds + 1):
            near = self.collisions.constraint_rows(attempt.q, SEE, contacts, settings.clearance)
            clock.collision_checks += 1
            clock.lap("collision")
            # no posture changes how near links are whose poses contacts fix: they need not touch, that is all
            given = np.array([self._given(pair, given_links) for pair in near.pairs], bool)
            touching = np.array([pair.in_contact for pair in near.pairs], bool)
            # the clearance is a wish of ours and may be rounded; how deep a contact may go, and nothing at all, may not
            room = near.distance + settings.clearance * (given & ~touching) - ROUNDING * (given | touching)
            worst = int(np.argmin(room)) if len(room) else -1
            least = float(room[worst]) if worst >= 0 else SEE
            attempt.clearance = float(near.distance.min(initial=SEE)) + settings.clearance
            if least >= -ROUNDING and attempt.contact_error <= TOLERANCE:
                attempt.violations = ()
                return
            attempt.violations = (Violation("collision", str(near.pairs[worst]), max(-least, 0.0)),)
            if rounds == settings.collision_rounds or (worst >= 0 and given[worst]):
                return
            if least >= -ROUNDING:
                here = task._replace(guide=attempt.q, hint=np.zeros(3))
                back = self._run(here, attempt.q, settings.steps, TOLERANCE, CLOSE_ENOUGH, clock)
                attempt.q, attempt.contact_error = back.q, back.worst
                continue
            # a little more than asked for, so that the linearisation's error is paid for; from deep inside, bit by bit
            bound = np.minimum(SPARE - near.distance, PUSH)
            linear = np.ascontiguousarray(np.column_stack([near.rows, bound])[~given])
            push = task._replace(linear=linear, linear_q=attempt.q)
            step = self._run(push, attempt.q, 8, TOLERANCE, CLOSE_ENOUGH, clock, trust=0.2)
            attempt.q = step.q
            fixed = len(step.missed) - len(linear)
            attempt.contact_error = float(step.missed[:fixed].max(initial=0.0))

    def _hold(self, attempt: _Attempt, bearing: tuple[str, ...], clock: Clock) -> None:
        """Find the forces, or say what is wrong."""
        robot, settings = self.robot, self.settings
        contacts = self._cautious(_turned(robot, attempt.q, contact) for contact in attempt.contacts)
        held = balance(robot, attempt.q, contacts, bearing, settings.torque_share)
        clock.lap("forces")
        attempt.forces, attempt.stage = held, "forces"
        if not held.feasible:
            depth = attempt.support.region.depth(robot.com(attempt.q)) if attempt.support else 0.0
            attempt.violations = (Violation("equilibrium", "com", max(-depth, 0.0)),)
        elif not held.torque_feasible:
            share = np.abs(held.tau) / robot.limits.torque
            worst = int(np.argmax(share))
            attempt.violations = (
                Violation("torque", robot.joint_names[worst], float(share[worst] - settings.torque_share)),
            )
        else:
            attempt.stage = "done"

    # -- parts ----------------------------------------------------------------------------------------------------

    def _run(self, task: Task, start, steps: int, tolerance: float, step_tolerance: float, clock, **options) -> Search:
        answer = self._search.run(task, start, steps, tolerance, step_tolerance, **options)
        clock.steps += answer.steps
        clock.soft_steps += answer.soft_steps
        clock.lap("kinematics")
        return answer

    def _contact_rows(self, contact: Contact, freedom: Freedom | None) -> ContactRows:
        key = (contact_key(contact), tuple(contact.coordinates.items()), freedom)
        if key not in self._rows:
            self._rows[key] = contact_rows(self.robot, self.environment, contact, freedom)
        return self._rows[key]

    def _cautious(self, contacts: Iterable[Contact]) -> tuple[Contact, ...]:
        return cautious(contacts, self.settings.friction_share)

    def _support(self, contacts: tuple[Contact, ...], bearing: tuple[str, ...], com: np.ndarray) -> Support:
        return self._regions.support(self._cautious(c for c in contacts if c.patch in bearing), com)

    def _fixed_links(self, contacts: Iterable[Contact], free: Mapping[str, Freedom]) -> set[str]:
        """Return the links whose pose a full contact fixes."""
        full = (c.patch for c in contacts if len(c.selection) == 6 and c.patch not in free)
        bodies = {self.robot.frame(patch)[0] for patch in full}
        return {link for link, body in self._bodies.items() if body in bodies}

    def _given(self, pair, links: set[str]) -> bool:
        return pair.a in links and (pair.b in links or pair.b not in self._bodies)

    def _settle(self, contacts: tuple[Contact, ...], free: dict[str, Freedom], q: np.ndarray) -> tuple[Contact, ...]:
        settled = []
        for contact in contacts:
            freedom = free.get(contact.patch)
            if freedom is not None and freedom.names:
                X = self.robot.frame_pose(q, contact.patch)
                contact = settle(self.robot, self.environment, contact, freedom, (X[:3, :3], X[:3, 3]))
            settled.append(contact)
        return tuple(settled)

    def _perturbed(self, guide: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        step = rng.normal(size=self.robot.nv) * self.settings.spread
        step[:6] *= 0.25
        return self.robot.integrate(guide, step, 1.0)

    def _missed(
        self, search: Search, contacts: tuple[Contact, ...], rows: list[ContactRows], guide: np.ndarray
    ) -> tuple[Violation, ...]:
        """Say which contacts are missed, whether the centre of mass is, and which joint limits are in the way."""
        missed = search.missed
        at = len(search.contact_of)
        amounts = np.zeros(len(contacts))
        np.maximum.at(amounts, search.contact_of, missed[:at])
        for i, count in enumerate(len(r.cell) for r in rows):
            amounts[i] = max(amounts[i], missed[at : at + count].max(initial=0.0))
            at += count
        found = [Violation("reach", c.patch, float(a)) for c, a in zip(contacts, amounts, strict=True) if a > TOLERANCE]
        outside = float(missed[at:].max(initial=0.0))
        if outside > TOLERANCE:
            found.append(Violation("equilibrium", "com", outside))
        found.sort(key=lambda violation: -violation.amount)
        return tuple(found + self._binding(search, rows, guide))

    def _binding(self, search: Search, rows: list[ContactRows], guide: np.ndarray) -> list[Violation]:
        """Return the joints at a limit that the contacts would take beyond it."""
        lower, upper = self._search.limit
        q = search.q[7:]
        bound = (q <= lower + 1e-6) | (q >= upper - 1e-6)
        if not bound.any():
            return []
        open_ = self._search.task(rows, guide)._replace(limit=np.array([lower - 0.5, upper + 0.5]))
        beyond = self._search.run(open_, search.q, 3, LOOSE, np.inf).q[7:]
        excess = np.maximum(lower - beyond, beyond - upper)
        names = self.robot.joint_names
        over = [Violation("joint limit", names[j], float(excess[j])) for j in np.flatnonzero(bound & (excess > 1e-4))]
        return sorted(over, key=lambda violation: -violation.amount)

    def _result(self, best: _Attempt, bearing: tuple[str, ...], clock: Clock) -> PostureResult:
        robot, q, held = self.robot, best.q, best.forces
        limits = robot.limits
        margins = {"position": float(np.minimum(q[7:] - limits.lower, limits.upper - q[7:]).min(initial=np.inf))}
        if np.isfinite(best.contact_error):
            margins["contact"] = best.contact_error
        if best.support is not None and not best.support.region.empty:
            margins["com_inset"] = best.support.region.depth(robot.com(q))
        if best.clearance is not None:
            margins["clearance"] = best.clearance
        if held is not None:
            loaded = [contact for contact in best.contacts if contact.patch in bearing]
            margins["friction"], margins["friction_ratio"] = friction_margin(loaded, held.point_forces)
            margins["torque"] = float((np.abs(held.tau) / limits.torque).max(initial=0.0))
        return PostureResult(
            q,
            best.contacts,
            bearing,
            {} if held is None else held.wrenches,
            {} if held is None else held.point_forces,
            np.zeros(0) if held is None else held.tau,
            margins,
            best.violations,
            best.stage,
            clock.effort(),
        )


def _turned(robot: Robot, q: np.ndarray, contact: Contact) -> Contact:
    """Return the contact with the axes that it has at a posture."""
    return (
        replace(contact, axes=contact.axes_at(robot.frame_pose(q, contact.patch)[:3, :3])) if contact.rolls else contact
    )
