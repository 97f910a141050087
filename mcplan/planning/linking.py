"""Linking postures between two stances of a hand-written sequence, with contact forces and margins."""

from collections.abc import Callable, Sequence

import numpy as np

from mcplan.collision.model import CollisionModel
from mcplan.errors import PlanningFailed
from mcplan.planning.plan import Change, PlannedStance
from mcplan.planning.posture.generator import PostureGenerator, contact_at
from mcplan.planning.posture.limbs import swing_limb_rows
from mcplan.planning.posture.reference import comfortable_com, guide_posture, perturbed_starts
from mcplan.planning.posture.result import PostureResult
from mcplan.planning.posture.task import BaseTarget, PostureSettings, Weights
from mcplan.robot.pose import base_orientation
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.settings.control import ControlSettings
from mcplan.statics.equilibrium import margins

MAX_BASE_MOVE_M = 0.05
"""Largest correction of the base at the start; if more is needed, base, posture and contacts contradict each other."""

MIN_REPORTED_CHANGE = 0.01
"""Changes of the base or a joint of the start are reported if they are larger than this (m, rad)."""

JOINT_MARGINS = (0.05, 0.02)
"""Distances to the joint limits (rad or m), tried in turn: motions between postures need some margin."""

LINK_SETTINGS = tuple(PostureSettings(joint_margin=margin, weights=Weights(com=100.0)) for margin in JOINT_MARGINS)
"""Settings of linking postures: the centre of mass has priority over similarity to the guide."""

START_SETTINGS = tuple(
    PostureSettings(joint_margin=margin, weights=Weights(base_position=200.0, base_orientation=100.0))
    for margin in JOINT_MARGINS
)
"""Settings of the start posture: the pose of the base has priority over the joints."""


class Linker:
    """Finds linking postures in one scene, with forces and margins.

    Parameters
    ----------
    robot, environment : the scene; `use_environment` replaces the environment.
    reference : (nq,) preferred posture; `start` replaces it by the posture of the start.
    control : settings of the controller that will execute the plan.

    Attributes
    ----------
    notices : changes of the start posture, as text.
    """

    def __init__(
        self,
        robot: Robot,
        environment: Environment,
        reference: np.ndarray,
        control: ControlSettings | None = None,
    ):
        self.robot, self.control = robot, control or ControlSettings()
        self.reference = np.array(reference, dtype=float)
        self.standing: tuple[str, ...] = ()
        self.notices: tuple[str, ...] = ()
        self.use_environment(environment)

    def use_environment(self, environment: Environment) -> None:
        """Replace the environment, by the same one with moved objects."""
        self.environment = environment
        self.collisions = CollisionModel(self.robot, environment)
        self._linking = self._generators(LINK_SETTINGS)

    @property
    def generator(self) -> PostureGenerator:
        """The generator that is tried first."""
        return self._linking[0]

    def _generators(self, settings: tuple[PostureSettings, ...]) -> list[PostureGenerator]:
        scaled = [option.of(self.robot.scale).within(self.control) for option in settings]
        return [PostureGenerator(self.robot, self.environment, option, self.collisions) for option in scaled]

    def start(self, contacts: tuple[Contact, ...]) -> PlannedStance:
        """Return the start stance: the reference posture, corrected for contacts and collisions; sets ``notices``.

        Raises
        ------
        PlanningFailed
            When there is no such posture (with the violated constraint), or if the base would have to move more than
            `MAX_BASE_MOVE_M`.
        """
        requested, max_base_move = self.reference, self.robot.scale.leg * MAX_BASE_MOVE_M
        generators, base = self._generators(START_SETTINGS), BaseTarget(requested[:3], max_base_move)
        hint = self._hint(generators[0], contacts, requested)
        result = self._first_feasible(
            generators, requested, lambda g, starts: g.generate(contacts, None, requested, starts, base=base, hint=hint)
        )
        if not result.found:
            unrestricted = generators[-1].generate(contacts, None, requested, hint=hint)
            if unrestricted.found:
                moved = float(np.linalg.norm(unrestricted.q[:3] - requested[:3]))
                raise PlanningFailed(
                    f"start: the base has to move {moved:.3f} m to put the contacts in place and keep bodies apart, "
                    f"{max_base_move:.3g} m are allowed; correct the base pose, the posture or the contacts"
                )
        planned = self._stance(Change.start(contacts), result, contacts, contacts)
        self.reference, self.standing = planned.q, planned.patches
        changes = describe_changes(self.robot, requested, planned.q)
        self.notices = (f"start: to put its contacts in place and keep bodies apart, {changes}",) if changes else ()
        return planned

    def guide(self, contacts: tuple[Contact, ...], q: np.ndarray, joints: np.ndarray | None = None) -> np.ndarray:
        """Return the guide for these contacts.

        Parameters
        ----------
        q : (nq,) previous posture; it is the guide if the reference stands on none of the contacts.
        joints : (n,) requested joint positions; by default those of the reference.
        """
        placed = guide_posture(self.robot, self.reference, self.standing, contacts)
        guide = q.copy() if placed is None else placed
        if joints is not None:
            guide[7:] = joints
        return guide

    def link(
        self,
        change: Change,
        before: PlannedStance,
        lifted: tuple[Contact, ...] = (),
        joints: np.ndarray | None = None,
        com: np.ndarray | None = None,
        held: tuple[Contact, ...] | None = None,
    ) -> PlannedStance:
        """Find the posture of a change.

        Parameters
        ----------
        before : previous stance.
        lifted : last contact of each patch that was lifted and is in the air.
        joints : (n,) requested joint positions, or None.
        com : (2,) or (3,) requested centre of mass (m), or None.
        held : contacts that carry load at the posture, if they differ from those of the change; else None.

        Raises
        ------
        PlanningFailed
            With the violated constraint, and the amount.
        """
        in_place, loaded = (held, held) if held else change.linking_contacts(before.contacts)
        guide = self.guide(in_place, before.q, joints)
        hint = None if com is not None else self._hint(self._linking[0], loaded, guide)
        lifted_rows = swing_limb_rows(self.robot, self.environment, guide, in_place, lifted)
        names = [contact.patch for contact in loaded]
        result = self._first_feasible(
            self._linking,
            guide,
            lambda g, starts: g.generate(
                in_place, names, guide, starts or [before.q], com=com, hint=hint, airborne=lifted_rows
            ),
        )
        if com is not None and result.stage == "region" and result.violations[0].kind == "equilibrium":
            carrying = " and ".join(names) or "no contacts"
            raise PlanningFailed(
                f"{change.title}: the centre of mass asked for, ({com[0]:.3f}, {com[1]:.3f}), lies "
                f"{result.violations[0].amount:.3f} m outside the region where {carrying} balance it"
            )
        return self._stance(change, result, in_place, loaded)

    def _first_feasible(
        self,
        generators: Sequence[PostureGenerator],
        guide: np.ndarray,
        generate: Callable[[PostureGenerator, Sequence[np.ndarray]], PostureResult],
    ) -> PostureResult:
        """Return the first feasible posture, else the last generator's result from the guide.

        ``generate`` takes a generator and further starts. After a collision these are perturbed guides, since otherwise
        an elbow on the wrong side of the chest would stay there.
        """
        result = _first_found(generators, lambda g: generate(g, ()))
        if result.stage != "collision":
            return result
        starts = perturbed_starts(self.robot, guide)
        retried = _first_found(generators, lambda g: generate(g, starts))
        return retried if retried.found else result

    def _hint(self, generator: PostureGenerator, loaded: Sequence[Contact], guide: np.ndarray) -> np.ndarray | None:
        """Return the centre of mass (2,) at which the loaded contacts balance the robot most comfortably."""
        com, names = self.robot.com(guide), [contact.patch for contact in loaded]
        support = generator.support(loaded, names, com)
        if support.violation is not None:
            return None
        loaded = [generator.settings.with_margin(contact) for contact in loaded]
        return comfortable_com(support.region, loaded, com, self.robot.mass, self.robot.scale)

    def _stance(
        self, change: Change, result: PostureResult, in_place: Sequence[Contact], loaded: Sequence[Contact]
    ) -> PlannedStance:
        """Return the stance of a posture; raise an error for an infeasible one."""
        if not result.found or result.forces is None:
            raise PlanningFailed(f"{change.title}: {result.reason}")
        robot, q, equilibrium = self.robot, result.q, result.forces
        values = margins(robot, q, [contact_at(robot, q, contact) for contact in loaded], equilibrium)
        near = self.collisions.smallest(q, contacts=in_place)
        values["clearance"] = None if near is None else float(near.distance)
        return PlannedStance(
            change.contacts, change.change, change.moved, q, equilibrium.wrenches, equilibrium.tau, values
        )


def _first_found(
    generators: Sequence[PostureGenerator], generate: Callable[[PostureGenerator], PostureResult]
) -> PostureResult:
    """Return the first feasible posture of these generators, else the result of the last one."""
    for generator in generators:
        result = generate(generator)
        if result.found or result.stage == "region":
            break
    return result


def describe_changes(robot: Robot, requested: np.ndarray, q: np.ndarray) -> str:
    """Return the differences between a posture and the requested one as text; empty if they are small."""
    changes = []
    base_move = float(np.linalg.norm(q[:3] - requested[:3]))
    before, after = (base_orientation(posture) for posture in (requested, q))
    base_turn = float((after * before.inv()).magnitude())
    if base_move > MIN_REPORTED_CHANGE:
        changes.append(f"the base moved {base_move:.3f} m")
    if base_turn > MIN_REPORTED_CHANGE:
        changes.append(f"the base turned {base_turn:.3f} rad")
    deviations = q[7:] - requested[7:]
    changed_joints = [int(j) for j in np.argsort(-np.abs(deviations)) if abs(deviations[j]) > MIN_REPORTED_CHANGE]
    texts = [f"{robot.joint_names[j]} by {deviations[j]:+.3f} {robot.joint_units[j]}" for j in changed_joints[:3]]
    if texts:
        suffix = f" and {len(changed_joints) - 3} more by less" if len(changed_joints) > 3 else ""
        changes.append("joints moved: " + ", ".join(texts) + suffix)
    return ", ".join(changes)
