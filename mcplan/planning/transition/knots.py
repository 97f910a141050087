"""Knots of a motion from one posture to another: postures on the contacts that stay, clear of everything.

Between two postures that are proven, the straight motion of the joints may leave the contacts' reach, the region where
the robot balances, or pass through an obstacle. So knots along it are found one after the other, by inverse kinematics
from the one before; of those that what is already found leads to closely enough, none is searched for.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mcplan.collision.model import CollisionModel
from mcplan.core.posture.rows import PLACE_ROWS, POSE_ROWS, Task
from mcplan.model.pose import Pose
from mcplan.model.robot import Robot
from mcplan.motion.spline import PostureSpline
from mcplan.planning.posture.contact_region import ContactRegions, Support
from mcplan.planning.posture.freedom import ContactRows, contact_rows
from mcplan.planning.posture.settings import PostureSettings
from mcplan.planning.posture.task import PostureSearch, prices
from mcplan.planning.transition.apart import FIT, STEP_TOLERANCE, STEPS, TOLERANCE, TRUST, Apart
from mcplan.planning.transition.joint_room import JointRoom
from mcplan.planning.transition.nearness import APART, GRAZE, Nearness, Wish, away_from_ends
from mcplan.planning.transition.smoothing import draw_inside, smooth_offsets
from mcplan.planning.transition.steps import Steps
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment

KEPT, KEPT_COUNTS = 1e-3, 6.0
"""m, rad: by so much the curve through knots may be off its contacts, and how many times what is beyond counts: 1.8 mm
are as much as a motion may miss its distances by, since a sole that sank into its support by 2 mm would overlap it."""

FINEST = 32
"""Parts of the way from knot to knot in which distances are looked at where bodies may come too near in between."""

STRIDE = 3
"""Postures from one that is searched for to the next; those in between are searched for where these do not lead."""

TURNING = 0.02
"""m: so near to an end of its way a patch is not turned."""

LIFTS = (1.0, 0.5, 0.25, 0.125)
"""Parts of the height to which a patch is lifted that are tried in turn."""

SWEEPS = 3
"""Times that the postures are drawn to a smoother way."""

SMOOTHINGS = ((6, 4), (3, 2), (1, 1), (0, 1))
"""Passes of the filter (1, 2, 1) / 4 that smoothes a way, and knots at either end over which it leaves the guides, as
gently as they themselves begin and end: less where more would lead through something."""

BARRED = 5e-3
"""m, rad: a motion that misses its distances or contacts by more is none: its bodies would touch."""

WORTH, SLIP = 0.01, 1e-3
"""m, rad: a way that misses more is not worth smoothing; smoothing may make a posture miss by so much."""


ObjectPoses = Callable[[float], Mapping[str, Pose]]
"""Poses (R, p) of objects that move along, by the share of the way that has passed."""


class Led(NamedTuple):
    """A patch that is led: its positions (k, 3), and its rotations (3, 3) at the two ends; on the way it may turn.

    Its positions halfway between knots (k - 1, 3) are looked at where they are given.
    """

    patch: str
    places: np.ndarray
    turns: tuple[np.ndarray, np.ndarray]
    halves: np.ndarray | None = None

    def away(self, k: int) -> tuple[float, float]:
        """Return the distances of a position from both ends (m)."""
        first, last = (float(np.linalg.norm(self.places[k] - self.places[end])) for end in (0, -1))
        return first, last


class Worst(NamedTuple):
    """Where a way misses most: which part of it has passed by then, and the two bodies that come too near.

    There are no bodies where it is contacts or balance that are missed.
    """

    share: float
    bodies: tuple[str, ...]


NOWHERE = Worst(0.0, ())


@dataclass(frozen=True)
class Knots:
    """Postures along a motion, its ends included.

    Attributes
    ----------
    q : (k, nq); smoothed at last, so that contacts are kept to millimetres: references need no more, but no jerks.
    missed : by how much the worst misses its clearance (m), or ``unsmoothed`` where that is more; 0 when none does.
    unsmoothed : by how much it missed its contacts or its clearance before the smoothing (m, rad).
    worst : where that is.
    strayed : how far a led patch gets from its path (m).
    """

    q: np.ndarray
    missed: float
    unsmoothed: float
    worst: Worst = NOWHERE
    strayed: float = 0.0


class KnotFinder:
    """Finds ways in one scene.

    Parameters
    ----------
    robot, environment : the scene.
    settings : margins of the postures.
    collisions : of the same scene, where they are known.
    """

    def __init__(
        self,
        robot: Robot,
        environment: Environment,
        settings: PostureSettings | None = None,
        collisions: CollisionModel | None = None,
    ):
        self.robot, self.environment, self.settings = robot, environment, settings or PostureSettings().of(robot.scale)
        self.collisions = collisions or CollisionModel(robot, environment)
        self.nearness = Nearness(robot, self.collisions)
        # where nothing else will do, half of the planner's margin of joints is enough for the way between two postures
        self.search = PostureSearch(robot, prices(robot, self.settings.weights), 0.5 * self.settings.joint_margin)
        self._joints = JointRoom(robot, self.search.limit)
        self.apart = Apart(self.nearness, self.search)
        self._regions = ContactRegions(robot.mass, self.settings.com_inset, self.settings.comfort)

    def find(
        self,
        guides: np.ndarray,
        contacts: Sequence[Contact] | Sequence[Sequence[Contact]],
        led: Sequence[Led] = (),
        touching: Sequence[Contact] = (),
        modest: bool = False,
        objects: ObjectPoses | None = None,
    ) -> Steps[Knots]:
        """Search for knots near the guides.

        Parameters
        ----------
        guides : (k, nq) the motion that is preferred; its ends are kept.
        contacts : what is in place all along; or, where it moves with an object, what is in place at each knot.
        led : patches that are led along.
        touching : contacts that limbs leave or come to: near them, the limb is close to its support.
        modest : let no pair part more than it does at one of the ends.
        objects : where objects that move along are, by the share of the way that has passed.
        """
        guides = np.asarray(guides, dtype=float)
        roomy = self._joints.between(guides[[0, -1], 7:])
        knots = yield from self._near(guides, contacts, led, touching, modest, objects, roomy)
        if knots.missed > BARRED and self._joints.hold_up(roomy, knots.q):
            again = yield from self._near(guides, contacts, led, touching, modest, objects, self._joints.least)
            knots = min(knots, again, key=lambda found: found.missed)
        return knots

    def _near(
        self,
        guides: np.ndarray,
        contacts: Sequence[Contact] | Sequence[Sequence[Contact]],
        led: Sequence[Led],
        touching: Sequence[Contact],
        modest: bool,
        objects: ObjectPoses | None,
        limit: np.ndarray,
    ) -> Steps[Knots]:
        """Search for knots whose joints keep within bounds (2, n), where these do not bar the way."""
        robot, settings, last = self.robot, self.settings, len(guides) - 1
        com = robot.com(guides)
        closed = _at_knots(contacts, last + 1)
        moving = any(here is not closed[0] for here in closed)
        supports = [self.support(here, com[k]) for k, here in enumerate(closed)]
        held = [[contact_rows(robot, self.environment, contact, None) for contact in here] for here in closed]
        watched = self.nearness.watched(closed[0])
        there = [objects and objects(k / last) for k in range(last + 1)]
        yield
        passing = [(list(self.collisions.pairs_of([contact])), contact.patch) for contact in touching]
        ends = self.nearness.distances(guides[0], there[0]), self.nearness.distances(guides[-1], there[-1])
        most = np.maximum(*ends) if modest else np.inf
        q, missed, off = guides.copy(), np.zeros(len(guides)), np.zeros((len(guides), robot.nv))
        tasks, wishes = [], []
        places = {patch: robot.frame_pose(guides, patch)[:, :3, 3] for _, patch in passing}
        places |= {lead.patch: lead.places for lead in led}
        grazing = np.zeros(len(self.collisions.pairs))
        grazing[[pair for pairs, _ in passing for pair in pairs]] = 1.0
        for k in range(last + 1):
            rows = [*held[k], *(self._led_rows(lead, k) for lead in led)]
            pull = np.array([*com[k, :2], settings.weights.com, 0.0])
            tasks.append(self.search.task(rows, guides[k], supports[k].rows, pull)._replace(limit=limit))
            away = {patch: away_from_ends(there, k) for patch, there in places.items()}
            need = np.minimum(self.nearness.need(k / last, ends, passing, away), most)
            least = np.minimum(APART, need - 1e-5)  # no more than the ends have
            content = np.minimum(need, self.nearness.content)
            wishes.append(Wish(need, content - GRAZE * grazing, least - GRAZE * grazing, there[k]))

        def settle(k: int, start: np.ndarray, guide: np.ndarray) -> Steps[tuple[np.ndarray, float]]:
            found, amount = yield from self.apart.settle(tasks[k]._replace(guide=guide), start, wishes[k], watched)
            if amount > FIT and self._joints.hold_up(tasks[k].limit, found):
                tasks[k] = tasks[k]._replace(limit=self._joints.least)
                other, less = yield from self.apart.settle(tasks[k]._replace(guide=guide), found, wishes[k], watched)
                found, amount = (other, less) if less < amount else (found, amount)
            return found, amount

        def place(k: int, step: np.ndarray) -> Steps[None]:
            """Take the posture that is off its guide by ``step`` (nv,) if it will do, else one near the guide."""
            q[k] = robot.integrate(guides[k], step, 1.0)
            missed[k] = 0.0
            if not self.apart.fits(tasks[k], q[k], wishes[k], watched):
                q[k], missed[k] = yield from settle(k, q[k], guides[k])
            off[k] = robot.difference(guides[k], q[k])
            yield

        before = 0
        for here in [*range(STRIDE, last, STRIDE), last]:
            if here < last:
                yield from place(here, off[before])
            for k in range(before + 1, here):
                part = (k - before) / (here - before)
                yield from place(k, (1.0 - part) * off[before] + part * off[here])
            before = here
        # what was not found from the one side may be from the other
        for side, order in ((1, range(last - 1, 0, -1)), (-1, range(1, last))):
            for k in (k for k in order if missed[k] > 0.0):
                other, amount = yield from settle(k, robot.integrate(guides[k], off[k + side], 1.0), guides[k])
                if amount < missed[k]:
                    q[k], missed[k], off[k] = other, amount, robot.difference(guides[k], other)
        for _ in range(SWEEPS if missed.max() <= WORTH else 0):
            off, settled = smooth_offsets(robot, guides, q, *SMOOTHINGS[0]), 0
            for k in range(1, last):
                better, amount = robot.integrate(guides[k], off[k], 1.0), 0.0
                if not self.apart.fits(tasks[k], better, wishes[k], watched):
                    better, amount = yield from settle(k, q[k], better)
                    settled += 1
                yield
                if amount <= max(missed[k], SLIP):
                    q[k], missed[k] = better, amount
            if not settled:
                break
        if missed.max() > BARRED:  # no smoothing makes it free
            k = int(np.argmax(missed))
            worst = Worst(k / last, self.nearness.short(q[k], wishes[k], watched).bodies)
            return Knots(q, float(missed.max()), float(missed.max()), worst)
        smooth, short, worst, strayed = q, np.inf, NOWHERE, 0.0
        content = max(missed.max(), SLIP)
        for passes, ease in SMOOTHINGS:
            off = smooth_offsets(robot, guides, q, passes, ease)
            drawn = np.array([robot.integrate(guide, step, 1.0) for guide, step in zip(guides, off, strict=True)])
            for around in (False, True):
                softer = drawn.copy()
                for k in range(1, last):  # smoothing has drawn it off its contacts and paths, and onto what is near
                    back = tasks[k]._replace(guide=drawn[k])
                    if around and not self.apart.fits(back, drawn[k], wishes[k], watched):
                        softer[k], _ = yield from self.apart.settle(back, drawn[k], wishes[k], watched)
                    elif not around:
                        softer[k] = self.search.run(back, drawn[k], STEPS, TOLERANCE, STEP_TOLERANCE, TRUST).q
                    yield
                draw_inside(robot, softer)
                amount, where, stray = yield from self._missed(
                    softer, tasks, led, moving, wishes, watched, short, objects
                )
                if amount < short:
                    smooth, short, worst, strayed = softer, amount, where, stray
                if short <= content:
                    break
            if short <= content:
                break
        if missed.max() > short:
            k = int(np.argmax(missed))
            worst = Worst(k / last, self.nearness.short(q[k], wishes[k], watched).bodies)
        return Knots(smooth, float(max(missed.max(), short)), float(missed.max()), worst, strayed)

    def lifted(
        self, guide: np.ndarray, contacts: Sequence[Contact], patch: str, place: np.ndarray, lift: np.ndarray
    ) -> Steps[np.ndarray]:
        """Return a posture near a guide in which a patch is off a place by ``lift`` (3,), or by a part of it.

        Only how far it is off counts: straight up may be no way at all, as for a knee below its hip.

        Parameters
        ----------
        guide : (nq,) posture.
        contacts : what stays in place.
        place : (3,) what the patch leaves.
        """
        com, (body, offset) = self.robot.com(guide), self.robot.frame(patch)
        held = [contact_rows(self.robot, self.environment, contact, None) for contact in contacts]
        watched = self.nearness.watched(contacts)
        content = self.nearness.content
        need = np.where(self.nearness.own, np.minimum(self.nearness.wanted, self.nearness.distances(guide)), content)
        wish = Wish(need, np.minimum(need, content), np.full(len(need), APART))
        height = float(np.linalg.norm(lift))
        normal = np.concatenate([lift / height, np.zeros(3)])[None]
        best, least = guide, np.inf
        for part in LIFTS:
            frame = np.concatenate([offset, np.eye(3).ravel(), place + part * lift])
            rows = [*held, ContactRows(PLACE_ROWS, body, frame, normal, np.zeros((0, 10)))]
            pull = np.array([*com[:2], self.settings.weights.com, 0.0])
            task = self.search.task(rows, guide, self.support(contacts, com).rows, pull)
            q, missed = yield from self.apart.settle(task, guide, wish, watched)
            if missed < least:
                best, least = q, missed
            if missed <= FIT:
                break
        return best

    def _missed(
        self,
        q: np.ndarray,
        tasks: Sequence[Task],
        led: Sequence[Led],
        moving: bool,
        wishes: Sequence[Wish],
        watched: np.ndarray,
        most: float,
        objects: ObjectPoses | None = None,
    ) -> Steps[tuple[float, Worst, float]]:
        """Return what the curve through knots (k, nq) misses of what is asked, where, and how far led patches stray.

        Contacts, joint limits and led patches are looked at in the knots and halfway between them; distances as closely
        as their rates ask for. Each is counted so that what is too much of it is
        as much as what a motion may miss its distances by.

        Parameters
        ----------
        moving : whether contacts are elsewhere from knot to knot: then they are looked at in the knots only.
        most : where as much is missed, the rest does not matter.
        """
        last, limits, worst, where, strayed = len(q) - 1, self.robot.limits, 0.0, NOWHERE, 0.0
        curve = PostureSpline(np.arange(last + 1.0), q)
        width, looked = FINEST // 2, set(range(0, FINEST * last + 1, FINEST // 2))
        here = looked - {0, FINEST * last}
        while here:
            doubtful: set[int] = set()
            for i in sorted(here):
                k, part = divmod(i, FINEST)
                sample = curve.sample(i / FINEST)
                q_here, wish = (q[k], wishes[k]) if part == 0 else (sample.q, wishes[k])
                if part:
                    wish = wish._replace(content=np.minimum(wish.content, wishes[k + 1].content))
                    wish = wish if objects is None else wish._replace(objects=objects(i / (FINEST * last)))
                short = self.nearness.short(q_here, wish, watched, 0.5 * width / FINEST * sample.v)
                amount, bodies = (short.amount, short.bodies) if short.amount > 0.0 else (0.0, ())
                beyond = 10.0 * float(np.maximum(limits.lower - q_here[7:], q_here[7:] - limits.upper).max(initial=0.0))
                if part == 0 or (part == FINEST // 2 and not moving):
                    beyond = max(beyond, self._off(tasks[k], q_here, led))
                if part in (0, FINEST // 2):
                    strayed = max(strayed, self._strayed(q_here, led, k, part))
                if beyond > amount:
                    amount, bodies = beyond, ()
                if amount > worst:
                    worst, where = amount, Worst(i / (FINEST * last), bodies)
                    if worst >= most:
                        return worst, where, strayed
                if width > 1 and short.around > SLIP:
                    doubtful |= {i - width // 2, i + width // 2}
                yield
            here, width = doubtful - looked, width // 2
            looked |= here
        return worst, where, strayed

    def _strayed(self, q: np.ndarray, led: Sequence[Led], k: int, part: int) -> float:
        """Return how far led patches are from their paths (m), in knot k or halfway from there to the next."""
        far = 0.0
        for lead in led:
            places = lead.halves if part else lead.places
            if places is not None:
                far = max(far, float(np.linalg.norm(self.robot.frame_pose(q, lead.patch)[:3, 3] - places[k])))
        return far

    def _off(self, task: Task, q: np.ndarray, led: Sequence[Led]) -> float:
        """Return by how much a posture is off the closed contacts of its task, which stand before led patches."""
        rows = self.search.run(task, q, 0, TOLERANCE, STEP_TOLERANCE)
        closed = len(task.contact) - len(led)
        first, bounds = rows.first_cell, task.cell[:, 0] < closed  # those of balls, which say where they roll to
        held = rows.missed[: len(rows.contact_of)][rows.contact_of < closed]
        rolled = rows.missed[first : first + len(bounds)][bounds]
        return KEPT_COUNTS * float((np.concatenate([held, rolled]) - KEPT).max(initial=0.0))

    def room(self, contacts: Sequence[Contact], com: np.ndarray) -> float:
        """Return how far inside the region that contacts balance a centre of mass (3,) is (m); negative outside."""
        region = self.support(contacts, com).region
        return -np.inf if region.empty else float(region.depth(com))

    def support(self, contacts: Sequence[Contact], com: np.ndarray) -> Support:
        """Return where contacts balance a centre of mass of about the height of ``com`` (3,)."""
        share = self.settings.friction_share
        return self._regions.support([contact.spared(share) for contact in contacts], com)

    def _led_rows(self, led: Led, k: int) -> ContactRows:
        """Return the rows that hold the position of the led patch, and near its ends the orientation that it has there.

        Close to a support a patch that turned would cut into it.
        """
        body, offset = self.robot.frame(led.patch)
        near = [distance < self.robot.scale.leg * TURNING for distance in led.away(k)]
        R = led.turns[1] if near[1] else led.turns[0]
        frame = np.concatenate([offset, np.asarray(R).ravel(), led.places[k]])
        if any(near) and not self.robot.patches[led.patch].radius:
            return ContactRows(POSE_ROWS, body, frame, np.eye(6), np.zeros((0, 10)))
        return ContactRows(PLACE_ROWS, body, frame, np.eye(6)[:3], np.zeros((0, 10)))


def _at_knots(contacts: Sequence[Contact] | Sequence[Sequence[Contact]], count: int) -> list[tuple[Contact, ...]]:
    """Return the contacts in place at each knot."""
    alike = [contact for contact in contacts if isinstance(contact, Contact)]
    moving = [tuple(here) for here in contacts if not isinstance(here, Contact)]
    return moving or [tuple(alike)] * count
