"""Stance planner: from start and goal to a plan by guide, search, refinement, and motions between stances."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from mcplan.errors import PlanningFailed
from mcplan.planning.chain import blocked_segment, raise_if_blocked, with_transitions
from mcplan.planning.feasibility import Feasibility
from mcplan.planning.goal.ending import POSTURE_FIELDS, GoalPosture, GoalPostureSolver
from mcplan.planning.goal.item import Goal, describe_unmet, implied_contacts, measure
from mcplan.planning.goal.target import GoalTargets
from mcplan.planning.guide.guide_search import Guide, direct_path, find_guide
from mcplan.planning.guide.path import GuidePath
from mcplan.planning.linking import Linker
from mcplan.planning.plan import Plan, PlannedStance
from mcplan.planning.posture.limbs import nominal_offsets
from mcplan.planning.search.candidates import Candidates, Lattice, has_free_orientation, sample_candidates
from mcplan.planning.search.cost import CostWeights, Potential, SearchPass, SeededPerturbation, search_passes
from mcplan.planning.search.failure import (
    check_friction,
    check_occupied,
    check_reachable,
    check_surface_size,
    explain_blocked_path,
    explain_failure,
)
from mcplan.planning.search.finish import GoalLeg, finish_stances
from mcplan.planning.search.improve import (
    BlockedPath,
    blocked_motions,
    refine_postures,
    shorten,
    shorten_and_equalize,
)
from mcplan.planning.search.move_checks import satisfied_requirements
from mcplan.planning.search.moves import SearchSpace, contact_modes
from mcplan.planning.search.node import StanceNode
from mcplan.planning.search.stance_search import StanceSearch
from mcplan.planning.search.tree import SearchTree
from mcplan.robot.anatomy import limbs_of
from mcplan.robot.pose import heading_rotation
from mcplan.scenario.scenario import Scenario
from mcplan.scenario.schema import GoalItem
from mcplan.scene.contact import Contact
from mcplan.scene.placement import make_contact
from mcplan.util.progress import ProgressCallback, report_progress

MAX_PASSES_PER_CHOSEN_GOAL = 1
"""Maximum number of search passes per set of goal contacts that the planner chose, except for the last set."""

Offsets = dict[str, np.ndarray]
"""Nominal position (3,) of each patch in the base's heading frame."""


def find_plan(scenario: Scenario, seed: int = 0, progress: ProgressCallback | None = None) -> Plan:
    """Return a plan for a scenario with a goal.

    Parameters
    ----------
    seed : 0 for a search without random numbers; others perturb it, see `SeededPerturbation`.
    progress : called with the numbers of nodes and of posture generator calls, and the smallest potential so far.

    Raises
    ------
    PlanningFailed
        When no plan is found, with the reason; its ``tree`` has the record of the search.
    """
    tree = SearchTree()
    try:
        return _StancePlanner(scenario, seed, progress, tree).plan()
    except PlanningFailed as failure:
        failure.tree = tree
        raise


class SearchState(NamedTuple):
    """State between two goal items: contacts, posture (nq,), requirements met, and the last node of the path."""

    contacts: tuple[Contact, ...]
    q: np.ndarray
    requirements_met: frozenset[int] = frozenset()
    previous_node: StanceNode | None = None


class _StancePlanner:
    """State of one call of `find_plan`."""

    def __init__(self, scenario: Scenario, seed: int, progress: ProgressCallback | None, tree: SearchTree):
        self.scenario, self.settings, self.progress = scenario, scenario.planner, progress
        robot, environment, control = scenario.robot, scenario.environment, scenario.transition_settings
        self.robot, self.environment, self.size = robot, environment, robot.scale.leg
        self.tree, self.perturbation = tree, SeededPerturbation(seed)
        self._max_calls, self._checks_motions = scenario.planner.max_calls, False
        contacts = tuple(make_contact(robot, environment, contact.to_data()) for contact in scenario.start.contacts)
        self.linker = Linker(robot, environment, scenario.start.q, control)
        self.first = first = self.linker.start(contacts)
        self.feasibility = Feasibility(robot, environment, first.q, first.patches, control)
        for contact in first.contacts:
            hit = self.feasibility.occupancy.overlap(contact)
            if hit is not None:
                raise PlanningFailed(
                    f"start: at its place on {contact.support}, {contact.patch} is {hit[1]:.4f} m inside: {hit[0]} "
                    "overlap; move the start or the obstacle"
                )
        self.require = tuple(frozenset([group] if isinstance(group, str) else group) for group in self.settings.require)
        names = set(self.settings.patches or robot.patches) | set(first.patches)
        names |= {spec.patch for item in scenario.goal for spec in item.contacts}
        names = names.union(*self.require)
        self.patches = tuple(name for name in robot.patches if name in names)
        self.limbs = limbs_of(robot, first.q, self.patches)
        self.offsets = nominal_offsets(robot, first.q, contacts, self.limbs)
        self.solver = GoalPostureSolver(self.feasibility, first.q)
        self.targets = GoalTargets(self.solver, self.patches, first.contacts)

    def plan(self) -> Plan:
        """Return the plan.

        Motions are computed only for the final postures, since most paths are collision-free. If a motion is blocked,
        the search is repeated with its caches, and checks the motions of its paths.
        """
        self._check_objects()
        stances = self._stances(False)
        if stances is None or any(map(blocked_segment, stances[1:])):
            stances = self._stances(True)
        assert stances is not None
        raise_if_blocked(stances)
        self.tree.calls = self.feasibility.budget.calls
        return Plan(self.scenario, stances, self.tree, self.linker.notices)

    def _stances(self, check_motions: bool) -> tuple[PlannedStance, ...] | None:
        """Return stances with their motions, even if these are blocked; None if another search is needed.

        Parameters
        ----------
        check_motions : whether the search itself checks the motions of its paths.
        """
        feasibility, budget = self.feasibility, self.feasibility.budget
        requirements_met = satisfied_requirements(self.require, self.first.wrenches, feasibility.min_load)
        state, self._checks_motions = SearchState(self.first.contacts, self.first.q, requirements_met), check_motions
        feasibility.motions.clear_failures()
        self.tree.path.clear()
        legs: list[GoalLeg] = []
        for number, item in enumerate(self.scenario.goal):
            legs += self._path_to_item(number, item, state)
            last = legs[-1].nodes[-1]
            requirements_met = last.requirements_met | satisfied_requirements(
                self.require, legs[-1].wrenches, feasibility.min_load
            )
            state = SearchState(last.contacts, legs[-1].q, requirements_met, last)
            self.tree.path += [node.index for leg in legs for node in leg.nodes][len(self.tree.path) :]
        # the calls of the refinement do not count against the budget of the search
        budget.limit, searched = sys.maxsize, budget.calls
        report_progress("refining every stance")
        paths = refine_postures(feasibility, [leg.nodes for leg in legs])
        self._max_calls += budget.calls - searched
        if paths is None and not check_motions:
            return None
        if paths is not None:
            legs = [replace(leg, nodes=path) for leg, path in zip(legs, paths, strict=True)]
        stances = finish_stances(feasibility, self.solver, self.first, legs)
        self._check_requirements(stances)
        return with_transitions(self.scenario, stances, feasibility.motions.segments)

    @property
    def _calls_left(self) -> int:
        return max(self._max_calls - self.feasibility.budget.calls, 0)

    def _check_objects(self) -> None:
        """Raise an error for a goal that would move objects, since the search does not move them."""
        poses = {thing.name: thing.pose for thing in self.environment.objects}
        for number, item in enumerate(self.scenario.goal):
            measures = measure(item, self.robot, (), self.first.q, poses)
            if missing := describe_unmet([one for one in measures if one.field == "objects"]):
                raise PlanningFailed(
                    f"goal{self._label(number)}: {missing}; the planner moves the robot and no objects. Write the "
                    "sequence that moves them under `stances:` (items with `objects:`), or leave `objects` out"
                )

    def _check_requirements(self, stances: Sequence[PlannedStance]) -> None:
        """Raise an error if a required patch carries no load in the final forces."""
        min_load = self.feasibility.min_load
        carried = (satisfied_requirements(self.require, stance.wrenches, min_load) for stance in stances)
        for i in sorted(set(range(len(self.require))) - frozenset[int]().union(*carried)):
            names = " or ".join(sorted(self.require[i]))
            raise PlanningFailed(f"path found, but the contact force on {names} stays below {min_load:.3g} N")

    def _label(self, number: int) -> str:
        count = len(self.scenario.goal)
        return f" {number + 1} of {count}" if count > 1 else ""

    # -- one item -------------------------------------------------------------------------------------------------

    def _path_to_item(self, number: int, item: GoalItem, state: SearchState) -> list[GoalLeg]:
        """Return the path to an item: to the contacts that it lists, or to contacts that are chosen for it."""
        if item.contacts and item.base is None:
            if reason := check_occupied(self.feasibility, item):
                raise PlanningFailed(reason)
            return self._path_to_goal(Goal.of(item), number, state)
        if item.posture is not None and (unlisted := implied_contacts(item, self.robot) - set(self.patches)):
            raise PlanningFailed(
                f"goal{self._label(number)}: the posture {item.posture.name} stands on {', '.join(sorted(unlisted))}, "
                "which planner.patches does not list; add them there"
            )
        report_progress("finding postures that meet the goal")
        found = self.targets.find(item, state.contacts, state.q)
        self.tree.calls = self.feasibility.budget.calls
        if not found:
            fields = " and ".join(name for name in POSTURE_FIELDS if getattr(item, name) is not None)
            raise PlanningFailed(
                f"goal{self._label(number)}: no contacts are found on which the robot meets {fields}; at the nearest, "
                f"{self.targets.nearest}. What would have to change: the goal, its tolerance, or supports within reach"
            )
        goals = [target.goal for target in found]
        if item.base is None and item.com is None:  # also anywhere on the same supports
            result = found[0].end.result
            goals.insert(0, Goal.on_supports(item, self.robot, result.contacts, self.robot.com(result.q)))
        failure: PlanningFailed | None = None
        for goal in goals:
            try:
                return self._path_to_goal(
                    goal, number, state, None if goal is goals[-1] else MAX_PASSES_PER_CHOSEN_GOAL
                )
            except PlanningFailed as failed:
                failure = failure or failed
                if not self._calls_left:
                    break
        assert failure is not None
        raise failure

    def _path_to_goal(self, goal: Goal, number: int, state: SearchState, passes: int | None = None) -> list[GoalLeg]:
        """Return the path to the contacts of a goal at which a posture meets the item.

        Parameters
        ----------
        passes : maximum number of search passes; None: all.
        """
        is_last_item = number + 1 == len(self.scenario.goal)
        try:
            nodes = self._search_path(goal, number, state, is_last_item, passes)
        except PlanningFailed as failed:
            if not goal.suits_posture or not self._calls_left:
                raise
            try:
                return self._via_supports(goal, number, state, is_last_item, passes)
            except PlanningFailed:
                raise failed from None
        return [GoalLeg(goal, nodes, self._goal_posture(goal.item, nodes[-1]))]

    def _via_supports(
        self, goal: Goal, number: int, state: SearchState, is_last_item: bool, passes: int | None
    ) -> list[GoalLeg]:
        """Return the path to any contacts on the supports of a goal, and from there to contacts for its posture."""
        nodes = self._search_path(goal, number, state, False, passes, any_posture=True)
        node = nodes[-1]
        arrival = SearchState(node.contacts, node.q, node.requirements_met, node)
        nearby_goals = (target.goal for target in self.targets.find_near(goal.item, goal, node.contacts, node.q))
        failure: PlanningFailed | None = None
        for alternative in chain([goal], nearby_goals):
            try:
                further_nodes = self._search_path(alternative, number, arrival, is_last_item, passes)
            except PlanningFailed as failed:
                failure = failure or failed
                continue
            return [
                GoalLeg(goal, nodes),
                GoalLeg(alternative, further_nodes, self._goal_posture(goal.item, further_nodes[-1])),
            ]
        assert failure is not None
        raise failure

    def _goal_posture(self, item: GoalItem, node: StanceNode) -> GoalPosture:
        return self.solver.find(item, node.contacts, node.q)

    def _unmet(self, item: GoalItem, node: StanceNode) -> str:
        """Return why the item is not met on the contacts of a node, or not reachable from it; empty if it is met."""
        if not self.solver.constrains(item):
            return ""
        end = self._goal_posture(item, node)
        return end.missing or self.feasibility.motions.collision_message(node.contacts, node.q, end.result.q)

    # -- one search -----------------------------------------------------------------------------------------------

    def _search_path(
        self,
        goal: Goal,
        number: int,
        state: SearchState,
        is_last_item: bool,
        max_passes: int | None = None,
        any_posture: bool = False,
    ) -> list[StanceNode]:
        """Return the nodes from a stance to the contacts of a goal, found in at most ``max_passes`` search passes.

        Parameters
        ----------
        number : index of the goal item.
        is_last_item : whether all requirements have to be met at the end.
        any_posture : whether only the contacts have to meet the goal, not the posture.
        """
        passes = self._passes(goal)[:max_passes]
        offsets = self._offsets(goal)
        key_poses = self.settings.guide if state.previous_node is None else ()
        direct = direct_path(self.robot, self.environment, state.contacts, state.q, goal, offsets, key_poses)
        coarse_grid = passes[0].grid
        cache = {coarse_grid: (coarse_candidates := self._sample(goal, direct, offsets, state.contacts, coarse_grid))}
        self._check_goal(goal, number, state, coarse_candidates)
        guide, obstruction = Guide(direct)
        if not key_poses:
            guide, obstruction = find_guide(
                direct, self.feasibility, state.contacts, state.q, goal, self.limbs, self.offsets
            )
        if guide is not direct:
            cache = {}
        if obstruction is not None:
            passes = [one for one in passes if one.grid == coarse_grid]
        if max_passes is None:  # the last one may spend the rest of the budget
            passes[-1] = passes[-1]._replace(calls=max(passes[-1].calls, self._calls_left))

        closest: StanceNode | None = None
        blocked: BlockedPath | None = None
        modes = contact_modes(self.robot, self.limbs, self._patch_sets(goal))
        for search_pass in passes:
            sampled = cache.pop(search_pass.grid, None) or self._sample(
                goal, guide, offsets, state.contacts, search_pass.grid
            )
            target = {patch: sampled[patch].target(guide.length) for patch in goal.specs}
            potential = Potential(goal, self.limbs, target, CostWeights.of(self.size, search_pass), goal.suits_posture)
            space = SearchSpace(
                self.feasibility, self.limbs, modes, guide, offsets, sampled, potential, self.require, is_last_item
            )
            rejection_reason = None if any_posture else lambda node: self._unmet(goal.item, node)
            search = StanceSearch(space, self.tree, self.progress, rejection_reason, self.perturbation)
            path, blocked = self._collision_free_path(search, search_pass, state, blocked)
            if path is not None:
                return path
            if search.closest is not None and (closest is None or search.closest.h < closest.h):
                closest = search.closest
            if not self._calls_left:
                break
        self.tree.calls = self.feasibility.budget.calls
        where = f" (goal{self._label(number)})" if self._label(number) else ""
        if blocked is not None:
            failure = PlanningFailed(explain_blocked_path(blocked, where))
            failure.best = blocked.path
            raise failure
        raise PlanningFailed(explain_failure(self.robot, self.tree, closest, obstruction, where))

    def _passes(self, goal: Goal) -> list[SearchPass]:
        others_may_help = not goal.chosen and any(
            goal.specs.keys().isdisjoint(limb.patches) for limb in self.limbs.values()
        )
        many_limbs = len(goal.limbs(self.robot)) > 2
        step = self.settings.step * (1.0 if "step" in self.settings.model_fields_set else self.size)
        return search_passes(step, self.size, others_may_help, many_limbs)

    def _check_goal(self, goal: Goal, number: int, state: SearchState, sampled: dict[str, Candidates]) -> None:
        """Raise an error for a goal that no search can reach."""
        self.tree.calls = self.feasibility.budget.calls
        reason = check_reachable(self.robot, state.contacts, goal, sampled, self.limbs)
        if reason := reason or check_friction(self.environment, goal, sampled):
            raise PlanningFailed(reason)
        if not goal.chosen and (reason := self.targets.check_contacts(goal.item, state.q)):
            raise PlanningFailed(f"goal{self._label(number)}: {reason}")

    def _collision_free_path(
        self, search: StanceSearch, search_pass: SearchPass, state: SearchState, least_blocked: BlockedPath | None
    ) -> tuple[list[StanceNode] | None, BlockedPath | None]:
        """Return a path with collision-free motions and None; or None and the least blocked path.

        After a blocked motion the search continues without this motion.
        """
        root = search.root_node(state.contacts, state.q, state.requirements_met, state.previous_node)
        budget = search_pass._replace(calls=min(search_pass.calls, self._calls_left))
        for node in search.paths(root, budget, self.settings.max_nodes):
            found = node.path()
            # joined moves have longer swings; after one is blocked, further swings of its kind are checked as a whole
            for improve in (shorten_and_equalize, shorten, lambda _, path: path):
                report_progress("joining moves")
                path = improve(search, found)
                motions = list(blocked_motions(self.feasibility, path)) if self._checks_motions else []
                if not motions:
                    return path, None
                blocked_path = BlockedPath(path, motions)
                if least_blocked is None or blocked_path.rank < least_blocked.rank:
                    least_blocked = blocked_path
            search.block(one.node for one in motions)
            if not self._calls_left:
                break
        return None, least_blocked

    def _sample(self, goal: Goal, guide: GuidePath, offsets: Offsets, contacts, grid: float) -> dict[str, Candidates]:
        sampled, q, known_contacts = {}, self.first.q, (*self.first.contacts, *contacts)
        for patch in self.patches:
            R_start = heading_rotation(q).T @ self.robot.frame_pose(q, patch)[:3, :3]
            movable, shift = has_free_orientation(self.robot, patch), self.perturbation.shift()
            lattice = Lattice(self.robot, patch, guide, offsets[patch], R_start, grid, known_contacts, movable, shift)
            sampled[patch] = sample_candidates(lattice, self.environment, goal)
        if reason := check_surface_size(goal, sampled, q):
            raise PlanningFailed(reason)
        return sampled

    def _offsets(self, goal: Goal) -> Offsets:
        """Return the nominal positions of patches in the base's heading frame: those of the goal's posture, if any."""
        if not goal.suits_posture or goal.item.posture is None or goal.item.posture.name is None:
            return self.offsets
        q = self.robot.posture(goal.item.posture.name)
        R, offsets = heading_rotation(q), dict(self.offsets)
        for patch in goal.specs:
            place = R.T @ (self.robot.frame_pose(q, patch)[:3, 3] - q[:3])
            offsets[patch] = np.append(place[:2], offsets[patch][2])
        return offsets

    def _patch_sets(self, goal: Goal) -> list[frozenset[str]]:
        """Return the patches of the stances of start and goal."""
        listed = (frozenset(spec.patch for spec in item.contacts) for item in self.scenario.goal)
        return [frozenset(self.first.patches), goal.stance, *listed]
