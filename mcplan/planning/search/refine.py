"""Postures re-optimised along a fixed sequence: with more room to every limit, and nearer to their neighbours.

    sweep over k    q_k := posture of the same contacts near   (1 - NATURAL) midpoint(q_k-1, q_k+1) + NATURAL reference

proven with wider margins than the search asks for, or else with narrower ones, and within reach of both neighbours on
the contacts that stay; a posture that finds neither stays. The search stops at the first posture that will do, which is
often at an edge of what is allowed; this is where a plan gets the room that carrying it out needs. Midpoint and mixture
are taken on the manifold of the configurations.
"""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from mcplan.doing import doing
from mcplan.planning.posture.continuity import kept
from mcplan.planning.posture.generator import PostureGenerator
from mcplan.planning.posture.settings import PostureSettings
from mcplan.planning.prover import Prover, steady
from mcplan.planning.search.barred import barred_motions
from mcplan.planning.search.node import Node, Step, swing_to
from mcplan.scene.contact import Contact

SWEEPS = 2

NATURAL = 0.3
"""How much of a guide is the reference posture; the rest is the midpoint of the neighbours."""

ROUNDS = 4
"""Times that postures whose motions are barred are taken back, and the motions of their neighbours looked at."""

WIDER = (
    PostureSettings(
        joint_margin=0.08, bent=0.3, com_inset=0.035, comfort=0.06, torque_share=0.7, clearance=0.01, steps=20
    ),
    PostureSettings(
        joint_margin=0.05, bent=0.2, com_inset=0.028, comfort=0.05, torque_share=0.8, clearance=0.006, steps=20
    ),
    # contacts alone may take a joint near its limit: the ankle of a shank that lies on its knee and its toes
    PostureSettings(bent=0.15, com_inset=0.028, comfort=0.05, torque_share=0.8, clearance=0.006, steps=20),
)
"""What is asked of postures, the most comfortable first."""


@dataclass(eq=False)
class _Knot:
    """A posture of the sequence, which steps share that change contacts of one limb without a motion in between.

    Attributes
    ----------
    contacts : in place; ``loaded`` names those that carry, ``leaving`` those that are lifted next.
    q : (nq,) now; ``first`` as the search found it.
    """

    contacts: tuple[Contact, ...]
    loaded: tuple[str, ...]
    leaving: tuple[str, ...]
    q: np.ndarray
    first: np.ndarray

    @property
    def taken_back(self) -> bool:
        """Whether it is as the search found it."""
        return self.q is self.first


def refine(prover: Prover, paths: list[list[Node]]) -> list[list[Node]] | None:
    """Return the same paths with better postures, as far as no motion between them is barred.

    None where a motion is barred between those of the search, too.

    Parameters
    ----------
    paths : nodes of each goal item, the first of which is where it begins.
    """
    knots: dict[int, _Knot] = {}
    for path in paths:
        for step in (step for node in path[1:] for step in node.steps):
            idle = [contact.patch for contact in step.touching if contact.patch not in step.loaded]
            leaving = tuple(idle) if step.change == "remove" else ()
            knots.setdefault(id(step.q), _Knot(step.touching, step.loaded, leaving, step.q, step.q))
    if not knots:
        return paths
    chain = list(knots.values())
    robot, settings = prover.robot, [wider.of(prover.robot.scale) for wider in WIDER]
    generators = [PostureGenerator(robot, prover.environment, wider, prover.collisions) for wider in settings]
    for sweep in range(SWEEPS):
        before = _Knot(paths[0][0].contacts, (), (), paths[0][0].q, paths[0][0].q)
        for k, (knot, after) in enumerate(zip(chain, [*chain[1:], chain[-1]], strict=True), start=1):
            doing("giving room to posture", sweep * len(chain) + k, SWEEPS * len(chain))
            knot.q = _better(prover, generators, knot, before, after)
            before = knot
    for path in paths:
        for parent, node in pairwise(path):
            if not _keep_swing(prover, parent, node, knots):
                return None
    for _ in range(ROUNDS):
        better = [[_replaced(node, knots) for node in path] for path in paths]
        barred = [{id(one.node) for one in barred_motions(prover, path)} for path in better]
        if not any(barred):
            return better
        back = list[_Knot]()
        for path, refined, nodes in zip(paths, better, barred, strict=True):
            for k in (k for k, node in enumerate(refined) if id(node) in nodes):
                steps = (*path[k - 1].steps[-1:], *path[k].steps)
                around = [knots[id(step.q)] for step in steps if id(step.q) in knots]  # not where the first path begins
                if all(knot.taken_back for knot in around):
                    return None
                back += around
        for knot in back:
            knot.q = knot.first
    return paths


def _better(prover: Prover, generators: list[PostureGenerator], knot: _Knot, before: _Knot, after: _Knot) -> np.ndarray:
    robot, reaches = prover.robot, prover.continuity.reaches
    middle = robot.integrate(before.q, robot.difference(before.q, after.q), 0.5)
    guide = robot.integrate(middle, robot.difference(middle, prover.guide(knot.contacts, knot.q)), NATURAL)
    for generator in generators:
        prover.calls += 1
        found = generator.generate(knot.contacts, knot.loaded, guide, [knot.q], leaving=knot.leaving)
        result = steady(found, prover.robot.scale)
        if (
            result.found
            and reaches(kept(before.contacts, knot.contacts), before.q, result.q)
            and (after is knot or reaches(kept(knot.contacts, after.contacts), result.q, after.q))
        ):
            return result.q
    return knot.q


def _keep_swing(prover: Prover, parent: Node, node: Node, knots: dict[int, _Knot]) -> bool:
    """Take the first postures back where a limb cannot swing between the new ones; say whether it can at all."""
    first = swing_to(parent, node)
    if first is None:
        return True
    place = knots[id(node.steps[-1].q)]
    lifts = [knots[id(step.q)] for step in node.steps if step.change == "remove"]
    swing = replace(first, q0=lifts[-1].q if lifts else _arrival(parent, knots), q1=place.q)
    if not (prover.swing(swing) or prover.barred(swing)):
        return True
    place.q = place.first
    for knot in lifts:
        knot.q = knot.first
    return not prover.barred(first)


def _arrival(node: Node, knots: dict[int, _Knot]) -> np.ndarray:
    """Return the posture at which a node is reached."""
    return knots[id(node.steps[-1].q)].q if node.steps else node.q


def _replaced(node: Node, knots: dict[int, _Knot]) -> Node:
    steps: list[Step] = [replace(step, q=knots[id(step.q)].q) for step in node.steps]
    return replace(node, steps=tuple(steps), q=steps[-1].q if steps else node.q)
