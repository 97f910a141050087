"""Goal postures: the final posture of a goal item on given contacts, and initial guesses for it.

Contacts, base and centre of mass are constraints; the contacts have priority. Joints of a named posture are tracked as
closely as the contacts allow. The posture uses a share of each tolerance; the rest is left to the motion.

An initial guess (hint) is a reference posture placed at the goal or near the robot, by the field that the item has:

base            at the base position with its heading; without a heading, with the current one and that towards the goal
com             such that its centre of mass is at the goal
posture alone   on a grid around the robot, nearest first, at the height of each surface below the ground patches
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.planning.feasibility import Feasibility
from mcplan.planning.goal.item import describe_unmet, measure
from mcplan.planning.posture.freedom import Freedom
from mcplan.planning.posture.result import PostureResult
from mcplan.planning.posture.task import BaseTarget, PostureSettings, Weights
from mcplan.robot.pose import base_orientation, base_yaw, with_base
from mcplan.robot.robot import Robot
from mcplan.scenario.schema import GoalItem
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment, Surface
from mcplan.scene.polygon import half_planes

POSTURE_WEIGHTS = Weights(base_position=0.05, base_orientation=0.1, joints=10.0, com=0.5)
"""Weights if the goal specifies joints: the base follows the joints."""

TOLERANCE_SHARES = (0.5, 0.9)
"""Shares of the base tolerances that the posture uses, tried in turn; the rest is for the motion."""

POSTURE_FIELDS = ("base", "posture", "com")
"""Fields of an item that the posture determines; the stance search determines the others."""

MAX_GUESS_DISTANCE_M = 1.5
"""Largest distance from the robot of initial guesses for a posture without a position."""

GUESS_GRID_M = 0.1
"""Grid spacing of these initial guesses."""

MIN_HEADING_DISTANCE_M = 0.5
"""Smallest distance of the goal at which the heading towards it is also tried."""

MIN_LEVEL_DIFFERENCE_M = 0.02
"""Surfaces whose heights differ by less than this count as one level."""

MIN_GROUND_NORMAL_Z = 0.5
"""Smallest vertical component of the normal of a surface to stand on."""

SIDESTEPS_M = tuple(sorted(product((0.0, 0.1, -0.1), repeat=2), key=lambda step: abs(step[0]) + abs(step[1])))
"""Horizontal offsets of the base for its initial guesses, nearest first."""


@dataclass(frozen=True)
class GoalPosture:
    """Final posture of a goal item, or the closest posture if there is none.

    Attributes
    ----------
    result : result of the posture generator, whose contacts have no free coordinates.
    missing : description of the unmet parts of the item; empty if the posture is found.
    """

    result: PostureResult
    missing: str

    @property
    def found(self) -> bool:
        """Whether the posture exists and meets the item."""
        return not self.missing


class GoalPostureSolver:
    """Finds goal postures in one scene.

    Parameters
    ----------
    feasibility : checks of the scene.
    reference : (nq,) start posture; it attracts the joints that the goal posture does not name.
    """

    def __init__(self, feasibility: Feasibility, reference: np.ndarray):
        self.feasibility, self.reference = feasibility, reference
        self._posture_generator = feasibility.generator(PostureSettings(weights=POSTURE_WEIGHTS))

    def constrains(self, item: GoalItem) -> bool:
        """Whether an item specifies a base, joints or a centre of mass."""
        return item.base is not None or item.com is not None or item.posture is not None

    def guide(self, item: GoalItem, contacts: Sequence[Contact], q: np.ndarray) -> np.ndarray:
        """Return the reference (nq,) of the posture task."""
        guide = self.feasibility.references.guide(contacts, q).copy()
        if item.posture is not None:
            guide[7:] = item.posture.apply(self.feasibility.robot, self.reference)[7:]
        if item.base is not None:
            guide[:3] = item.base.xyz
        return guide

    def find(
        self,
        item: GoalItem,
        contacts: Sequence[Contact],
        q: np.ndarray,
        hint: np.ndarray | None = None,
        free: dict[str, Freedom] | None = None,
        held: bool = True,
    ) -> GoalPosture:
        """Return the goal posture of an item on contacts.

        Parameters
        ----------
        q : (nq,) previous posture.
        hint : (nq,) initial guess; by default the result of `guide`.
        free : free coordinates of the contacts, by patch.
        held : whether the contacts are closed at ``q``; then a motion on them must lead from ``q`` to the goal posture.
        """
        contacts = tuple(sorted(contacts, key=lambda contact: contact.patch))
        guide = self.guide(item, contacts, q) if hint is None else hint
        best: GoalPosture | None = None
        for share in TOLERANCE_SHARES:
            end = self._generate(item, contacts, guide, [q, guide] if held else [guide, q], free, share)
            if held and end.found:
                end = self._reachable_posture(item, contacts, q, end, share)
            if best is None or (end.found and not best.found):
                best = end
            if end.found or item.base is None:
                break
        assert best is not None
        return self._with_more_load(item, q, best) if held and best.found and not self.constrains(item) else best

    def _with_more_load(self, item: GoalItem, q: np.ndarray, end: GoalPosture) -> GoalPosture:
        """Return a goal posture with more force on the contacts that the item lists, if some carry almost none.

        The centre of mass is attracted to these contacts, since an unloaded contact opens easily.
        """
        listed = {spec.patch for spec in item.contacts}
        min_load = self.feasibility.min_load
        unloaded = [c for c in end.result.contacts if c.patch in listed and _load(c, end.result) <= min_load]
        if not unloaded:
            return end
        posture_q, unloaded_centre = end.result.q, np.mean([contact.p[:2] for contact in unloaded], axis=0)
        self.feasibility.budget.calls += 1
        other = self.feasibility.postures.generator.generate(
            end.result.contacts, None, posture_q, [posture_q], hint=unloaded_centre
        )
        if not other.found or not self.feasibility.postures.continuity.reaches(end.result.contacts, q, other.q):
            return end
        old_load, new_load = (min(_load(contact, result) for contact in unloaded) for result in (end.result, other))
        return self._with_measures(item, other) if new_load > old_load else end

    def _generate(self, item, contacts, guide, starts, free, share: float) -> GoalPosture:
        base = None
        if item.base is not None:
            R = None if item.base.rpy is None else Rotation.from_euler("xyz", item.base.rpy).as_matrix()
            angle = None if R is None else share * item.base.angle_tolerance
            base = BaseTarget(np.array(item.base.xyz), share * item.base.tolerance, R, angle)
        com = None if item.com is None else np.array(item.com)
        generator = self.feasibility.postures.generator if item.posture is None else self._posture_generator
        self.feasibility.budget.calls += 1
        result = generator.generate(contacts, None, guide, starts, free, com=com, base=base)
        return self._with_measures(item, result)

    def _with_measures(self, item: GoalItem, result: PostureResult) -> GoalPosture:
        if not result.found:
            return GoalPosture(result, result.reason)
        measures = measure(item, self.feasibility.robot, result.contacts, result.q, {})
        return GoalPosture(result, describe_unmet([one for one in measures if one.field in POSTURE_FIELDS]))

    def _reachable_posture(self, item, contacts, q: np.ndarray, end: GoalPosture, share: float) -> GoalPosture:
        """Return the goal posture, or a similar one that is reachable from ``q``, or a result with the failure."""
        continuity = self.feasibility.postures.continuity
        if continuity.reaches(contacts, q, end.result.q):
            return end
        arrival = continuity.follow(contacts, q, end.result.q)
        retry = self._generate(item, contacts, end.result.q, [arrival], None, share)
        if retry.found and continuity.reaches(contacts, q, retry.result.q):
            return retry
        reason = "the robot cannot reach the goal posture with all contacts closed"
        return GoalPosture(end.result, reason)


def _load(contact: Contact, result: PostureResult) -> float:
    """Return the magnitude of the force (N) of a contact in a feasible posture."""
    assert result.forces is not None
    return float(np.linalg.norm(result.forces.wrenches[contact.patch][:3]))


def posture_hints(
    item: GoalItem, robot: Robot, environment: Environment, reference: np.ndarray, ground: Sequence[str], q: np.ndarray
) -> Iterator[np.ndarray]:
    """Yield initial guesses (nq,) for the goal posture, the likeliest first.

    Parameters
    ----------
    reference : (nq,) posture to place.
    ground : patches that the reference stands on.
    q : (nq,) current posture.
    """
    heading_now = base_yaw(q)
    if item.base is not None:
        xyz = np.array(item.base.xyz)
        if item.base.rpy is not None:
            R = Rotation.from_euler("xyz", item.base.rpy)
            if item.posture is not None:
                yield with_base(reference, xyz, R)
                return
            headings = [base_yaw(with_base(reference, xyz, R))]
        else:
            headings = _headings(heading_now, xyz[:2] - q[:2], robot.scale.leg)
        for offset in robot.scale.leg * np.array(SIDESTEPS_M):
            for heading in headings:
                yield place_posture(reference, xyz + np.array([*offset, 0.0]), heading)
    elif item.com is not None:
        com = np.array(item.com)
        for heading in _headings(heading_now, com[:2] - robot.com(q)[:2], robot.scale.leg):
            placed = place_posture(reference, q[:3], heading)
            placed[: len(com)] += com - robot.com(placed)[: len(com)]
            yield from _on_each_level(robot, environment, placed, ground)
    else:
        size = robot.scale.leg
        count = round(MAX_GUESS_DISTANCE_M / GUESS_GRID_M)
        axis = size * GUESS_GRID_M * np.arange(-count, count + 1)
        steps = sorted(product(axis, axis), key=lambda step: (np.hypot(*step).round(6), step))
        to_world = np.array([[np.cos(heading_now), -np.sin(heading_now)], [np.sin(heading_now), np.cos(heading_now)]])
        for step in steps:
            if np.hypot(*step) > size * MAX_GUESS_DISTANCE_M + 1e-9:
                break
            for heading in (heading_now, heading_now + np.pi / 2, heading_now - np.pi / 2, heading_now + np.pi):
                xyz = np.append(q[:2] + to_world @ step, q[2])
                yield from _on_each_level(robot, environment, place_posture(reference, xyz, heading), ground)


def place_posture(reference: np.ndarray, xyz: np.ndarray, heading: float) -> np.ndarray:
    """Return a posture with its base at a position (3,), turned about the vertical to a heading (rad)."""
    turn = Rotation.from_euler("z", heading - base_yaw(reference))
    return with_base(reference, xyz, turn * base_orientation(reference))


def _headings(current: float, ahead: np.ndarray, size: float) -> list[float]:
    """Return the headings to try: the current one, and if the goal is far enough, along ``ahead`` (2,) towards it."""
    if np.hypot(*ahead) < size * MIN_HEADING_DISTANCE_M:
        return [current]
    return [current, float(np.arctan2(ahead[1], ahead[0]))]


def _on_each_level(
    robot: Robot, environment: Environment, q: np.ndarray, ground: Sequence[str]
) -> Iterator[np.ndarray]:
    """Yield the posture moved vertically such that a ground patch is on each level of the surfaces, nearest first."""
    positions = np.array([robot.frame_pose(q, patch)[:3, 3] for patch in ground]).reshape(-1, 3)
    if not len(positions):
        yield q
        return
    heights_above = np.concatenate(
        [np.zeros(0), *(_height_above(surface, positions) for surface in environment.surfaces)]
    )
    levels: list[float] = []
    for height in sorted(map(float, heights_above[np.isfinite(heights_above)]), key=abs):
        if all(abs(height - other) > robot.scale.leg * MIN_LEVEL_DIFFERENCE_M for other in levels):
            levels.append(height)
    for level in levels:
        placed = q.copy()
        placed[2] -= level
        yield placed


def _height_above(surface: Surface, points: np.ndarray) -> np.ndarray:
    """Return the height (m) of points (k, 3) above a surface, negative below it; NaN beyond its border."""
    if surface.normal[2] < MIN_GROUND_NORMAL_Z:
        return np.full(len(points), np.nan)
    heights = (points - surface.p) @ surface.normal / surface.normal[2]
    local = (points - np.outer(heights, [0.0, 0.0, 1.0]) - surface.p) @ surface.R[:, :2]
    A, b = half_planes(surface.polygon)
    return np.where(np.all(local @ A.T <= b + 1e-9, axis=1), heights, np.nan)
