"""From start and goal to a plan: guide, search, shortening, a look at every way, and the proof of all stances again."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from mcplan.errors import InputError, PlanningFailed
from mcplan.planning.guide.goal import Goal
from mcplan.planning.guide.guide_search import Guide, direct_path, way_around
from mcplan.planning.guide.path import GuidePath
from mcplan.planning.linking import Linker
from mcplan.planning.plan import Plan, PlannedStance
from mcplan.planning.posture.limbs import limbs_of, nominal_offsets
from mcplan.planning.posture.prover import Prover
from mcplan.planning.search.candidates import Candidates, candidates
from mcplan.planning.search.failure import explained
from mcplan.planning.search.finish import ending, finish
from mcplan.planning.search.node import Node
from mcplan.planning.search.potential import Potential
from mcplan.planning.search.reachability import slippery, unreachable
from mcplan.planning.search.refine import refine
from mcplan.planning.search.reroll import Reroll
from mcplan.planning.search.shorten import shorten
from mcplan.planning.search.space import SearchSpace
from mcplan.planning.search.stance_search import CARRIES, Pass, StanceSearch, requirements_met
from mcplan.planning.search.tree import SearchTree
from mcplan.scene.place import make_contact
from mcplan.scene.scenario import Scenario

STRIDE = 0.6
"""m: progress of one move of a foot."""

Progress = Callable[[int, int, float], None]


def find(scenario: Scenario, seed: int = 0, progress: Progress | None = None) -> Plan:
    """Return a plan for a scenario with a goal.

    Parameters
    ----------
    seed : 0 for the search as it is, which draws nothing; another one rerolls it, see `mcplan.planning.search.reroll`.
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


class _Planning:
    """The state of one planning."""

    def __init__(self, scenario: Scenario, seed: int, progress: Progress | None, tree: SearchTree):
        self.scenario, self.settings, self.progress = scenario, scenario.planner, progress
        self.robot, self.environment = scenario.robot, scenario.environment
        self.tree, self.reroll = tree, Reroll(seed)
        contacts = tuple(
            make_contact(self.robot, self.environment, contact.to_data()) for contact in scenario.start.contacts
        )
        self.linker = Linker(self.robot, self.environment, scenario.start.q)
        self.first = self.linker.start(contacts)
        clearance = scenario.control_in(scenario.simulation.physics).clearance
        self.prover = Prover(self.robot, self.environment, self.first.q, self.first.patches, clearance)
        for contact in self.first.contacts:
            hit = self.prover.blocked(contact)
            if hit is not None:
                raise PlanningFailed(
                    f"start: at its place on {contact.support}, {contact.patch} is {hit[1]:.4f} m inside: {hit[0]} "
                    "overlap; move the start or what is in its way"
                )
        names = set(self.settings.patches or self.robot.patches)
        names |= set(self.first.patches) | {spec.patch for item in scenario.goal for spec in item.contacts}
        for group in self.settings.require:
            names |= {group} if isinstance(group, str) else set(group)
        self.patches = tuple(name for name in self.robot.patches if name in names)
        self.limbs = limbs_of(self.robot, self.first.q, self.patches)
        self.offsets = nominal_offsets(self.robot, self.first.q, contacts, self.limbs)
        self.modes = self._modes()
        self.require = tuple(frozenset([group] if isinstance(group, str) else group) for group in self.settings.require)

    def plan(self) -> Plan:
        """Return the plan."""
        contacts, q, met, last = self.first.contacts, self.first.q, frozenset[int](), None
        segments: list[tuple[Goal, list[Node]]] = []
        for number, item in enumerate(self.scenario.goal):
            goal = Goal.of(item)
            nodes = self._reach(goal, number, contacts, q, met, last)
            segments.append((goal, nodes))
            self.tree.path += [node.index for node in nodes]
            last = nodes[-1]
            contacts, q, met = last.contacts, last.q, last.met
        self.prover.limit = sys.maxsize
        paths = refine(self.prover, [nodes for _, nodes in segments])
        segments = [(goal, nodes) for (goal, _), nodes in zip(segments, paths, strict=True)]
        self.tree.calls = self.prover.calls
        stances = finish(self.scenario, self.linker, self.prover, self.first, segments)
        self._require(stances)
        return Plan(self.scenario, stances, self.tree, self.linker.notices)

    def _require(self, stances: Sequence[PlannedStance]) -> None:
        """Refuse a plan in whose final forces a required patch carries nothing."""
        met = frozenset[int]().union(*(requirements_met(self.require, stance.wrenches) for stance in stances))
        for i in sorted(set(range(len(self.require))) - met):
            names = " or ".join(sorted(self.require[i]))
            raise PlanningFailed(f"a way was found, but {names} carries no more than {CARRIES:g} N in any stance")

    def _reach(self, goal: Goal, number: int, contacts, q, met, last: Node | None) -> list[Node]:
        if number + 1 < len(self.scenario.goal):
            met_here: tuple[frozenset[str], ...] = ()
        else:
            met_here = self.require
        self._goal_is_free(goal)
        search: StanceSearch | None = None
        best: Node | None = None
        passes = self._passes()
        direct = direct_path(self.robot, self.environment, contacts, q, goal, self.offsets, self.settings)
        known = {passes[0][0]: self._sample(goal, direct, contacts, passes[0][0])}
        self._check(goal, contacts, known[passes[0][0]])
        guide, hindrance = self._around(direct, contacts, q, goal)
        if guide is not direct:
            known = {}
        for grid, effort in passes if hindrance is None else passes[:2]:
            sampled = known.pop(grid, None) or self._sample(goal, guide, contacts, grid)
            potential = self._potential(goal, guide, sampled)
            space = SearchSpace(self.prover, self.limbs, self.modes, guide, self.offsets, sampled, potential, met_here)
            search = StanceSearch(
                space, self.tree, self.progress,
                lambda node: ending(self.scenario, self.linker, goal, node.contacts, node.q), self.reroll,
            )  # fmt: skip
            run = partial(self._run, search, effort, contacts, q, met, last)
            path = run()
            if path is not None:
                return self._freed(search, path, run)
            if search.closest is not None and (best is None or search.closest.h < best.h):
                best = search.closest
            if self.prover.calls >= self.settings.max_calls:
                break
        self.tree.calls = self.prover.calls
        count = len(self.scenario.goal)
        where = f" (goal {number + 1} of {count})" if count > 1 else ""
        raise PlanningFailed(explained(self.robot, self.tree, best, hindrance, where))

    def _run(self, search: StanceSearch, effort: Pass, contacts, q, met, last: Node | None) -> list[Node] | None:
        """Return a path from a stance to the goal, or None where the budget is spent before."""
        root = search.start(contacts, q, met, last)
        left = max(self.settings.max_calls - self.prover.calls, 0)
        found = search.run(root, replace(effort, calls=min(effort.calls, left)), self.settings.max_nodes)
        return None if found is None else shorten(search, found.path())

    def _freed(self, search: StanceSearch, path: list[Node], run: Callable[[], list[Node] | None]) -> list[Node]:
        """Return a path whose swings nothing bars, or the one of those found in which most are free.

        What was found barred is known when the search is ``run`` again; what was proven is not proven again.
        """
        best, least = path, search.barred(path)
        while least and self.prover.calls < self.settings.max_calls:
            other = run()
            if other is None:
                break
            barred = search.barred(other)
            if barred < least:
                best, least = other, barred
        return best

    def _passes(self) -> list[tuple[float, Pass]]:
        step = self.settings.step
        return [
            (0.10, Pass(np.inf, 300, step)),
            (0.10, Pass(4.0, 700, step)),
            (0.05, Pass(np.inf, 700, step + 0.1)),
            (0.05, Pass(2.0, 2000, step + 0.2)),
        ]

    def _around(self, direct: GuidePath, contacts, q, goal: Goal) -> Guide:
        if self.settings.guide:
            return Guide(direct)
        return way_around(
            direct, self.robot, self.environment, self.prover, contacts, q, goal, self.limbs, self.offsets
        )

    def _sample(self, goal: Goal, guide: GuidePath, contacts, grid: float) -> dict[str, Candidates]:
        sampled = {}
        known = (*self.first.contacts, *contacts)
        for patch in self.patches:
            X = self.robot.frame_pose(self.first.q, patch)
            sampled[patch] = candidates(
                self.robot, self.environment, patch, guide, self.offsets[patch], goal, known,
                grid, (X[:3, :3], X[:3, 3]), self._loose(patch), self.reroll.shift(),
            )  # fmt: skip
        for patch, spec in goal.specs.items():
            if not sampled[patch].goal.any():
                raise PlanningFailed(f"goal: {patch} does not fit on {spec.surface}")
        return sampled

    def _check(self, goal: Goal, contacts, sampled: dict[str, Candidates]) -> None:
        """Raise what can be said before any search."""
        self.tree.calls = self.prover.calls
        message = unreachable(self.robot, contacts, goal, sampled, self.limbs)
        message = message or slippery(self.environment, goal, sampled)
        if message:
            raise PlanningFailed(message)

    def _potential(self, goal: Goal, guide: GuidePath, sampled: dict[str, Candidates]) -> Potential:
        target = {patch: self._target(sampled[patch], guide) for patch in goal.specs}
        return Potential(goal, self.limbs, target, STRIDE)

    def _target(self, sampled: Candidates, guide: GuidePath) -> float:
        s = sampled.s[sampled.goal]
        return float(s[np.argmin(np.abs(s - guide.length))])

    def _goal_is_free(self, goal: Goal) -> None:
        for patch, spec in goal.specs.items():
            try:
                contact = make_contact(self.robot, self.environment, spec)
            except InputError:
                continue
            hit = self.prover.blocked(contact)
            if hit is not None:
                raise PlanningFailed(
                    f"goal: at its place on {spec.surface}, {patch} is {hit[1]:.3f} m inside: {hit[0]} overlap; "
                    "move the goal or the obstacle"
                )

    def _modes(self) -> dict[str, tuple[tuple[str, ...], ...]]:
        """Return the sets of patches with which each limb may touch.

        One at a time; two edges of different links, which only together bear a moment; and those of start and goal.
        """
        modes: dict[str, tuple[tuple[str, ...], ...]] = {}
        stances = [set(self.first.patches)] + [{s.patch for s in item.contacts} for item in self.scenario.goal]
        for limb in self.limbs.values():
            found: list[tuple[str, ...]] = [(patch,) for patch in limb.patches]
            edges = [patch for patch in limb.patches if len(self.robot.patches[patch].polygon) == 2]
            links = {patch: self.robot.patches[patch].link for patch in edges}
            found += [(a, b) for a in edges for b in edges if a < b and links[a] != links[b]]
            for stance in stances:
                together = tuple(patch for patch in limb.patches if patch in stance)
                if len(together) > 1 and not any(set(together) == set(known) for known in found):
                    found.append(together)
            modes[limb.name] = tuple(found)
        return modes

    def _loose(self, patch: str) -> bool:
        polygon = self.robot.patches[patch].polygon
        return len(polygon) < 3 or float(np.ptp(polygon, axis=0).prod()) < 0.01
