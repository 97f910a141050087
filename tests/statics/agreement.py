"""Hold static equilibrium and support regions against programs that were written independently of them.

    python -m tests.statics.agreement [--count 1000] [--seed 0] [--cones 100]

Each random set of contacts is compared with a linear program of point forces and wrenches in the world, over pyramids,
solved by HiGHS; the first that can balance also with a second-order cone program over the exact cones, solved by
Clarabel. The programs know only the geometry of `Contact` and nothing of the package's maps, rays or faces.
"""

import argparse
from dataclasses import dataclass

import cvxpy as cp
import numpy as np
from scipy.optimize import linprog
from scipy.spatial import ConvexHull

from mcplan.optimize.polytope import ball_polytope
from mcplan.statics.equilibrium import equilibrium_margin
from mcplan.statics.support_region import CLIP_M, support_region
from tests.statics.contacts import any_contact

MASS = 56.0
WEIGHT = MASS * 9.81
FACES = 8
DIRECTIONS = 12
TOLERANCE = 2e-7
"""m: 1e-7 of the solver's feasibility, and as much of merged vertices."""


@dataclass(frozen=True)
class Block:
    """Unknowns of one place: the wrench they exert, (6, 3) about the world's origin, and their contact."""

    contact: object
    map: np.ndarray
    role: str


def blocks_of(stance):
    """Return the unknown forces and moments of contacts, in world axes but for their maps."""
    found = []
    for contact in stance:
        places = contact.p + contact.points @ contact.R.T
        for place in places:
            found.append(Block(contact, np.vstack([np.eye(3), np.cross(place, np.eye(3)).T]), "force"))
        if contact.kind == "grasp":
            found.append(Block(contact, np.vstack([np.zeros((3, 3)), np.eye(3)]), "moment"))
    return found


def free_rows(stance, blocks):
    """Return rows of the components that the contacts' free directions keep at zero."""
    rows = []
    for contact in stance:
        for option, part in (("slide", slice(0, 3)), ("hinge", slice(3, 6))):
            for axis in contact.options.get(option, ()):
                about = np.eye(6)
                about[3:, :3] = -np.cross(contact.p, np.eye(3)).T
                along = contact.R[:, "xyz".index(axis)]
                rows.append(
                    np.hstack(
                        [
                            along @ (about @ block.map)[part] if block.contact is contact else np.zeros(3)
                            for block in blocks
                        ]
                    )
                )
    return np.array(rows).reshape(-1, 3 * len(blocks))


def inequalities(blocks):
    """Return ``F f <= upper`` over forces in weights, by the definition of inscribed pyramids and polytopes."""
    rows, upper, size = [], [], 3 * len(blocks)
    corners = (2 * np.arange(FACES) + 1) * np.pi / FACES
    totals = {}
    for k, block in enumerate(blocks):
        contact, part = block.contact, slice(3 * k, 3 * k + 3)

        def add(local, bound, part=part, contact=contact):
            row = np.zeros(size)
            row[part] = contact.axes @ local
            rows.append(row)
            upper.append(bound)

        if contact.kind == "grasp":
            limit = contact.max_force if block.role == "force" else contact.max_moment
            for face in ball_polytope():
                row = np.zeros(size)
                row[part] = contact.R @ face
                rows.append(row)
                upper.append(min(limit, 1e4) / WEIGHT)
            continue
        add(np.array([0.0, 0.0, -1.0]), 0.0)
        mu = contact.friction
        for first, second in zip(corners, np.roll(corners, -1), strict=True):  # a face through two edges of the pyramid
            a, b = (np.array([mu * np.cos(t), mu * np.sin(t), 1.0]) for t in (first, second))
            normal = np.cross(b, a) if mu > 0 else np.array([np.cos(first), np.sin(first), 0.0])
            add(normal / np.linalg.norm(normal), 0.0)
        if np.isfinite(contact.max_force):
            row = totals.setdefault(id(contact), np.zeros(size))
            row[part] = contact.axes[:, 2]
            totals[id(contact), "bound"] = contact.max_force / WEIGHT
    for key, row in totals.items():
        if not isinstance(key, tuple):
            rows.append(row)
            upper.append(totals[key, "bound"])
    return np.array(rows), np.array(upper)


class LinearOracle:
    """The farthest balanced place of the centre of mass by HiGHS."""

    def __init__(self, stance):
        blocks = blocks_of(stance)
        self.middle = np.mean([contact.p for contact in stance], axis=0)
        F, upper = inequalities(blocks)
        size = F.shape[1]
        free = free_rows(stance, blocks)
        A = np.zeros((6 + len(free), size + 2))
        A[:6, :size] = np.hstack([block.map for block in blocks])
        A[6:, :size] = free
        A[3, -1], A[4, -2] = -1.0, 1.0
        b = np.zeros(len(A))
        b[2] = 1.0
        bounds = [(None, None)] * size + [(x - CLIP_M, x + CLIP_M) for x in self.middle[:2]]
        self.problem = {
            "A_ub": np.hstack([F, np.zeros((len(F), 2))]), "b_ub": upper, "A_eq": A, "b_eq": b, "bounds": bounds,
            "options": {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9},
        }  # fmt: skip

    def farthest(self, a):
        """Return the distance along ``a``; None when nothing balances."""
        cost = np.zeros(self.problem["A_eq"].shape[1])
        cost[-2:] = -a
        for method in ("highs-ds", "highs-ipm"):  # one of them gives up now and then
            result = linprog(cost, method=method, **self.problem)
            if result.status in (0, 2):
                return None if result.status == 2 else -result.fun
        raise RuntimeError(result.message)


def cone_constraints(stance, blocks, f):
    """Return constraints of the true cones and balls on forces in weights."""
    constraints = []
    for contact in stance:
        normals = []
        for k, block in enumerate(blocks):
            if block.contact is not contact:
                continue
            part = contact.axes.T @ f[3 * k : 3 * k + 3]
            if contact.kind == "grasp":
                limit = contact.max_force if block.role == "force" else contact.max_moment
                constraints.append(cp.norm(f[3 * k : 3 * k + 3]) <= min(limit, 1e4) / WEIGHT)
                continue
            normals.append(part[2])
            constraints += [cp.norm(part[:2]) <= contact.friction * part[2], part[2] >= 0]
        if normals and np.isfinite(contact.max_force):
            constraints.append(sum(normals) <= contact.max_force / WEIGHT)
    free = free_rows(stance, blocks)
    return [*constraints, free @ f == 0] if len(free) else constraints


def cone_margin(stance, com, directions=16):
    """Return the largest push (N) at ``com`` over the exact cones, the least over directions; None if infeasible."""
    blocks = blocks_of(stance)
    f, size, direction = cp.Variable(3 * len(blocks)), cp.Variable(), cp.Parameter(2)
    total = np.hstack([block.map for block in blocks]) @ f
    push = cp.hstack([size * direction, 0.0])
    force = np.array([0.0, 0.0, -1.0]) + push
    lever = np.array([[0.0, -com[2], com[1]], [com[2], 0.0, -com[0]], [-com[1], com[0], 0.0]])
    moment = lever @ force
    constraints = [total[:3] + force == 0, total[3:] + moment == 0, size <= 10.0, size >= 0.0]
    problem = cp.Problem(cp.Maximize(size), [*constraints, *cone_constraints(stance, blocks, f)])
    worst = np.inf
    for angle in 2 * np.pi * np.arange(directions) / directions:
        direction.value = np.array([np.cos(angle), np.sin(angle)])
        problem.solve(cp.CLARABEL)
        if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
            return None
        worst = min(worst, problem.value * WEIGHT)
    return worst


def compare_region(stance, rng):
    """Return what disagrees between the support region and HiGHS (texts), and whether the stance can balance."""
    region, oracle = support_region(stance, MASS), LinearOracle(stance)
    found = []
    turn = rng.uniform(0.0, 2.0 * np.pi)
    for angle in turn + 2.0 * np.pi * np.arange(DIRECTIONS) / DIRECTIONS:
        a = np.array([np.cos(angle), np.sin(angle)])
        expected = oracle.farthest(a)
        if (expected is None) != region.empty:
            return [f"region {'empty' if region.empty else 'found'}, HiGHS {expected}"], not region.empty
        if expected is not None:
            difference = float((region.vertices @ a).max()) - expected
            if abs(difference) > TOLERANCE:
                found.append(f"farthest along ({a[0]:.3f}, {a[1]:.3f}): {difference:+.1e} m")
    if not region.empty and len(region.vertices) > 2:
        hull = ConvexHull(region.vertices)
        if len(hull.vertices) != len(region.vertices):
            found.append(f"{len(region.vertices)} vertices, {len(hull.vertices)} on their hull")
    return found, not region.empty


def compare_margin(stance, rng):
    """Return what disagrees between the margin over the exact cones and Clarabel, at a place that can be balanced."""
    region = support_region(stance, MASS, tolerance=1e-3)
    if region.area < 1e-4:
        return []
    com = np.append(region.vertices.T @ rng.dirichlet(np.ones(len(region.vertices))), 0.8)
    margin, expected = equilibrium_margin(com, stance, MASS), cone_margin(stance, com)
    if expected is None:
        return [f"margin {margin:.6f} N, Clarabel: infeasible"]
    allowed = 2e-3 + 2e-5 * abs(expected)
    return [] if abs(margin - expected) <= allowed else [f"margin {margin:.6f} N, Clarabel {expected:.6f} N"]


def run(count, cones, seed=0, say=lambda text: None):
    """Compare ``count`` regions and ``cones`` margins; return the disagreements and how many stances can balance."""
    found, balanced = [], 0
    for case in range(count):
        rng = np.random.default_rng([seed, case])
        stance = [any_contact(rng, i) for i in range(int(rng.integers(1, 6)))]
        try:
            wrong, balances = compare_region(stance, rng)
        except Exception as error:
            raise RuntimeError(f"seed {seed}, case {case}") from error
        balanced += balances
        if balances and cones > 0:
            cones -= 1
            wrong = wrong + compare_margin(stance, rng)
        for text in wrong:
            found.append(f"case {case} ({', '.join(c.patch for c in stance)}): {text}")
            say(found[-1])
    return found, balanced


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--cones", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    found, balanced = run(arguments.count, arguments.cones, arguments.seed, print)
    print(f"{arguments.count} sets of contacts, {balanced} of them can balance: {len(found)} disagreements")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
