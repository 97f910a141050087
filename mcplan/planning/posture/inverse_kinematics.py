"""Inverse kinematics: the posture nearest a guide with its contacts in place, balanced and within joint limits.

    minimise   |q - guide|^2_W + w_com |c - hint|^2 + w_limb |R_limb - R|^2
    subject to S log(X_t^-1 X(q)) = 0          every contact
               A c(q) <= b                     centre of mass inside the (inset) support region
               n . x(q) >= d                   points of free limbs
               lower + margin <= q <= upper - margin

Sequential quadratic programming with the Gauss-Newton Hessian on the manifold of q, steps bounded and scaled as a whole
(a line search on the exact penalty), constraints hard in each step. When a step has no solution, the same step is taken
with the constraints as penalties; the hard ones come back as soon as they can be met.

Where the contacts bend strongly, Gauss-Newton steps overshoot along them and become shorter only slowly, and each
leaves the contacts by its square. Where no start came to rest, the nearest is settled by the shortest steps onto the
constraints alone (Newton's method for an underdetermined system), which converge quadratically.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.model.robot import Robot
from mcplan.planning.posture.contact_error import contact_error
from mcplan.planning.posture.effort import effort
from mcplan.planning.posture.problem import Posture, PostureProblem
from mcplan.planning.posture.violation import Violation
from mcplan.qp.dense import solve_dense

MAX_STEPS = 60
STEP_LIMIT = 0.4
"""m, rad: bound of one step in each coordinate."""

ERROR_LIMIT = 0.3
"""m, rad: a contact error is reduced by at most this much in one step."""

TOLERANCE = 1e-7
"""m, rad: largest violation of a posture that counts as found."""

STEP_TOLERANCE = 1e-5
"""m, rad: the search ends when a full step is shorter."""

PENALTY = 1e5
MERIT = 20.0


@dataclass
class _Rows:
    """The linearised problem at one q: ``H, g`` of the cost; rows ``J step`` in ``[low, high]`` and whose they are."""

    cost: float
    H: np.ndarray
    g: np.ndarray
    J: np.ndarray
    low: np.ndarray
    high: np.ndarray
    owner: list[tuple[str, str]]

    @property
    def violation(self) -> np.ndarray:
        """How far each row is violated where it was taken (step 0)."""
        return np.maximum(0.0, np.maximum(self.low, -self.high))

    @property
    def worst(self) -> float:
        return float(self.violation.max(initial=0.0))

    @property
    def merit(self) -> float:
        return self.cost + MERIT * float(self.violation.sum())


def solve_posture(robot: Robot, problem: PostureProblem, starts: Iterable[np.ndarray] = ()) -> Posture:
    """Return the posture found from the first start that leads to one, else the one with the least violation.

    Parameters
    ----------
    starts : (nq,) each; the guide is tried last.
    """
    search = _Search(robot, problem)
    best: Posture | None = None
    for start in (*starts, problem.guide):
        posture = search.nearest(np.array(start, dtype=float))
        if posture.found:
            return posture
        if best is None or posture.violations[0].amount < best.violations[0].amount:
            best = posture
    assert best is not None
    return search.settled(best)


class _Search:
    """One problem and the two ways to move through it: towards the nearest posture, and onto the constraints."""

    def __init__(self, robot: Robot, problem: PostureProblem):
        self.robot, self.problem = robot, problem
        self.b = None if problem.region is None else problem.region.inset(problem.com_inset)
        self.lower = robot.limits.lower + problem.joint_margin
        self.upper = robot.limits.upper - problem.joint_margin

    def nearest(self, q: np.ndarray) -> Posture:
        """Search from q (nq,) for the posture nearest the guide."""
        q[7:] = np.clip(q[7:], self.lower, self.upper)
        rows = self.rows(q)
        steps = 0
        while steps < MAX_STEPS:
            steps += 1
            step = _step(rows, *self.step_bounds(q))
            scale = 1.0
            while True:
                candidate = self.moved(q, scale * step)
                trial = self.rows(candidate)
                if trial.merit < rows.merit or scale < 0.02:
                    break
                scale *= 0.5
            full = float(np.abs(step).max())
            if trial.merit >= rows.merit and trial.worst >= rows.worst:
                break
            q, rows = candidate, trial
            if scale == 1.0 and full < STEP_TOLERANCE and rows.worst < 0.1 * TOLERANCE:
                break
        return _result(self.robot, self.problem, q, rows, steps)

    def settled(self, posture: Posture) -> Posture:
        """Take the shortest steps from a posture onto the constraints, as long as each halves what is missed."""
        q, steps = posture.q, posture.steps
        rows = self.rows(q)
        while rows.worst > TOLERANCE:
            # what the solver itself leaves of a row has to be less than what a posture may miss
            step = _step(replace(rows, g=np.zeros_like(rows.g)), *self.step_bounds(q), 0.1 * TOLERANCE)
            candidate = self.moved(q, step)
            trial = self.rows(candidate)
            steps += 1
            if trial.worst > 0.5 * rows.worst:
                break
            q, rows = candidate, trial
        return _result(self.robot, self.problem, q, rows, steps)

    def rows(self, q: np.ndarray) -> _Rows:
        return _linearise(self.robot, self.problem, q, self.b)

    def step_bounds(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the bounds (nv,) of a step from q: its size, and the joint limits."""
        low, high = np.full(self.robot.nv, -STEP_LIMIT), np.full(self.robot.nv, STEP_LIMIT)
        low[6:] = np.maximum(low[6:], np.minimum(self.lower - q[7:], 0.0))
        high[6:] = np.minimum(high[6:], np.maximum(self.upper - q[7:], 0.0))
        return low, high

    def moved(self, q: np.ndarray, step: np.ndarray) -> np.ndarray:
        """Return the posture (nq,) after a step (nv,), within the joint limits."""
        q = self.robot.integrate(q, step, 1.0)
        q[7:] = np.clip(q[7:], self.lower, self.upper)
        return q


def _step(rows: _Rows, low: np.ndarray, high: np.ndarray, tolerance: float = 1e-6) -> np.ndarray:
    """Return the step (nv,): with hard rows, kept within a tolerance, or, where they conflict, with penalised ones."""
    nv = len(low)
    clipped_low = np.minimum(rows.low, ERROR_LIMIT)
    clipped_high = np.maximum(rows.high, -ERROR_LIMIT)
    hard = solve_dense(
        rows.H, rows.g, rows.J, clipped_low, clipped_high, x_lower=low, x_upper=high, tolerance=tolerance
    )
    if hard.ok:
        return hard.x
    # Slack s on every row: low <= J step + s <= high.
    m = len(rows.J)
    H = np.zeros((nv + m, nv + m))
    H[:nv, :nv] = rows.H
    H[nv:, nv:] = PENALTY * np.eye(m)
    A = np.hstack([rows.J, np.eye(m)])
    free = np.full(m, np.inf)
    soft = solve_dense(
        H,
        np.concatenate([rows.g, np.zeros(m)]),
        A,
        clipped_low,
        clipped_high,
        x_lower=np.concatenate([low, -free]),
        x_upper=np.concatenate([high, free]),
    )
    if soft.ok:
        return soft.x[:nv]
    gradient = rows.g + PENALTY * rows.J.T @ (np.minimum(rows.high, 0.0) * -1.0 - np.maximum(rows.low, 0.0))
    size = float(np.abs(gradient).max())
    return np.clip(-0.1 * gradient / size if size > 0.0 else gradient, low, high)


def _linearise(robot: Robot, problem: PostureProblem, q: np.ndarray, b: np.ndarray | None) -> _Rows:
    weights = problem.weights
    nv = robot.nv
    W = weights.joints * effort(robot)
    W[:3], W[3:6] = weights.base_position, weights.base_orientation
    away = robot.difference(problem.guide, q)
    cost = 0.5 * float(W @ away**2)
    H, g = np.diag(W), W * away

    J: list[np.ndarray] = [np.zeros((0, nv))]
    low: list[np.ndarray] = [np.zeros(0)]
    high: list[np.ndarray] = [np.zeros(0)]
    owner: list[tuple[str, str]] = []

    def add(rows: np.ndarray, least: np.ndarray, most: np.ndarray, kind: str, thing: str) -> None:
        J.append(rows)
        low.append(least)
        high.append(most)
        owner.extend([(kind, thing)] * len(rows))

    for contact in problem.contacts:
        error, rows = contact_error(robot, q, contact)
        add(rows, -error, -error, "reach", contact.patch)

    c, J_c = robot.com(q), robot.com_jacobian(q)
    if b is not None and problem.region is not None:
        A = problem.region.A
        add(A @ J_c[:2], np.full(len(A), -np.inf), b - A @ c[:2], "equilibrium", "com")
    if problem.com is not None:
        k = len(problem.com)
        add(J_c[:k], problem.com - c[:k], problem.com - c[:k], "com", "com")
    elif problem.com_hint is not None:
        error = c[:2] - problem.com_hint
        cost += 0.5 * weights.com * float(error @ error)
        H = H + weights.com * J_c[:2].T @ J_c[:2]
        g = g + weights.com * J_c[:2].T @ error

    for limb in problem.limbs:
        X, J_limb = robot.frame_pose(q, limb.patch), robot.frame_jacobian(q, limb.patch)
        if limb.R is not None:
            error = Rotation.from_matrix(X[:3, :3] @ limb.R.T).as_rotvec()
            cost += 0.5 * weights.limb_orientation * float(error @ error)
            H = H + weights.limb_orientation * J_limb[3:].T @ J_limb[3:]
            g = g + weights.limb_orientation * J_limb[3:].T @ error
        arms = robot.patches[limb.patch].points @ X[:3, :3].T
        for plane in limb.planes:
            n, d = plane[:3], plane[3]
            # n . (J_lin v + w x arm) = n . J_lin v + (arm x n) . w
            rows = n @ J_limb[:3] + np.cross(arms, n) @ J_limb[3:]
            gap = (X[:3, 3] + arms) @ n - d
            add(rows, -gap, np.full(len(gap), np.inf), "clearance", limb.patch)

    return _Rows(cost, H, g, np.vstack(J), np.concatenate(low), np.concatenate(high), owner)


def _result(robot: Robot, problem: PostureProblem, q: np.ndarray, rows: _Rows, steps: int) -> Posture:
    worst: dict[tuple[str, str], float] = {}
    for owner, amount in zip(rows.owner, rows.violation, strict=True):
        if amount > TOLERANCE:
            worst[owner] = max(worst.get(owner, 0.0), float(amount))
    violations = sorted(
        (Violation(kind, thing, amount) for (kind, thing), amount in worst.items()), key=lambda v: -v.amount
    )
    inset = np.inf if problem.region is None else problem.region.depth(robot.com(q))
    return Posture(q, tuple(violations), float(inset), steps)
