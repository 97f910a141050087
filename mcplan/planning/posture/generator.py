"""Posture generator: a balanced, collision-free posture for a stance near a guide, or the violated constraints.

The stages go from cheap to expensive, and the first failure ends an attempt:

    region      support region of the loaded contacts, which does not depend on the posture (cached by value)
    reach       contacts in place, base target, clearance of patches in the air, joint limits
    balance     the same with the centre of mass inside the region, at a smaller tolerance; free coordinates resolved
    collision   distances between bodies; if some are too close, the search continues with rows that separate them
    forces      minimum-norm contact forces within friction and torque limits

There is one attempt per start and guide, until one succeeds. Calls share only caches by value: the same call gives
bitwise the same result.
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
from mcplan.planning.posture.task import BaseTarget, PostureSearch, PostureSettings, SearchResult, coordinate_weights
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
    """Checked arguments of one call of `PostureGenerator.generate`.

    Attributes
    ----------
    contacts : contacts of the stance.
    loaded : names of the patches that carry load.
    free : free coordinates of the contacts, by patch.
    in_air : patches that are held in the air, not in contact.
    guide : (nq,) preferred posture.
    com, hint : requested centre of mass, or preferred one (2,).
    extra_rows : rows of the base and of lifted patches, by name.
    limit : (2, n) joint bounds.
    """

    contacts: tuple[Contact, ...]
    loaded: tuple[str, ...]
    free: dict[str, Freedom]
    in_air: tuple[str, ...]
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
        """Return the contacts without those of patches that are held in the air."""
        return tuple(contact for contact in contacts if contact.patch not in self.in_air)


@dataclass
class Iterate:
    """Result of the attempt from one start.

    Attributes
    ----------
    q : (nq,) posture.
    contacts : contacts, with resolved free coordinates from the stage ``collision`` on.
    stage : last stage, see `STAGES`.
    violations : violations of this stage; empty if there are none so far.
    forces, support : equilibrium and support region, if computed.
    clearance : smallest distance between bodies (m), if computed.
    error : largest violation of the posture search (m, rad).
    """

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
        """The stage, and the negative violation; attempts with a larger rank are better."""
        amount = self.violations[0].amount if self.violations else 0.0
        return STAGES.index(self.stage), -amount

    def result(self, robot: Robot, loaded: tuple[str, ...], clock: EffortCounter) -> PostureResult:
        """Return this attempt as the result of a call, with margins."""
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
    """Return the violation of a centre of mass outside its support region; None within the region's accuracy."""
    depth = np.inf if com is None else support.region.depth(com)
    return Violation("equilibrium", "com", float(-depth)) if depth < -REGION_TOLERANCE_M else None


REACH_TOLERANCE = 1e-3
"""Tolerance of the reach stage (m, rad)."""

SEARCH_TOLERANCE = 1e-7
"""Violation at which a search stops (m, rad)."""

ACCEPTED_ERROR = 1e-6
"""Largest error of an accepted posture (m, rad): contacts with rounded coordinates may conflict slightly."""

STEP_TOLERANCE = 0.02
"""A search stops at a step below this (m, rad), which improves the cost too little to matter."""

EXTRA_CLEARANCE_M = 3e-4
"""Added to the required clearance when bodies are separated."""

CLEARANCE_ROUNDING_M = 1e-4
"""Tolerance of the required clearance."""

MAX_SEPARATION_STEP_M = 0.02
"""Largest separation of a pair of bodies before its distance is computed again."""

MAX_NAMED_PAIRS = 3
"""Largest number of colliding pairs in a result."""

LINEARIZED_STEPS, LINEARIZED_TRUST_RADIUS = 8, 0.2
"""Maximum number of steps of a search with linearised distances or torques, and their bound (m, rad).

Both are small, since the linearisation is valid only near its posture.
"""

MAX_ROW_DISTANCE_M = 0.04
"""Pairs of bodies closer than this have rows when a collision is resolved."""


class PostureGenerator:
    """Finds postures in one scene.

    Parameters
    ----------
    robot, environment : the scene.
    settings : margins and budgets.
    collisions : collision model of the scene; None to ignore collisions.
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
        self._max_row_distance = robot.scale.leg * MAX_ROW_DISTANCE_M
        self._max_separation_step = robot.scale.leg * MAX_SEPARATION_STEP_M
        self._search = PostureSearch(
            robot, coordinate_weights(robot, self.settings.weights), self.settings.joint_margin
        )
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
        guide : (nq,) preferred posture, or several: the first is preferred, all are starts.
        starts : (nq,) each: further starts, tried before the guides, such as the posture of a neighbouring stance.
        free : {patch: Freedom}: coordinates that the generator may choose.
        passing : patches of ``contacts`` that are held in the air: they are not in contact, and keep the clearance.
        com : (2,) or (3,) requested centre of mass (m); None for any that is balanced.
        base : target pose of the base; None for none.
        hint : (2,) preferred centre of mass (m), if ``com`` is None; by default the point closest to that of the guide
            with a comfortable margin inside the region.
        airborne : {patch: rows} of patches in the air, see `posture.limbs.swing_limb_rows`.
        leaving : patches that are lifted next; their limbs may be straight.
        """
        clock = EffortCounter()
        guides = [np.array(g, dtype=float) for g in ([guide] if np.ndim(guide) == 1 else guide)]
        contacts, free = tuple(contacts), dict(free or {})
        names = tuple(contact.patch for contact in contacts)
        loaded_names = names if loaded is None else tuple(loaded)
        loaded = tuple(name for name in names if name in loaded_names)
        for name in (*loaded_names, *free):
            if name not in names:
                raise InputError(f"`{name}` is not among the contacts: {', '.join(names) or 'none'}")
        extra_rows = {} if base is None else {"base": base.rows()}
        target = None if com is None else np.array(com, dtype=float)
        extra_rows |= airborne or {}
        touching = [name for name in names if name not in (*passing, *leaving)]
        limit = self._search.limit
        if self.settings.bent > 0.0:
            limit = bent_limits(limit, self.robot.folds_of(touching), guides[0][7:], self.settings.bent)
        problem = PostureProblem(contacts, loaded, free, passing, guides[0], target, hint, extra_rows, limit)
        support = self.support(contacts, loaded, self.robot.com(guides[0]))
        clock.lap("region")
        violation = support.violation or (None if set(free) & set(loaded) else outside_region(support, target))
        best: Iterate | None = None
        if violation is not None:
            best = Iterate(guides[0], contacts, "region", (violation,), support=support)
        else:
            for start in (*starts, *guides):
                clock.starts += 1
                attempt = self._attempt(problem, support, np.array(start, dtype=float), clock)
                if best is None or attempt.rank > best.rank:
                    best = attempt
                if best.stage == "done":
                    break
        assert best is not None
        return best.result(self.robot, loaded, clock)

    # -- stages ---------------------------------------------------------------------------------------------------

    def _attempt(
        self, problem: PostureProblem, support: SupportData, start: np.ndarray, clock: EffortCounter
    ) -> Iterate:
        steps, guide, contacts, free = self.settings.steps, problem.guide, problem.contacts, problem.free
        rows = self._frame_rows(problem, contacts, free)
        # a requested centre of mass already attracts the posture in the reach stage
        com_hint = None if problem.com is None else np.array([*problem.com[:2], self.settings.weights.com, 0.0])
        reach_task = self._search.task(rows, guide, hint=com_hint, limit=problem.limit)
        reach = self._run(reach_task, start, steps, REACH_TOLERANCE, np.inf, clock)
        if not reach.found:
            return Iterate(reach.q, contacts, "reach", self._violations(reach, problem, rows, guide))
        q = reach.q
        if any(freedom.names for freedom in free.values()):
            task = self._balance_task(problem, rows, guide, support)
            free_result = self._run(task, q, steps, SEARCH_TOLERANCE, STEP_TOLERANCE, clock)
            if free_result.worst > ACCEPTED_ERROR:
                violations = self._violations(free_result, problem, rows, guide)
                return Iterate(free_result.q, contacts, "balance", violations, support=support)
            q = free_result.q
            attempt = Iterate(q, contacts, "collision", (), None, support, None, free_result.worst)
            self._separate_bodies(attempt, task, problem, free, clock)
            if attempt.violations:
                return attempt
            q = attempt.q
            try:
                contacts = self._resolve_free_coordinates(contacts, free, q)
            except InputError:
                violations = tuple(Violation("reach", patch, REACH_TOLERANCE) for patch in free)
                return Iterate(q, contacts, "balance", violations, support=support)
            if any(patch in problem.loaded for patch in free):
                support = self.support(contacts, problem.loaded, self.robot.com(q))
                violation = support.violation or outside_region(support, problem.com)
                if violation is not None:
                    return Iterate(q, contacts, "balance", (violation,), support=support)
            rows = self._frame_rows(problem, contacts, {})
            task = self._balance_task(problem, rows, guide, support)._replace(guide=q)
            guide = q
        else:
            task = self._balance_task(problem, rows, guide, support)
        found = self._run(task, q, steps, SEARCH_TOLERANCE, STEP_TOLERANCE, clock)
        if ACCEPTED_ERROR < found.worst <= REACH_TOLERANCE:  # not converged: drop the comfort term
            task = task._replace(com_preference=np.append(task.com_preference[:3], 0.0))
            found = self._run(task, q, steps, SEARCH_TOLERANCE, STEP_TOLERANCE, clock)
        if found.worst > ACCEPTED_ERROR:
            violations = self._violations(found, problem, rows, guide)
            return Iterate(found.q, contacts, "balance", violations, support=support)
        attempt = Iterate(found.q, contacts, "collision", (), None, support, None, found.worst)
        self._separate_bodies(attempt, task, problem, {}, clock)
        if not attempt.violations:
            self._compute_forces(attempt, problem.loaded, clock)
        return self._reduce_torque(attempt, task, problem, clock)

    def _separate_bodies(
        self,
        attempt: Iterate,
        task: PostureTargets,
        problem: PostureProblem,
        free: Mapping[str, Freedom],
        clock: EffortCounter,
    ) -> None:
        """Resolve collisions by linear rows of the distances, which are computed again every few steps."""
        if self.collisions is None:
            return
        settings = self.settings
        contacts = problem.touching(attempt.contacts)
        fixed_links, previous = self._fixed_links(contacts, free), None
        for rounds in range(settings.collision_rounds + 1):
            pairs = self.collisions.constraint_rows(attempt.q, self._max_row_distance, contacts, settings.clearance)
            clock.collision_checks += 1
            clock.lap("collision")
            # contacts fix the poses of some links: no posture changes the distances between these, so they need no
            # clearance
            fixed = np.array([self._is_fixed_pair(pair, fixed_links) for pair in pairs.pairs], bool)
            in_contact = np.array([pair.in_contact for pair in pairs.pairs], bool)
            # the clearance has a tolerance; the penetration of contacts and of pairs without clearance has none
            slack = (
                pairs.distance
                + settings.clearance * (fixed & ~in_contact)
                - CLEARANCE_ROUNDING_M * (fixed | in_contact)
            )
            worst = int(np.argmin(slack)) if len(slack) else -1
            least = float(slack[worst]) if worst >= 0 else self._max_row_distance
            attempt.clearance = float(pairs.distance.min(initial=self._max_row_distance)) + settings.clearance
            if least >= -CLEARANCE_ROUNDING_M and attempt.error <= ACCEPTED_ERROR:
                attempt.violations = ()
                return
            close = [p for p in np.argsort(slack)[:MAX_NAMED_PAIRS] if slack[p] < -CLEARANCE_ROUNDING_M]
            if close:
                attempt.violations = tuple(Violation("collision", str(pairs.pairs[p]), -float(slack[p])) for p in close)
            if rounds == settings.collision_rounds or (close and fixed[worst]):
                return
            if least >= -CLEARANCE_ROUNDING_M:
                converge_task = task._replace(guide=attempt.q, com_preference=np.zeros(4))
                converged = self._run(converge_task, attempt.q, settings.steps, SEARCH_TOLERANCE, STEP_TOLERANCE, clock)
                attempt.q, attempt.error = converged.q, converged.worst
                continue
            rows, distance = pairs.rows[~fixed], pairs.distance[~fixed]
            current = rows, distance, attempt.q
            if previous is not None:  # the nearest corner of a flat foot alternates: keep the rows of the previous one
                old_rows, old_distance, old_q = previous
                predicted = old_distance + old_rows @ self.robot.difference(old_q, attempt.q)
                active = predicted < EXTRA_CLEARANCE_M + self._max_separation_step
                rows, distance = np.vstack([rows, old_rows[active]]), np.append(distance, predicted[active])
            previous = current
            # more than required, to cover linearisation errors; a deep penetration is resolved in several rounds
            linear = np.column_stack([rows, np.minimum(EXTRA_CLEARANCE_M - distance, self._max_separation_step)])
            separation_task = task._replace(linear=linear, linear_q=attempt.q)
            separated = self._run_linearized(separation_task, attempt.q, clock)
            attempt.q = separated.q
            task_rows = len(separated.missed) - len(linear)
            attempt.error = float(separated.missed[:task_rows].max(initial=0.0))

    def _compute_forces(self, attempt: Iterate, loaded: tuple[str, ...], clock: EffortCounter) -> None:
        """Compute the contact forces, and set the violation of equilibrium or torque limits, if any."""
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
        self, attempt: Iterate, task: PostureTargets, problem: PostureProblem, clock: EffortCounter
    ) -> Iterate:
        """Return a nearby posture within the torque limits, or the attempt itself if there is none.

        All linearisations so far are used, otherwise the excess could alternate between two joints.
        """
        current, linearizations = attempt, []
        for _ in range(self.settings.torque_rounds):
            if current.violations and current.violations[0].kind != "torque":
                break
            if current.stage == "done":
                return current
            contacts = [contact_at(self.robot, current.q, contact) for contact in current.contacts]
            loaded = self._loaded_contacts(contact for contact in contacts if contact.patch in problem.loaded)
            found = torque_excess(self.robot, current.q, loaded, self.settings.torque_share)
            clock.lap("forces")
            if found is None:
                break
            linearizations.append((current.q, *found))
            linear = torque_rows(self.robot, current.q, linearizations)
            if self.collisions is not None:
                touching = problem.touching(current.contacts)
                pairs = self.collisions.constraint_rows(
                    current.q, self._max_row_distance, touching, self.settings.clearance
                )
                linear = np.vstack([linear, np.column_stack([pairs.rows, np.minimum(-pairs.distance, 0.0)])])
            reduction_task = task._replace(
                guide=current.q, com_preference=np.zeros(4), linear=np.ascontiguousarray(linear), linear_q=current.q
            )
            reduced = self._run_linearized(reduction_task, current.q, clock)
            converge_task = task._replace(guide=reduced.q, com_preference=np.zeros(4))
            converged = self._run(
                converge_task, reduced.q, self.settings.steps, SEARCH_TOLERANCE, STEP_TOLERANCE, clock
            )
            current = replace(attempt, q=converged.q, error=converged.worst)
            if converged.worst > ACCEPTED_ERROR:
                break
            self._separate_bodies(current, converge_task, problem, {}, clock)
            if not current.violations or current.violations[0].kind == "torque":
                self._compute_forces(current, problem.loaded, clock)
        return current if current.stage == "done" else attempt

    # -- parts ----------------------------------------------------------------------------------------------------

    def _run(
        self, task: PostureTargets, start, steps: int, tolerance: float, step_tolerance: float, clock, **options
    ) -> SearchResult:
        result = self._search.run(task, start, steps, tolerance, step_tolerance, **options)
        clock.steps += result.steps
        clock.soft_steps += result.soft_steps
        clock.lap("kinematics")
        return result

    def _run_linearized(self, task: PostureTargets, start: np.ndarray, clock: EffortCounter) -> SearchResult:
        steps, trust = LINEARIZED_STEPS, LINEARIZED_TRUST_RADIUS
        return self._run(task, start, steps, SEARCH_TOLERANCE, STEP_TOLERANCE, clock, trust=trust)

    def _frame_rows(
        self, problem: PostureProblem, contacts: tuple[Contact, ...], free: Mapping[str, Freedom]
    ) -> list[FrameRows]:
        return [
            *(self._contact_rows(contact, free.get(contact.patch)) for contact in contacts),
            *problem.extra_rows.values(),
        ]

    def _balance_task(
        self, problem: PostureProblem, rows: list[FrameRows], guide: np.ndarray, support: SupportData
    ) -> PostureTargets:
        """Return the task of a posture with the requested centre of mass, or with one inside its region."""
        if problem.com is not None:
            return self._search.task(rows, guide, centre=problem.centre, limit=problem.limit)
        com_position = support.hint(self.robot.com(guide)) if problem.hint is None else problem.hint
        weights = self.settings.weights
        hint = np.array([*com_position, weights.com, weights.comfort])
        return self._search.task(rows, guide, support.rows, hint, limit=problem.limit)

    def _contact_rows(self, contact: Contact, freedom: Freedom | None) -> FrameRows:
        key = (contact_key(contact), tuple(contact.coordinates.items()), freedom)
        if key not in self._rows:
            self._rows[key] = contact_rows(self.robot, self.environment, contact, freedom)
        return self._rows[key]

    def _with_margins(self, contacts: Iterable[Contact]) -> tuple[Contact, ...]:
        return tuple(map(self.settings.with_margin, contacts))

    def _loaded_contacts(self, contacts: Iterable[Contact]) -> tuple[Contact, ...]:
        """Return contacts with usable limits and pressure margin, since torques depend on the points of the forces."""
        inset = self.settings.pressure_inset
        contacts = self._with_margins(contacts)
        return tuple(contact.with_points(shrink_points(contact.points, inset)) for contact in contacts)

    def support(self, contacts: Sequence[Contact], loaded: Sequence[str], com: np.ndarray) -> SupportData:
        """Return the support region of the loaded contacts; ``com`` (3,) as for `ContactRegions.support`."""
        return self._regions.support(self._with_margins(c for c in contacts if c.patch in loaded), com)

    def _fixed_links(self, contacts: Iterable[Contact], free: Mapping[str, Freedom]) -> set[str]:
        """Return the links whose pose is fixed by a contact that constrains all six directions."""
        fixed_patches = (c.patch for c in contacts if len(c.selection) == 6 and c.patch not in free)
        bodies = {self.robot.frame(patch)[0] for patch in fixed_patches}
        return {link for link, body in self._bodies.items() if body in bodies}

    def _is_fixed_pair(self, pair, links: set[str]) -> bool:
        return pair.a in links and (pair.b in links or pair.b not in self._bodies)

    def _resolve_free_coordinates(
        self, contacts: tuple[Contact, ...], free: dict[str, Freedom], q: np.ndarray
    ) -> tuple[Contact, ...]:
        resolved = []
        for contact in contacts:
            freedom = free.get(contact.patch)
            if freedom is not None and freedom.names:
                X = self.robot.frame_pose(q, contact.patch)
                contact = resolve_contact(self.robot, self.environment, contact, freedom, (X[:3, :3], X[:3, 3]))
            resolved.append(contact)
        return tuple(resolved)

    def _violations(
        self, search: SearchResult, problem: PostureProblem, rows: list[FrameRows], guide: np.ndarray
    ) -> tuple[Violation, ...]:
        """Return the violations of a search, followed by the joint limits that cause them."""
        names = [contact.patch for contact in problem.contacts]
        found = violations_of(search, rows, names, list(problem.extra_rows), SEARCH_TOLERANCE)
        return tuple(found + self._binding_joint_limits(search, problem.limit, rows, guide))

    def _binding_joint_limits(
        self, search: SearchResult, limit: np.ndarray, rows: list[FrameRows], guide: np.ndarray
    ) -> list[Violation]:
        """Return the violations of joints at a limit that they would exceed in a search with wider limits."""
        lower, upper = limit
        q = search.q[7:]
        at_limit = (q <= lower + 1e-6) | (q >= upper - 1e-6)
        if not at_limit.any():
            return []
        relaxed = self._search.task(rows, guide, limit=np.array([lower - 0.5, upper + 0.5]))
        relaxed_joints = self._search.run(relaxed, search.q, 3, REACH_TOLERANCE, np.inf).q[7:]
        excess = np.maximum(lower - relaxed_joints, relaxed_joints - upper)
        kinds = ["slide limit" if unit == "m" else "joint limit" for unit in self.robot.joint_units]
        exceeding = np.flatnonzero(at_limit & (excess > 1e-4))
        found = [Violation(kinds[j], self.robot.joint_names[j], float(excess[j])) for j in exceeding]
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
