"""Pushing plans: the robot pushes an object along a line to its goal; no sequence is given.

The hands touch the face of the object opposite to the push direction. Strokes of the arms move the object as far as
postures allow; after each stroke except the last the feet follow by its length. The sliding object of mass m, with
friction mu, resists with ``F = mu m g`` at the height h of the hands. This moves the centre of pressure of the robot of
mass M back by ``F h / (M g)``. So the centre of mass is placed ahead of the feet by half of that: during a stroke the
centre of pressure is as far behind the middle of the feet as it is ahead of it between strokes.
"""

from collections.abc import Iterator

import numpy as np

from mcplan.errors import PlanningFailed
from mcplan.planning.plan import Plan
from mcplan.planning.posture.freedom import Freedom
from mcplan.planning.sequence import StanceSequence
from mcplan.robot.pose import quat_from_rotation, same_pose
from mcplan.scenario.scenario import Scenario
from mcplan.scenario.schema import GoalItem, StanceItem
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment, FreeObject, Surface
from mcplan.scene.placement import make_contact
from mcplan.scene.resting import carrier, slides

MIN_FACE_COSINE = 0.94
"""Smallest cosine (20 degrees) between the push and the inward normal of the face that hands push on."""

MAX_STROKES = 8
"""Maximum number of equal strokes into which the remaining push is divided."""

ANYWHERE_ON_FACE = Freedom(x=np.inf, y=np.inf, yaw=np.inf)
"""Freedom of a hand: anywhere on the face."""


def moves_objects(scenario: Scenario) -> bool:
    """Whether the goal moves objects."""
    return any(list(_displaced(scenario.environment, item)) for item in scenario.goal)


def push(scenario: Scenario) -> Plan:
    """Return a plan that pushes the objects to their goal poses, one after the other.

    Raises
    ------
    PlanningFailed
        An object would have to be lifted or turned, no face or no hand is available to push it, or a posture is
        infeasible; the message has the reason.
    InputError
        An object lies on another one, at the start or at its goal, or carries one.
    """
    for number, item in enumerate(scenario.goal):
        others = sorted(item.model_fields_set - {"objects"})
        if others:
            raise PlanningFailed(
                f"goal[{number}] asks for {', '.join(others)}: a goal that moves objects is planned as pushes alone. "
                "Write the sequence under `stances:`"
            )
    sequence = StanceSequence(scenario)
    previous_push: _ObjectPush | None = None
    for item in scenario.goal:
        for thing, pose in list(_displaced(sequence.linker.environment, item)):
            if previous_push is not None:
                previous_push.release()
            previous_push = _ObjectPush(sequence, thing, pose)
            previous_push.execute()
    return sequence.plan()


def _displaced(environment: Environment, item: GoalItem) -> Iterator[tuple[FreeObject, np.ndarray]]:
    for thing in environment.objects:
        wanted = item.objects.get(thing.name)
        if wanted is not None and not same_pose(wanted.array, thing.pose, 1e-6):
            yield thing, wanted.array


class _ObjectPush:
    """The push of one object from its current pose along a line to a pose (7,)."""

    def __init__(self, sequence: StanceSequence, thing: FreeObject, pose: np.ndarray):
        self.sequence, self.thing = sequence, thing
        self.robot, scene = sequence.scenario.robot, sequence.linker.environment
        at_start, at_goal = (carrier(where, thing.name) for where in (scene, scene.placed({thing.name: pose})))
        if not slides(at_start.rest, at_goal.rest, scene):
            raise PlanningFailed(
                f"goal: {thing.name} cannot slide to its goal: a slide is straight, without rotation, and always on "
                "the first support; the planner pushes objects along a line and lifts none. Write the sequence that "
                "moves it under `stances:`"
            )
        displacement = pose[:3] - thing.p
        self.length = float(np.linalg.norm(displacement))
        self.direction = displacement / self.length
        self.face = self._face()
        self.feet = sequence.stances[-1].contacts

    def execute(self) -> None:
        """Add the stances of the push to the sequence."""
        hands = self._hands()
        for hand in hands:
            self._add_items([StanceItem.model_validate({"add": hand.to_data()})], f"{hand.patch} on {self.face.name}")
        height = float(np.mean([(hand.p - self.feet[0].p) @ self.feet[0].normal for hand in hands]))
        self.lead = 0.5 * self.thing.friction * self.thing.mass * height / self.robot.mass
        object_moved, feet_moved = 0.0, 0.0
        self._add_items([self._lean_item(feet_moved)], "leaning ahead of the feet")
        while object_moved < self.length - 1e-9:
            failure = ""
            for strokes in range(1, MAX_STROKES + 1):
                stroke = (self.length - object_moved) / strokes
                items = [self._stroke_item(object_moved + stroke, feet_moved)]
                if strokes > 1:
                    items += [*self._follow_steps(feet_moved + stroke), self._lean_item(feet_moved + stroke)]
                problem = self.sequence.try_items(items)
                if not problem:
                    break
                failure = failure or problem
            else:
                raise PlanningFailed(
                    f"goal: no stroke moves {self.thing.name} on from {object_moved:.2f} of "
                    f"{self.length:.2f} m: {failure}"
                )
            object_moved, feet_moved = object_moved + stroke, feet_moved + (stroke if strokes > 1 else 0.0)

    def release(self) -> None:
        """Add the stances that take the hands off the object."""
        feet = {contact.patch for contact in self.feet}
        for patch in self.sequence.stances[-1].patches:
            if patch not in feet:
                self._add_items([StanceItem.model_validate({"remove": patch})], f"{patch} off {self.face.name}")

    def _add_items(self, items: list[StanceItem], description: str) -> None:
        problem = self.sequence.try_items(items)
        if problem:
            raise PlanningFailed(f"goal: {self.thing.name} cannot be pushed: {description}: {problem}")

    def _face(self) -> Surface:
        """Return the surface of the object whose inward normal is closest to the push direction."""
        facing = [(float(-s.normal @ self.direction), s) for s in self.thing.surfaces]
        best = max(facing, key=lambda item: item[0], default=None)
        if best is None or best[0] < MIN_FACE_COSINE:
            raise PlanningFailed(
                f"goal: {self.thing.name} has no surface that faces against the push "
                f"({', '.join(f'{x:.2f}' for x in self.direction)}), on which hands could push; its surfaces: "
                f"{', '.join(s.name for s in self.thing.surfaces) or 'none'}. Give it such a surface, or write the "
                "sequence that moves it under `stances:`"
            )
        return best[1]

    def _hands(self) -> list[Contact]:
        """Return contacts of the free limbs with the face, at coordinates that the posture generator chooses."""
        scenario, linker = self.sequence.scenario, self.sequence.linker
        allowed = scenario.planner.patches or tuple(self.robot.patches)
        standing_limbs = {self.robot.patches[contact.patch].limb for contact in self.feet}
        required = [
            name for group in scenario.planner.require for name in ([group] if isinstance(group, str) else group)
        ]
        by_limb: dict[str, str] = {}
        for name in [*required, *(name for name in self.robot.patches if name in allowed)]:
            patch = self.robot.patches[name]
            if patch.limb not in standing_limbs and patch.kind == "surface" and len(patch.polygon) > 2:
                by_limb.setdefault(patch.limb, name)
        if not by_limb:
            raise PlanningFailed(f"goal: nothing is free to push {self.thing.name}: no flat patch of a limb in the air")
        q = self.sequence.stances[-1].q
        hands = []
        for name in by_limb.values():
            X = self.robot.frame_pose(q, name)
            x, y = self.face.R[:, :2].T @ (X[:3, 3] - self.face.p)
            middle, half = self._face_bounds(np.asarray(self.robot.patches[name].polygon, float))
            x, y = np.clip([x, y], middle - half, middle + half)
            data = {"patch": name, "surface": self.face.name, "x": float(x), "y": float(y), "yaw": 0.0}
            hands.append(self._contact(data))
        contacts = (*self.feet, *hands)
        result = linker.generator.generate(
            contacts, [contact.patch for contact in self.feet], linker.guide(self.feet, q), [q],
            free={hand.patch: ANYWHERE_ON_FACE for hand in hands},
        )  # fmt: skip
        if not result.found:
            names = " and ".join(by_limb.values())
            raise PlanningFailed(f"goal: {names} do not reach {self.face.name} from the start: {result.reason}")
        return list(result.contacts[len(self.feet) :])

    def _face_bounds(self, polygon: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the middle (2,) of the face, and the distances (2,) from it within which a patch of any yaw fits."""
        low, high = self.face.polygon.min(axis=0), self.face.polygon.max(axis=0)
        reach = float(np.linalg.norm(polygon, axis=1).max())
        return (low + high) / 2, np.maximum((high - low) / 2 - reach, 0.0)

    def _contact(self, data: dict[str, object]) -> Contact:
        return make_contact(self.robot, self.sequence.linker.environment, data)

    # -- items ------------------------------------------------------------------------------------------------------

    def _com(self, feet_moved: float) -> tuple[float, float]:
        """Return the centre of mass (2,) after the feet have moved by a distance (m)."""
        middle = np.concatenate([contact.world_points for contact in self.feet]).mean(axis=0)
        x, y, _ = middle + (feet_moved + self.lead) * self.direction
        return float(x), float(y)

    def _lean_item(self, feet_moved: float) -> StanceItem:
        return StanceItem.model_validate({"com": list(self._com(feet_moved))})

    def _stroke_item(self, object_moved: float, feet_moved: float) -> StanceItem:
        p = self.thing.p + object_moved * self.direction
        pose = {"xyz": p.tolist(), "quat_wxyz": quat_from_rotation(self.thing.R).tolist()}
        return StanceItem.model_validate({"objects": {self.thing.name: pose}, "com": list(self._com(feet_moved))})

    def _follow_steps(self, feet_moved: float) -> Iterator[StanceItem]:
        """Yield the items by which each foot steps forward, to a total distance ``feet_moved`` (m) from its start."""
        scene = self.sequence.scenario.environment
        for foot in self.feet:
            support = scene.support(foot.support)
            if not isinstance(support, Surface):
                raise PlanningFailed(
                    f"goal: {foot.patch} stands on {foot.support}; feet follow a push on surfaces only"
                )
            x, y = support.R[:, :2].T @ (feet_moved * self.direction)
            data = foot.to_data()
            data |= {"x": float(foot.coordinates["x"] + x), "y": float(foot.coordinates["y"] + y)}
            yield StanceItem.model_validate({"remove": foot.patch})
            yield StanceItem.model_validate({"add": data})
