"""Postures re-optimised along a fixed sequence: with more room to every limit, and nearer to their neighbours.

    sweep over k    q_k := posture of the same contacts near   (1 - NATURAL) midpoint(q_k-1, q_k+1) + NATURAL reference

proven with wider margins than the search asks for, or else with narrower ones, and within reach of both neighbours on
the contacts that stay; a posture that finds neither stays. The search stops at the first posture that will do, which is
often at an edge of what is allowed; this is where a plan gets the room that carrying it out needs. Midpoint and mixture
are taken on the manifold of the configurations.
"""

from dataclasses import dataclass, replace

import numpy as np

from mcplan.doing import doing
from mcplan.planning.posture.continuity import kept
from mcplan.planning.posture.generator import PostureGenerator
from mcplan.planning.posture.settings import PostureSettings
from mcplan.planning.prover import Prover, steady
from mcplan.planning.search.barred import barred_motions
from mcplan.planning.search.node import Node, Step
from mcplan.scene.contact import Contact

SWEEPS = 2

NATURAL = 0.3
"""How much of a guide is the reference posture; the rest is the midpoint of the neighbours."""

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


def refine(prover: Prover, paths: list[list[Node]]) -> list[list[Node]] | None:
    """Return the same paths with better postures, as far as no motion between them is barred.

    Those around a motion that is barred are taken back; None where it is barred all the same.

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
    robot, settings = prover.robot, [prover.asked(wider) for wider in WIDER]
    generators = [PostureGenerator(robot, prover.environment, wider, prover.collisions) for wider in settings]
    for sweep in range(SWEEPS):
        before = _Knot(paths[0][0].contacts, (), (), paths[0][0].q, paths[0][0].q)
        for k, (knot, after) in enumerate(zip(chain, [*chain[1:], chain[-1]], strict=True), start=1):
            doing("giving room to posture", sweep * len(chain) + k, SWEEPS * len(chain))
            knot.q = _better(prover, generators, knot, before, after)
            before = knot
    while True:
        better = [[_replaced(node, knots) for node in path] for path in paths]
        pairs = zip(paths, better, strict=True)
        barred = next(((path, new.index(one.node)) for path, new in pairs for one in barred_motions(prover, new)), None)
        if barred is None:
            return better
        path, k = barred
        steps = (*path[k - 1].steps[-1:], *path[k].steps)
        around = [knots[id(step.q)] for step in steps if id(step.q) in knots]  # not where the first path begins
        if all(knot.q is knot.first for knot in around):
            return None
        for knot in around:
            knot.q = knot.first


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


def _replaced(node: Node, knots: dict[int, _Knot]) -> Node:
    steps: list[Step] = [replace(step, q=knots[id(step.q)].q) for step in node.steps]
    return replace(node, steps=tuple(steps), q=steps[-1].q if steps else node.q)
