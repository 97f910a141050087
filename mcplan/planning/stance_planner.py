"""From start and goal to a plan: guide, search, shortening, a look at every way, and the proof of all stances again."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np

from mcplan.errors import PlanningFailed
from mcplan.planning.chain import barred_segment, refuse_barred, with_transitions
from mcplan.planning.feasibility import Prover
from mcplan.planning.goal.ending import OF_THE_POSTURE, End, Ending
from mcplan.planning.goal.item import Goal, measure, stands_on, unmet
from mcplan.planning.goal.target import Targets
from mcplan.planning.guide.guide_search import Guide, direct_path, way_around
from mcplan.planning.guide.path import GuidePath
from mcplan.planning.linking import Linker
from mcplan.planning.plan import Plan, PlannedStance
from mcplan.planning.posture.limbs import nominal_offsets
from mcplan.planning.search.candidates import Candidates, candidates, loose
from mcplan.planning.search.failure import barred_way, explained
from mcplan.planning.search.finish import Segment, finish
from mcplan.planning.search.improve import Barred, barred_motions, even, refine, shorten
from mcplan.planning.search.moves import modes_of
from mcplan.planning.search.node import Node
from mcplan.planning.search.ordering import Reroll
from mcplan.planning.search.potential import TIE, Potential
from mcplan.planning.search.reachability import misfit, slippery, taken, unreachable
from mcplan.planning.search.space import Pass, SearchSpace, portfolio
from mcplan.planning.search.stance_search import StanceSearch, requirements_met
from mcplan.planning.search.tree import SearchTree
from mcplan.robot.anatomy import limbs_of
from mcplan.robot.pose import heading_rotation
from mcplan.scenario.scenario import Scenario
from mcplan.scenario.schema import GoalItem
from mcplan.scene.contact import Contact
from mcplan.scene.placement import make_contact
from mcplan.util.progress import ProgressCallback, report_progress

SHORT = 1
"""Passes of the portfolio that contacts found for an item may take before others are tried."""

STRIDE = 0.6
"""m: progress of one move of a foot, for a robot of the size of HRP-2."""


def find(scenario: Scenario, seed: int = 0, progress: ProgressCallback | None = None) -> Plan:
    """Return a plan for a scenario with a goal.

    Parameters
    ----------
    seed : 0 for the search as it is, which draws nothing; others perturb it, see `mcplan.planning.search.ordering`.
    progress : called with nodes, posture generator calls, and the least potential so far.

    Raises
    ------
    PlanningFailed
        With what stopped the search; its ``tree`` holds the record.
    """
    tree = SearchTree()
    try:
        return _Planning(scenario, seed, progress, tree).plan()
    except PlanningFailed as failure:
        failure.tree = tree
        raise


Offsets = dict[str, np.ndarray]


class Here(NamedTuple):
    """Where the robot is between two items: contacts, posture (nq,), requirements met so far, and the node."""

    contacts: tuple[Contact, ...]
    q: np.ndarray
    met: frozenset[int] = frozenset()
    last: Node | None = None


class _Planning:
    """The state of one planning."""

    def __init__(self, scenario: Scenario, seed: int, progress: ProgressCallback | None, tree: SearchTree):
        self.scenario, self.settings, self.progress = scenario, scenario.planner, progress
        self.robot, self.environment = scenario.robot, scenario.environment
        self.tree, self.reroll, self._most = tree, Reroll(seed), scenario.planner.max_calls
        contacts = tuple(
            make_contact(self.robot, self.environment, contact.to_data()) for contact in scenario.start.contacts
        )
        self.linker = Linker(self.robot, self.environment, scenario.start.q, scenario.transition_settings)
        self.first = first = self.linker.start(contacts)
        self.prover = Prover(self.robot, self.environment, first.q, first.patches, scenario.transition_settings)
        for contact in self.first.contacts:
            hit = self.prover.blocked(contact)
            if hit is not None:
                raise PlanningFailed(
                    f"start: at its place on {contact.support}, {contact.patch} is {hit[1]:.4f} m inside: {hit[0]} "
                    "overlap; move the start or what is in its way"
                )
        names = set(self.settings.patches or self.robot.patches) | set(self.first.patches)
        names |= {spec.patch for item in scenario.goal for spec in item.contacts}
        for group in self.settings.require:
            names |= {group} if isinstance(group, str) else set(group)
        self.patches = tuple(name for name in self.robot.patches if name in names)
        self.limbs = limbs_of(self.robot, self.first.q, self.patches)
        self.offsets = nominal_offsets(self.robot, self.first.q, contacts, self.limbs)
        self.ending = Ending(self.prover, self.first.q)
        self.targets = Targets(self.ending, self.patches, self.first.contacts)
        self.size = self.robot.scale.leg
        self.require = tuple(frozenset([group] if isinstance(group, str) else group) for group in self.settings.require)

    def plan(self) -> Plan:
        """Return the plan.

        Motions are found when postures are final: most paths are free. Where one is barred whatever the postures, the
        search begins anew, with all that it knows, and goes on until the motions of its path are free.
        """
        self._objects_stay()
        stances = self._moved(False)
        if stances is None or any(map(barred_segment, stances[1:])):
            stances = self._moved(True)
        assert stances is not None
        refuse_barred(stances)
        self.tree.calls = self.prover.calls
        return Plan(self.scenario, stances, self.tree, self.linker.notices)

    def _moved(self, looking: bool) -> tuple[PlannedStance, ...] | None:
        """Return stances with the motions that lead there, free or not; None where others are to be searched for.

        Parameters
        ----------
        looking : whether the search itself looks at the motions of its paths.
        """
        met = requirements_met(self.require, self.first.wrenches, self.prover.carries)
        here, self._looking = Here(self.first.contacts, self.first.q, met), looking
        self.prover.trust()
        self.tree.path.clear()
        segments: list[Segment] = []
        for number, item in enumerate(self.scenario.goal):
            segments += self._item(number, item, here)
            last = segments[-1].nodes[-1]
            met = last.met | requirements_met(self.require, segments[-1].wrenches, self.prover.carries)
            here = Here(last.contacts, segments[-1].q, met, last)
            self.tree.path += [node.index for segment in segments for node in segment.nodes][len(self.tree.path) :]
        self.prover.limit, searched = sys.maxsize, self.prover.calls
        report_progress("proving every stance")
        paths = refine(self.prover, [segment.nodes for segment in segments])
        self._most += self.prover.calls - searched
        if paths is None and not looking:
            return None
        paths = paths or [segment.nodes for segment in segments]
        segments = [replace(segment, nodes=path) for segment, path in zip(segments, paths, strict=True)]
        stances = finish(self.prover, self.ending, self.first, segments)
        self._require(stances)
        return with_transitions(self.scenario, stances, self.prover.segments)

    @property
    def _left(self) -> int:
        """Postures that the search may still ask for."""
        return max(self._most - self.prover.calls, 0)

    def _objects_stay(self) -> None:
        """Refuse a goal for objects that are not there already: no search moves them."""
        poses = {thing.name: thing.pose for thing in self.environment.objects}
        for number, item in enumerate(self.scenario.goal):
            measures = measure(item, self.robot, (), self.first.q, poses)
            if missing := unmet([one for one in measures if one.field == "objects"]):
                raise PlanningFailed(
                    f"goal{self._where(number)}: {missing}; the planner moves the robot and no objects. Write the "
                    "sequence that moves them under `stances:` (items with `objects:`), or leave `objects` out"
                )

    def _require(self, stances: Sequence[PlannedStance]) -> None:
        """Refuse a plan in whose final forces a required patch carries nothing."""
        least = self.prover.carries
        met = frozenset[int]().union(*(requirements_met(self.require, stance.wrenches, least) for stance in stances))
        for i in sorted(set(range(len(self.require))) - met):
            names = " or ".join(sorted(self.require[i]))
            raise PlanningFailed(f"a way was found, but {names} carries no more than {least:.3g} N in any stance")

    def _where(self, number: int) -> str:
        count = len(self.scenario.goal)
        return f" {number + 1} of {count}" if count > 1 else ""

    # -- one item -------------------------------------------------------------------------------------------------

    def _item(self, number: int, item: GoalItem, here: Here) -> list[Segment]:
        """Return the way to an item: by its own contacts, or by those that are found for it first."""
        if item.contacts and item.base is None:
            if reason := taken(self.prover, item):
                raise PlanningFailed(reason)
            return self._toward(Goal.of(item), number, here)
        if item.posture is not None and (left := stands_on(item, self.robot) - set(self.patches)):
            raise PlanningFailed(
                f"goal{self._where(number)}: the posture {item.posture.name} stands on {', '.join(sorted(left))}, "
                "which planner.patches does not list; add them there"
            )
        report_progress("finding postures that meet the goal")
        found = self.targets.chosen(item, here.contacts, here.q)
        self.tree.calls = self.prover.calls
        if not found:
            what = " and ".join(name for name in OF_THE_POSTURE if getattr(item, name) is not None)
            raise PlanningFailed(
                f"goal{self._where(number)}: no contacts are found on which the robot meets {what}; at the nearest, "
                f"{self.targets.nearest}. What would have to change: the goal, its tolerance, or supports within reach"
            )
        goals = [target.goal for target in found]
        if item.base is None and item.com is None:  # on the same supports, wherever that is easiest
            result = found[0].end.result
            rough = Goal.roughly(item, self.robot, result.contacts, self.robot.com(result.q))
            goals.insert(0, rough)
        failure: PlanningFailed | None = None
        for goal in goals:
            try:
                return self._toward(goal, number, here, None if goal is goals[-1] else SHORT)
            except PlanningFailed as failed:
                failure = failure or failed
                if not self._left:
                    break
        assert failure is not None
        raise failure

    def _toward(self, goal: Goal, number: int, here: Here, passes: int | None = None) -> list[Segment]:
        """Return the way to the contacts of a goal, in places where its posture meets the item.

        Parameters
        ----------
        passes : of the portfolio, at most; None: all.
        """
        item = goal.item
        last = number + 1 == len(self.scenario.goal)
        try:
            nodes = self._reach(goal, number, here, last, partial(self._missing, item), passes)
        except PlanningFailed as failed:
            if not goal.posed or not self._left:
                raise
            try:
                return self._rearranged(goal, number, here, last, passes)
            except PlanningFailed:
                raise failed from None
        return [Segment(goal, nodes, self._end(item, nodes[-1]))]

    def _rearranged(self, goal: Goal, number: int, here: Here, last: bool, passes: int | None) -> list[Segment]:
        """Return the way to the supports of a goal where that is easiest, and from there to places for its posture."""
        nodes = self._reach(goal, number, here, False, lambda node: "", passes)
        node = nodes[-1]
        there = Here(node.contacts, node.q, node.met, node)
        placed = (target.goal for target in self.targets.placed(goal.item, goal, node.contacts, node.q))
        failure: PlanningFailed | None = None
        for place in chain([goal], placed):
            try:
                more = self._reach(place, number, there, last, partial(self._missing, goal.item), passes)
            except PlanningFailed as failed:
                failure = failure or failed
                continue
            return [Segment(goal, nodes), Segment(place, more, self._end(goal.item, more[-1]))]
        assert failure is not None
        raise failure

    def _end(self, item: GoalItem, node: Node) -> End:
        return self.ending.find(item, node.contacts, node.q)

    def _missing(self, item: GoalItem, node: Node) -> str:
        """Say why the item is not met on the contacts of a node, or cannot be from there; empty if it is."""
        if not self.ending.asks(item):
            return ""
        end = self._end(item, node)
        return end.missing or self.prover.in_the_way(node.contacts, node.q, end.result.q)

    def _reach(
        self,
        goal: Goal,
        number: int,
        here: Here,
        last: bool,
        accept: Callable[[Node], str],
        count: int | None = None,
    ) -> list[Node]:
        """Return the nodes from a stance to the contacts of a goal, in ``count`` passes at most.

        Parameters
        ----------
        last : whether all requirements have to be met there.
        """
        best: Node | None = None
        helping = not goal.chosen and any(goal.specs.keys().isdisjoint(limb.patches) for limb in self.limbs.values())
        many = len(goal.limbs(self.robot)) > 2
        step = self.settings.step * (1.0 if "step" in self.settings.model_fields_set else self.size)
        passes = portfolio(step, self.size, helping, many)[:count]
        offsets = self._offsets(goal)
        between = self.settings.guide if here.last is None else ()
        direct = direct_path(self.robot, self.environment, here.contacts, here.q, goal, offsets, between)
        coarse = passes[0].grid
        known = {coarse: (rough := self._sample(goal, direct, offsets, here.contacts, coarse))}
        self.tree.calls = self.prover.calls
        reason = unreachable(self.robot, here.contacts, goal, rough, self.limbs)
        if reason := reason or slippery(self.environment, goal, rough):
            raise PlanningFailed(reason)
        if not goal.chosen and (reason := self.targets.impossible(goal.item, here.q)):
            raise PlanningFailed(f"goal{self._where(number)}: {reason}")
        guide, hindrance = Guide(direct)
        if not between:
            guide, hindrance = way_around(
                direct, self.robot, self.environment, self.prover, here.contacts, here.q, goal, self.limbs, self.offsets
            )
        if guide is not direct:
            known = {}
        barred: Barred | None = None
        if hindrance is not None:
            passes = [one for one in passes if one.grid == coarse]
        if count is None:  # the last one has what is left of the budget
            passes[-1] = passes[-1]._replace(calls=max(passes[-1].calls, self._left))
        for effort in passes:
            sampled = known.pop(effort.grid, None) or self._sample(goal, guide, offsets, here.contacts, effort.grid)
            potential = self._potential(goal, guide, sampled, effort)
            modes = modes_of(self.robot, self.limbs, self._stances(goal))
            space = SearchSpace(self.prover, self.limbs, modes, guide, offsets, sampled, potential, self.require, last)
            search = StanceSearch(space, self.tree, self.progress, accept, self.reroll)
            path, barred = self._free(search, effort, here, barred)
            if path is not None:
                return path
            if search.closest is not None and (best is None or search.closest.h < best.h):
                best = search.closest
            if not self._left:
                break
        self.tree.calls = self.prover.calls
        where = f" (goal{self._where(number)})" if self._where(number) else ""
        if barred is not None:
            failure = PlanningFailed(barred_way(barred, where))
            failure.best = barred.path
            raise failure
        raise PlanningFailed(explained(self.robot, self.tree, best, hindrance, where))

    def _free(
        self, search: StanceSearch, effort: Pass, here: Here, least: Barred | None
    ) -> tuple[list[Node] | None, Barred | None]:
        """Return a path whose motions nothing bars, or None and the path of those found that misses least.

        Where one is barred the search goes on with all else that it knows.
        """
        root = search.start(here.contacts, here.q, here.met, here.last)
        budget = effort._replace(calls=min(effort.calls, self._left))
        for node in search.paths(root, budget, self.settings.max_nodes):
            found = node.path()
            # joined moves swing farther; what is barred once is looked at closely when they are joined again
            for make in (even, shorten, lambda _, path: path):
                report_progress("joining moves")
                path = make(search, found)
                motions = list(barred_motions(self.prover, path)) if self._looking else []
                if not motions:
                    return path, None
                now = Barred(path, motions)
                if least is None or now.rank < least.rank:
                    least = now
            search.bar(one.node for one in motions)
            if not self._left:
                break
        return None, least

    def _sample(self, goal: Goal, guide: GuidePath, offsets: Offsets, contacts, grid: float) -> dict[str, Candidates]:
        sampled, q = {}, self.first.q
        known = (*self.first.contacts, *contacts)
        for patch in self.patches:
            sampled[patch] = candidates(
                self.robot, self.environment, patch, guide, offsets[patch], goal, known, grid,
                heading_rotation(q).T @ self.robot.frame_pose(q, patch)[:3, :3], loose(self.robot, patch),
                self.reroll.shift(),
            )  # fmt: skip
        if reason := misfit(goal, sampled, q):
            raise PlanningFailed(reason)
        return sampled

    def _potential(self, goal: Goal, guide: GuidePath, sampled: dict[str, Candidates], effort: Pass) -> Potential:
        target = {patch: sampled[patch].target(guide.length) for patch in goal.specs}
        stride, tie = self.size * STRIDE, TIE / self.size
        return Potential(goal, self.limbs, target, stride, effort.free_limb, goal.posed, tie, effort.lead)

    def _offsets(self, goal: Goal) -> Offsets:
        """Return the nominal places of patches in the base's heading frame: those of a posture that the goal wants."""
        if not goal.posed or goal.item.posture is None or goal.item.posture.name is None:
            return self.offsets
        q = self.robot.posture(goal.item.posture.name)
        turn, offsets = heading_rotation(q), dict(self.offsets)
        for patch in goal.specs:
            place = turn.T @ (self.robot.frame_pose(q, patch)[:3, 3] - q[:3])
            offsets[patch] = np.append(place[:2], offsets[patch][2])
        return offsets

    def _stances(self, goal: Goal) -> list[frozenset[str]]:
        """Return the patches of stances that the scenario or the planner means to be taken."""
        listed = (frozenset(spec.patch for spec in item.contacts) for item in self.scenario.goal)
        return [frozenset(self.first.patches), goal.stance, *listed]
