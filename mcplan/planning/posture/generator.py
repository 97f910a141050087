"""Posture generator: a balanced, collision-free posture for a stance near a guide, or the violated constraints.

The stages go from cheap to expensive, and the first failure ends an attempt:

    region      where the loaded contacts balance the robot, whatever its posture (cached by value)
    reach       contacts in place, base target, clearance of patches in the air, joint limits
    balance     the same with the centre of mass inside the region; contacts refined; free coordinates fixed
    collision   distances; only if bodies are too close, the search continues with rows that separate them
    forces      minimum-norm contact forces within friction and torque limits

There is one attempt per start and guide, until one succeeds. Calls share only caches by value: the same call gives the
same result, to the bit.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mcplan.collision.model import CollisionModel
from mcplan.core.posture.rows import PostureTargets
from mcplan.errors import InputError
from mcplan.planning.posture.freedom import FrameRows, Freedom, contact_rows, resolve_contact
from mcplan.planning.posture.result import STAGES, EffortCounter, PostureResult, Violation, violations_of
from mcplan.planning.posture.support_cache import REGION_TOLERANCE_M, ContactRegions, SupportData, contact_key
from mcplan.planning.posture.task import BaseTarget, PostureSearch, PostureSettings, SearchResult, prices
from mcplan.planning.posture.torque_gradient import torque_excess, torque_rows
from mcplan.robot.anatomy import bent_limits
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.settings.margins import shrink_points
from mcplan.statics.equilibrium import Equilibrium, balance, friction_margin
from mcplan.util.arguments import check_each, check_instance, check_vector


@dataclass(frozen=True, eq=False)
class PostureProblem:
    """Arguments of one call, checked (`PostureGenerator.generate`).

    ``loaded`` : patches with load; ``extra_rows`` : of the base and of swing patches; ``limit`` : (2, n) joint bounds.
    """

    contacts: tuple[Contact, ...]
    loaded: tuple[str, ...]
    free: dict[str, Freedom]
    passing: tuple[str, ...]
    guide: np.ndarray
    com: np.ndarray | None
    hint: np.ndarray | None
    extra_rows: dict[str, FrameRows]
    limit: np.ndarray

    @property
    def centre(self) -> np.ndarray:
        """Rows (k, 4) of the requested centre of mass."""
        return np.zeros((0, 4)) if self.com is None else np.column_stack([np.eye(3)[: len(self.com)], self.com])

    def touching(self, contacts: tuple[Contact, ...]) -> tuple[Contact, ...]:
        """Return the settled contacts that touch, without patches held in the air."""
        return tuple(contact for contact in contacts if contact.patch not in self.passing)


@dataclass
class Iterate:
    """Result of the attempt from one start."""

    q: np.ndarray
    contacts: tuple[Contact, ...]
    stage: str
    violations: tuple[Violation, ...]
    forces: Equilibrium | None = None
    support: SupportData | None = None
    clearance: float | None = None
    error: float = np.inf

    @property
    def rank(self) -> tuple[int, float]:
        """The stage reached, then the smallest violation: larger is better."""
        amount = self.violations[0].amount if self.violations else 0.0
        return STAGES.index(self.stage), -amount

    def result(self, robot: Robot, loaded: tuple[str, ...], clock: EffortCounter) -> PostureResult:
        """Return the result of a call, with margins."""
        limits, q, forces = robot.limits, self.q, self.forces
        margins = {"position": float(np.minimum(q[7:] - limits.lower, limits.upper - q[7:]).min(initial=np.inf))}
        if np.isfinite(self.error):
            margins["contact"] = self.error
        if self.support is not None and not self.support.region.empty:
            margins["com_inset"] = self.support.region.depth(robot.com(q))
        if self.clearance is not None:
            margins["clearance"] = self.clearance
        if forces is not None:
            loaded_contacts = [contact for contact in self.contacts if contact.patch in loaded]
            margins["friction"], margins["friction_ratio"] = friction_margin(loaded_contacts, forces.point_forces)
            margins["torque"] = float((np.abs(forces.tau) / limits.torque).max(initial=0.0))
        return PostureResult(q, self.contacts, loaded, forces, margins, self.violations, self.stage, clock.effort())


def contact_at(robot: Robot, q: np.ndarray, contact: Contact) -> Contact:
    """Return the contact at the actual pose of its patch, which may have turned about free axes."""
    X = robot.frame_pose(q, contact.patch)
    return contact.at(X[:3, :3], X[:3, 3])


def outside_region(support: SupportData, com: np.ndarray | None) -> Violation | None:
    """Return how far a centre of mass is outside its support region; None within the region's accuracy."""
    depth = np.inf if com is None else support.region.depth(com)
    return Violation("equilibrium", "com", float(-depth)) if depth < -REGION_TOLERANCE_M else None


REACH_TOLERANCE_M = 1e-3
"""m, rad: tolerance of the reach stage, and of free contacts before they are fixed."""

SEARCH_TOLERANCE_M = 1e-7
"""m, rad: tolerance at which a search stops."""

ACCEPTED_ERROR_M = 1e-6
"""m, rad: largest error of an accepted posture. It allows for contacts whose rounded places contradict each other."""

STEP_TOLERANCE = 0.02
"""m, rad: a step below this no longer improves the cost enough to matter."""

EXTRA_CLEARANCE_M = 3e-4
"""m: added to the required clearance when bodies are separated."""

CLEARANCE_ROUNDING_M = 1e-4
"""m: tolerance of the required clearance."""

MAX_PUSH_M = 0.02
"""m: largest separation of a pair before its distance is computed again."""

MAX_NAMED_PAIRS = 3
"""Largest number of colliding pairs in a result."""

WATCH_DISTANCE_M = 0.04
"""m: pairs closer than this have rows when a collision is resolved."""


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
        collisions: CollisionModel | None = None,
    ):
        self.robot, self.environment = robot, environment
        self.settings = settings or PostureSettings().of(robot.scale)
        self.collisions = collisions
        self._watch_distance, self._max_push = robot.scale.leg * WATCH_DISTANCE_M, robot.scale.leg * MAX_PUSH_M
        self._search = PostureSearch(robot, prices(robot, self.settings.weights), self.settings.joint_margin)
        self._regions = ContactRegions(robot.mass, self.settings.com_inset, self.settings.comfort)
        self._rows: dict[tuple, FrameRows] = {}
        self._bodies = {link: robot.frame(link)[0] for link in robot.link_names}

    def generate(
        self,
        contacts: Sequence[Contact],
        loaded: Iterable[str] | None,
        guide: np.ndarray | Sequence[np.ndarray],
        starts: Sequence[np.ndarray] = (),
        free: Mapping[str, Freedom] | None = None,
        passing: tuple[str, ...] = (),
        com: np.ndarray | None = None,
        base: BaseTarget | None = None,
        hint: np.ndarray | None = None,
        airborne: Mapping[str, FrameRows] | None = None,
        leaving: Iterable[str] = (),
    ) -> PostureResult:
        """Find a posture.

        Parameters
        ----------
        contacts : all contacts of the stance, in place at the posture.
        loaded : names of the patches that carry load; None for all.
        guide : (nq,) the posture that is preferred, or several of them: the first is preferred, all are starts.
        starts : (nq,) each: further starts, tried before the guides (the posture of a neighbouring stance).
        free : {patch: Freedom}: coordinates that may be chosen.
        passing : patches held in the air: they touch nothing, and keep the clearance.
        com : (2,) or (3,) centre of mass that the posture has (m); None leaves it to the balance.
        base : where the base is; None leaves it to the guide.
        hint : (2,) preferred centre of mass (m), if ``com`` is None; by default the place closest to that of the guide
            with a comfortable margin inside the region.
        airborne : {patch: rows} that patches in the air keep (`posture.airborne`).
        leaving : patches that are lifted next, whose limbs may be straight.
        """
        clock = EffortCounter()
        guides = [np.array(g, dtype=float) for g in ([guide] if np.ndim(guide) == 1 else guide)]
        contacts, free = tuple(contacts), dict(free or {})
        names = tuple(contact.patch for contact in contacts)
        chosen = names if loaded is None else tuple(loaded)
        loaded = tuple(name for name in names if name in chosen)
        for name in (*chosen, *free):
            if name not in names:
                raise InputError(f"`{name}` is not among the contacts: {', '.join(names) or 'none'}")
        extra_rows = {} if base is None else {"base": base.rows()}
        target = None if com is None else np.array(com, dtype=float)
        extra_rows |= airborne or {}
        touching = [name for name in names if name not in (*passing, *leaving)]
        limit = self._search.limit
        if self.settings.bent > 0.0:
            limit = bent_limits(limit, self.robot.folds_of(touching), guides[0][7:], self.settings.bent)
        wanted = PostureProblem(contacts, loaded, free, passing, guides[0], target, hint, extra_rows, limit)
        support = self.support(contacts, loaded, self.robot.com(guides[0]))
        clock.lap("region")
        refused = support.violation or (None if set(free) & set(loaded) else outside_region(support, target))
        best: Iterate | None = None
        if refused is not None:
            best = Iterate(guides[0], contacts, "region", (refused,), support=support)
        else:
            for start in (*starts, *guides):
                clock.starts += 1
                attempt = self._attempt(wanted, support, np.array(start, dtype=float), clock)
                if best is None or attempt.rank > best.rank:
                    best = attempt
                if best.stage == "done":
                    break
        assert best is not None
        return best.result(self.robot, loaded, clock)

    # -- stages ---------------------------------------------------------------------------------------------------

    def _attempt(
        self, wanted: PostureProblem, support: SupportData, start: np.ndarray, clock: EffortCounter
    ) -> Iterate:
        steps, guide, contacts, free = self.settings.steps, wanted.guide, wanted.contacts, wanted.free
        rows = self._all_rows(wanted, contacts, free)
        # a requested centre of mass attracts the posture from the first step on
        pull = None if wanted.com is None else np.array([*wanted.com[:2], self.settings.weights.com, 0.0])
        first = self._search.task(rows, guide, hint=pull, limit=wanted.limit)
        reach = self._run(first, start, steps, REACH_TOLERANCE_M, np.inf, clock)
        if not reach.found:
            return Iterate(reach.q, contacts, "reach", self._missed(reach, wanted, rows, guide))
        q = reach.q
        if any(freedom.names for freedom in free.values()):
            task = self._balanced(wanted, rows, guide, support)
            loose = self._run(task, q, steps, SEARCH_TOLERANCE_M, STEP_TOLERANCE, clock)
            if loose.worst > ACCEPTED_ERROR_M:
                missed = self._missed(loose, wanted, rows, guide)
                return Iterate(loose.q, contacts, "balance", missed, support=support)
            q = loose.q
            attempt = Iterate(q, contacts, "collision", (), None, support, None, loose.worst)
            self._push_apart(attempt, task, wanted, free, clock)
            if attempt.violations:
                return attempt
            q = attempt.q
            try:
                contacts = self._settle(contacts, free, q)
            except InputError:
                missed = tuple(Violation("reach", patch, REACH_TOLERANCE_M) for patch in free)
                return Iterate(q, contacts, "balance", missed, support=support)
            if any(patch in wanted.loaded for patch in free):
                support = self.support(contacts, wanted.loaded, self.robot.com(q))
                refused = support.violation or outside_region(support, wanted.com)
                if refused is not None:
                    return Iterate(q, contacts, "balance", (refused,), support=support)
            rows = self._all_rows(wanted, contacts, {})
            task = self._balanced(wanted, rows, guide, support)._replace(guide=q)
            guide = q
        else:
            task = self._balanced(wanted, rows, guide, support)
        found = self._run(task, q, steps, SEARCH_TOLERANCE_M, STEP_TOLERANCE, clock)
        if ACCEPTED_ERROR_M < found.worst <= REACH_TOLERANCE_M:  # not converged: drop the comfort term
            task = task._replace(hint=np.append(task.hint[:3], 0.0))
            found = self._run(task, q, steps, SEARCH_TOLERANCE_M, STEP_TOLERANCE, clock)
        if found.worst > ACCEPTED_ERROR_M:
            missed = self._missed(found, wanted, rows, guide)
            return Iterate(found.q, contacts, "balance", missed, support=support)
        attempt = Iterate(found.q, contacts, "collision", (), None, support, None, found.worst)
        self._push_apart(attempt, task, wanted, {}, clock)
        if not attempt.violations:
            self._find_forces(attempt, wanted.loaded, clock)
        return self._reduce_torque(attempt, task, wanted, clock)

    def _push_apart(
        self,
        attempt: Iterate,
        task: PostureTargets,
        wanted: PostureProblem,
        free: Mapping[str, Freedom],
        clock: EffortCounter,
    ) -> None:
        """Resolve collisions by rows of the distances, computed again every few steps."""
        if self.collisions is None:
            return
        settings = self.settings
        contacts = wanted.touching(attempt.contacts)
        fixed_links, before = self._fixed_links(contacts, free), None
        for rounds in range(settings.collision_rounds + 1):
            near = self.collisions.constraint_rows(attempt.q, self._watch_distance, contacts, settings.clearance)
            clock.collision_checks += 1
            clock.lap("collision")
            # contacts fix the poses of some links: no posture changes the distances between these, so that these pairs
            # need no clearance
            fixed = np.array([self._is_fixed(pair, fixed_links) for pair in near.pairs], bool)
            touching = np.array([pair.in_contact for pair in near.pairs], bool)
            # the clearance has a tolerance; the penetration of contacts and of pairs without clearance has none
            room = near.distance + settings.clearance * (fixed & ~touching) - CLEARANCE_ROUNDING_M * (fixed | touching)
            worst = int(np.argmin(room)) if len(room) else -1
            least = float(room[worst]) if worst >= 0 else self._watch_distance
            attempt.clearance = float(near.distance.min(initial=self._watch_distance)) + settings.clearance
            if least >= -CLEARANCE_ROUNDING_M and attempt.error <= ACCEPTED_ERROR_M:
                attempt.violations = ()
                return
            close = [p for p in np.argsort(room)[:MAX_NAMED_PAIRS] if room[p] < -CLEARANCE_ROUNDING_M]
            if close:
                attempt.violations = tuple(Violation("collision", str(near.pairs[p]), -float(room[p])) for p in close)
            if rounds == settings.collision_rounds or (close and fixed[worst]):
                return
            if least >= -CLEARANCE_ROUNDING_M:
                here = task._replace(guide=attempt.q, hint=np.zeros(4))
                back = self._run(here, attempt.q, settings.steps, SEARCH_TOLERANCE_M, STEP_TOLERANCE, clock)
                attempt.q, attempt.error = back.q, back.worst
                continue
            rows, distance = near.rows[~fixed], near.distance[~fixed]
            now = rows, distance, attempt.q
            if before is not None:  # the nearest corner of a flat foot alternates: keep the rows of the previous one
                old, predicted = before[0], before[1] + before[0] @ self.robot.difference(before[2], attempt.q)
                active = predicted < EXTRA_CLEARANCE_M + self._max_push
                rows, distance = np.vstack([rows, old[active]]), np.append(distance, predicted[active])
            before = now
            # more than required, to cover linearisation errors; a deep penetration is resolved in several rounds
            linear = np.column_stack([rows, np.minimum(EXTRA_CLEARANCE_M - distance, self._max_push)])
            push = task._replace(linear=linear, linear_q=attempt.q)
            step = self._run(push, attempt.q, 8, SEARCH_TOLERANCE_M, STEP_TOLERANCE, clock, trust=0.2)
            attempt.q = step.q
            own_rows = len(step.missed) - len(linear)
            attempt.error = float(step.missed[:own_rows].max(initial=0.0))

    def _find_forces(self, attempt: Iterate, loaded: tuple[str, ...], clock: EffortCounter) -> None:
        """Compute the contact forces; set the violation if equilibrium or torque limits fail."""
        robot, settings = self.robot, self.settings
        contacts = self._loaded_contacts(contact_at(robot, attempt.q, contact) for contact in attempt.contacts)
        forces = balance(robot, attempt.q, contacts, loaded, settings.torque_share)
        clock.lap("forces")
        attempt.forces, attempt.stage = forces, "forces"
        if not forces.feasible:
            depth = attempt.support.region.depth(robot.com(attempt.q)) if attempt.support else 0.0
            attempt.violations = (Violation("equilibrium", "com", max(-depth, 0.0)),)
        elif not forces.torque_feasible:
            share = np.abs(forces.tau) / robot.usable_torque
            worst = int(np.argmax(share))
            attempt.violations = (
                Violation("torque", robot.joint_names[worst], float(share[worst] - settings.torque_share)),
            )
        else:
            attempt.stage, attempt.violations = "done", ()

    def _reduce_torque(
        self, attempt: Iterate, task: PostureTargets, wanted: PostureProblem, clock: EffortCounter
    ) -> Iterate:
        """Return a nearby posture within the torque limits, or the attempt itself if there is none.

        All linearisations so far are used; otherwise the excess would alternate between two joints.
        """
        here, planes = attempt, []
        for _ in range(self.settings.torque_rounds):
            if here.violations and here.violations[0].kind != "torque":
                break
            if here.stage == "done":
                return here
            contacts = [contact_at(self.robot, here.q, contact) for contact in here.contacts]
            loaded = self._loaded_contacts(contact for contact in contacts if contact.patch in wanted.loaded)
            found = torque_excess(self.robot, here.q, loaded, self.settings.torque_share)
            clock.lap("forces")
            if found is None:
                break
            planes.append((here.q, *found))
            linear = torque_rows(self.robot, here.q, planes)
            if self.collisions is not None:
                touching = wanted.touching(here.contacts)
                near = self.collisions.constraint_rows(here.q, self._watch_distance, touching, self.settings.clearance)
                linear = np.vstack([linear, np.column_stack([near.rows, np.minimum(-near.distance, 0.0)])])
            ease = task._replace(guide=here.q, hint=np.zeros(4), linear=np.ascontiguousarray(linear), linear_q=here.q)
            step = self._run(ease, here.q, 8, SEARCH_TOLERANCE_M, STEP_TOLERANCE, clock, trust=0.2)
            there = task._replace(guide=step.q, hint=np.zeros(4))
            back = self._run(there, step.q, self.settings.steps, SEARCH_TOLERANCE_M, STEP_TOLERANCE, clock)
            here = replace(attempt, q=back.q, error=back.worst)
            if back.worst > ACCEPTED_ERROR_M:
                break
            self._push_apart(here, there, wanted, {}, clock)
            if not here.violations or here.violations[0].kind == "torque":
                self._find_forces(here, wanted.loaded, clock)
        return here if here.stage == "done" else attempt

    # -- parts ----------------------------------------------------------------------------------------------------

    def _run(
        self, task: PostureTargets, start, steps: int, tolerance: float, step_tolerance: float, clock, **options
    ) -> SearchResult:
        answer = self._search.run(task, start, steps, tolerance, step_tolerance, **options)
        clock.steps += answer.steps
        clock.soft_steps += answer.soft_steps
        clock.lap("kinematics")
        return answer

    def _all_rows(
        self, wanted: PostureProblem, contacts: tuple[Contact, ...], free: Mapping[str, Freedom]
    ) -> list[FrameRows]:
        return [
            *(self._contact_rows(contact, free.get(contact.patch)) for contact in contacts),
            *wanted.extra_rows.values(),
        ]

    def _balanced(
        self, wanted: PostureProblem, rows: list[FrameRows], guide: np.ndarray, support: SupportData
    ) -> PostureTargets:
        """Return the search for a posture with the requested centre of mass, or with one inside its region."""
        if wanted.com is not None:
            return self._search.task(rows, guide, centre=wanted.centre, limit=wanted.limit)
        place = support.hint(self.robot.com(guide)) if wanted.hint is None else wanted.hint
        weights = self.settings.weights
        hint = np.array([*place, weights.com, weights.comfort])
        return self._search.task(rows, guide, support.rows, hint, limit=wanted.limit)

    def _contact_rows(self, contact: Contact, freedom: Freedom | None) -> FrameRows:
        key = (contact_key(contact), tuple(contact.coordinates.items()), freedom)
        if key not in self._rows:
            self._rows[key] = contact_rows(self.robot, self.environment, contact, freedom)
        return self._rows[key]

    def _with_margins(self, contacts: Iterable[Contact]) -> tuple[Contact, ...]:
        return tuple(map(self.settings.with_margin, contacts))

    def _loaded_contacts(self, contacts: Iterable[Contact]) -> tuple[Contact, ...]:
        """Return contacts with the pressure margin of the controller: torques depend on where forces act."""
        inset = self.settings.pressure_inset
        contacts = self._with_margins(contacts)
        return tuple(replace(contact, points=shrink_points(contact.points, inset)) for contact in contacts)

    def support(self, contacts: Sequence[Contact], loaded: Sequence[str], com: np.ndarray) -> SupportData:
        """Return the support region of the loaded contacts; ``com`` (3,) as for `ContactRegions`."""
        return self._regions.support(self._with_margins(c for c in contacts if c.patch in loaded), com)

    def _fixed_links(self, contacts: Iterable[Contact], free: Mapping[str, Freedom]) -> set[str]:
        """Return the links whose pose a full contact fixes."""
        full = (c.patch for c in contacts if len(c.selection) == 6 and c.patch not in free)
        bodies = {self.robot.frame(patch)[0] for patch in full}
        return {link for link, body in self._bodies.items() if body in bodies}

    def _is_fixed(self, pair, links: set[str]) -> bool:
        return pair.a in links and (pair.b in links or pair.b not in self._bodies)

    def _settle(self, contacts: tuple[Contact, ...], free: dict[str, Freedom], q: np.ndarray) -> tuple[Contact, ...]:
        settled = []
        for contact in contacts:
            freedom = free.get(contact.patch)
            if freedom is not None and freedom.names:
                X = self.robot.frame_pose(q, contact.patch)
                contact = resolve_contact(self.robot, self.environment, contact, freedom, (X[:3, :3], X[:3, 3]))
            settled.append(contact)
        return tuple(settled)

    def _missed(
        self, search: SearchResult, wanted: PostureProblem, rows: list[FrameRows], guide: np.ndarray
    ) -> tuple[Violation, ...]:
        """Return the violations of a search, and the joint limits that cause them."""
        names = [contact.patch for contact in wanted.contacts]
        found = violations_of(search, rows, names, list(wanted.extra_rows), SEARCH_TOLERANCE_M)
        return tuple(found + self._binding(search, wanted.limit, rows, guide))

    def _binding(
        self, search: SearchResult, limit: np.ndarray, rows: list[FrameRows], guide: np.ndarray
    ) -> list[Violation]:
        """Return the joints at a limit that would exceed it if the search were free to."""
        lower, upper = limit
        q = search.q[7:]
        bound = (q <= lower + 1e-6) | (q >= upper - 1e-6)
        if not bound.any():
            return []
        relaxed = self._search.task(rows, guide, limit=np.array([lower - 0.5, upper + 0.5]))
        beyond = self._search.run(relaxed, search.q, 3, REACH_TOLERANCE_M, np.inf).q[7:]
        excess = np.maximum(lower - beyond, beyond - upper)
        kinds = ["slide limit" if unit == "m" else "joint limit" for unit in self.robot.joint_units]
        over = np.flatnonzero(bound & (excess > 1e-4))
        found = [Violation(kinds[j], self.robot.joint_names[j], float(excess[j])) for j in over]
        return sorted(found, key=lambda violation: -violation.amount)


def solve_posture(
    robot: Robot,
    environment: Environment,
    contacts: Sequence[Contact],
    near: np.ndarray | str | None = None,
    *,
    loaded: Iterable[str] | None = None,
    com: np.ndarray | None = None,
    base: BaseTarget | None = None,
    collisions: bool = True,
    settings: PostureSettings | None = None,
) -> PostureResult:
    """Find a balanced, collision-free posture near another one, with contacts in place and within limits.

        minimise    |q - near|^2 weighted
        subject to  contacts in place,  joint limits,  centre of mass in the support region of the loaded contacts,
                    distances between bodies,  forces within cones and limits,  torques within their share

    ``print`` of the result shows whether a posture was found, and the violated constraints.

    Parameters
    ----------
    robot, environment : the robot, and the obstacles of its links.
    contacts : at least one (`mcplan.contact`).
    near : (nq,) the posture that is preferred, or its name; the robot's ``half_sitting`` or neutral one by default.
    loaded : names of the patches that carry load; all by default.
    com : (2,) or (3,) requested centre of mass (m).
    base : requested pose of the base.
    collisions : whether collisions are avoided.
    settings : margins and budgets.

    Raises
    ------
    InputError
        No contacts, one patch twice, or a posture of another robot.
    """
    where = "solve_posture"
    check_instance(where, "robot", robot, Robot)
    check_instance(where, "environment", environment, Environment)
    contacts = check_each(where, "contacts", contacts, Contact)
    names = [contact.patch for contact in contacts]
    if not names or len(set(names)) < len(names):
        raise InputError(f"solve_posture: expected contacts of different patches, not {', '.join(names) or 'none'}")
    if near is None:
        near = robot.posture("half_sitting") if "half_sitting" in robot.postures else robot.neutral()
    name = f"near (q of {robot.name})"
    guide = robot.posture(near) if isinstance(near, str) else check_vector(where, name, near, robot.nq)
    com = None if com is None else check_vector(where, "com", com, 2, 3)
    model = CollisionModel(robot, environment) if collisions else None
    generator = PostureGenerator(robot, environment, settings, model)
    return generator.generate(contacts, loaded, guide, com=com, base=base)
