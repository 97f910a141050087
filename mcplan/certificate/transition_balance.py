"""Static balance along transitions: a linear program of contact forces at samples, solved by HiGHS.

With the generalised gravity forces g(q), the Jacobian J of each contact, and contact forces f in friction pyramids::

    minimise s   subject to   sum J' f = g on the base,   |g - sum J' f| <= s tau_max on the joints,   f within limits

The norms of forces and moments of grips are bounded by half-spaces, added where a solution violates the bound (cutting
planes). Objects that carry contacts must be balanced by their supports. No code is shared with `mcplan.statics`.

HiGHS is called through its own interface, which accepts an initial basis (`scipy.optimize.linprog` does not): each
program of a sequence of similar ones then needs few iterations. A friction cone with normal n and tangents t_1, t_2 is
replaced by an inscribed pyramid with ``faces`` edges e_k; its forces at points r_i have the wrench w::

    e_k = n + mu (cos(2 pi k / faces) t_1 + sin(2 pi k / faces) t_2),   w = sum_ik f_ik (e_k, r_i x e_k),   f_ik >= 0
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import highspy
import numpy as np
from highspy import HighsBasis, HighsBasisStatus, HighsModelStatus
from scipy.optimize import nnls

from mcplan.certificate.independent import STANDARD_GRAVITY, Mechanism, MechanismMotion, cross
from mcplan.certificate.transition_track import TransitionTrack
from mcplan.record.records import RobotRecord
from mcplan.scene.contact import Contact


class SilentHighs(highspy.Highs):
    """HiGHS without output: version 1.16 would print two lines when its constructor enables callbacks."""

    def enableCallbacks(self) -> None:
        """Enable callbacks, after output has been turned off."""
        self.setOptionValue("output_flag", False)
        super().enableCallbacks()


class LinearPrograms:
    """Solver of linear programs, warm-started with the basis of the previous program.

    ``minimise c' x   subject to   E x = e,   A x <= b,   x_i >= 0`` except for free variables.
    """

    def __init__(self) -> None:
        self._highs = SilentHighs()
        self._highs.setOptionValue("presolve", "off")  # takes longer than it saves: the programs are small and scaled
        self._highs.setOptionValue("simplex_scale_strategy", 0)
        self._basis: tuple[HighsBasis, int, int] | None = None  # with the numbers of columns and rows

    def solve(
        self, c: np.ndarray, E: np.ndarray, e: np.ndarray, A: np.ndarray, b: np.ndarray, free: np.ndarray
    ) -> np.ndarray | None:
        """Return an optimal x (n,), or None if there is none.

        If A has more rows than in the previous program, the additional last rows start inactive.

        Parameters
        ----------
        c : (n,); E, e : (k, n), (k,); A, b : (m, n), (m,).
        free : (n,) whether each x may be negative.
        """
        rows = np.concatenate([E, A])
        used = rows != 0.0
        row_ends, columns = np.cumsum(used.sum(axis=1)), np.nonzero(used)[1]
        model = (
            len(c), len(rows), len(columns), int(highspy.MatrixFormat.kRowwise), int(highspy.ObjSense.kMinimize), 0.0,
            c, np.where(free, -np.inf, 0.0), np.full(len(c), np.inf),
            np.append(e, np.full(len(b), -np.inf)), np.append(e, b),
            np.append(0, row_ends), columns, rows[used], np.zeros(len(c), np.int32),
        )  # fmt: skip
        previous, self._basis = self._basis, None
        if previous is not None and previous[1] == len(c) and previous[2] <= len(rows):
            basis, _, known = previous
            if known < len(rows):  # each access to the status of all rows makes a list
                basis.row_status = [*basis.row_status, *[HighsBasisStatus.kBasic] * (len(rows) - known)]
            if (x := self._solve(model, basis)) is not None:
                return x
        return self._solve(model, None)  # infeasibility never depends on the start

    def _solve(self, model: tuple, basis: HighsBasis | None) -> np.ndarray | None:
        self._highs.passModel(*model)
        if basis is not None:
            self._highs.setBasis(basis)
        self._highs.run()
        if self._highs.getModelStatus() != HighsModelStatus.kOptimal:
            return None
        self._basis = self._highs.getBasis(), *model[:2]
        return np.array(self._highs.getSolution().col_value)


def cone_edges(axes: np.ndarray, friction: float, faces: int) -> np.ndarray:
    """Return the edges (3, faces) of a friction cone about the third of axes (3, 3), each with a normal force of 1."""
    angle = 2 * np.pi * np.arange(faces) / faces
    return axes[:, 2:] + friction * (np.outer(axes[:, 0], np.cos(angle)) + np.outer(axes[:, 1], np.sin(angle)))


def edge_wrenches(edges: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return the wrenches (6, P F) about the origin of unit normal forces along edges (3, F) at points (P, 3)."""
    force, arm = np.tile(edges, len(points)), np.repeat(points.T, edges.shape[1], axis=1)
    return np.concatenate([force, cross(arm, force)])


def missing_wrench(edges: np.ndarray, points: np.ndarray, w: np.ndarray) -> float:
    """Return the distance of a wrench (6,) about the origin from those that forces in a cone at points (P, 3) make."""
    return float(nnls(edge_wrenches(edges, points), w)[1])


CONE_EDGES = 16
"""Number of edges of the pyramid inscribed in a friction cone; it contains the planner's pyramid with 8 edges."""

SEGMENT_SAMPLES = 10
"""Number of equal parts of a segment; the balance is checked at their ends."""

MAX_CUT_ROUNDS, CUT_SHARE = 20, 0.98
"""Maximum rounds of cutting planes (a few suffice); distance of a plane from the origin / bound of the norm."""

MISSING_COST = 1e3
"""Cost of a missing wrench (in weights of the robot) relative to that of the share of the torque limits."""


def balance_times(track: TransitionTrack) -> np.ndarray:
    """Return the times (m,) of a segment at which its static balance is checked."""
    return np.linspace(track.curve.times[0], track.duration, SEGMENT_SAMPLES + 1)


class HoldingForces(NamedTuple):
    """Balance of a posture: smallest feasible share of the torque limits, its joint, and missing wrench (N, N m)."""

    share: float
    joint: str
    missing: float


class Balance:
    """Static or dynamic balance of postures of a robot by contact forces.

    Parameters
    ----------
    record, mechanism : the robot.
    """

    def __init__(self, record: RobotRecord, mechanism: Mechanism):
        self.record, self.mechanism = record, mechanism
        self.links = {patch.name: patch.link for patch in record.patches}
        self.weight = float(mechanism.mass.sum() * np.linalg.norm(STANDARD_GRAVITY))
        self.limit = record.limit("torque")
        self.programs = LinearPrograms()

    def along(self, track: TransitionTrack, t: np.ndarray, motion: MechanismMotion) -> list[HoldingForces]:
        """Return the balance at times (m,) of a segment, with its motion there, by contacts at their planned poses."""
        poses = {}
        for contact in track.closed:
            R, p = contact.turned(motion.R[contact.patch]), motion.p[contact.patch]
            axes, _ = track.contact_pose(contact, t)
            error = track.contact_error(contact, t, R, p)[:, :3]
            poses[contact.patch] = R, p - np.einsum("kij,kj->ki", axes, error)
        return self.at(track.curve.sample(t), [track.closed_at(x) for x in t], poses, motion.force)

    def at(
        self,
        q: np.ndarray,
        contacts: Sequence[Sequence[Contact]],
        poses: Mapping[str, tuple[np.ndarray, np.ndarray]],
        gravity: np.ndarray,
    ) -> list[HoldingForces]:
        """Return the balance of configurations by contacts.

        Parameters
        ----------
        q, gravity : (m, 7+n), (m, 6+n) configurations, and generalised forces to be balanced (static: gravity).
        contacts : closed contacts of each configuration.
        poses : {patch: R (m, 3, 3), p (m, 3)} of each contact.
        """
        links = {self.links[contact.patch] for closed in contacts for contact in closed}
        columns = {link: slice(6 * i, 6 * i + 6) for i, link in enumerate(links)}
        units = np.eye(6 * len(links))
        loads = {link: np.repeat(units[:, None, at], len(q), axis=1) for link, at in columns.items()}
        maps = self.mechanism.generalized(q, loads)
        found: list[HoldingForces] = []
        cuts: dict[tuple[str, bool], list[np.ndarray]] = {}
        for k, force in enumerate(gravity):
            program = _BalanceProgram(force, self.limit, self.weight, cuts)
            for contact in contacts[k]:
                R, p = poses[contact.patch]
                program.add(contact, R[k], p[k], maps[columns[self.links[contact.patch]], k].T)
            found.append(program.solve(self.record.coordinates, self.programs))
        return found


class _BalanceProgram:
    """The linear program of one posture; forces are in multiples of the robot's weight.

    ``cuts`` are the unit normals (patch axes) of the half-spaces that bound forces and moments of grips, by patch and
    whether it is the moment. The next posture starts with them.
    """

    def __init__(
        self, gravity: np.ndarray, limit: np.ndarray, weight: float, cuts: dict[tuple[str, bool], list[np.ndarray]]
    ):
        self.cuts = cuts
        self.gravity, self.weight = gravity / weight, weight
        self.limited = np.flatnonzero(np.isfinite(limit))
        self.limit = limit[self.limited] / weight
        self.columns: list[np.ndarray] = []
        self.free: list[bool] = []
        self.normal_force_bounds: list[tuple[np.ndarray, float]] = []
        self.norm_bounds: list[tuple[tuple[str, bool], np.ndarray, int, float]] = []
        self.carried: dict[str, tuple[Contact, list[tuple[int, np.ndarray]]]] = {}
        self.count = 0

    def add(self, contact: Contact, R: np.ndarray, p: np.ndarray, J: np.ndarray) -> None:
        """Add a contact whose patch has the pose (R, p).

        Parameters
        ----------
        J : (6+n, 6) map from a wrench about the world's origin to generalised forces.
        """
        if contact.kind == "grasp":
            S = contact.selection
            wrench = np.concatenate([S[:, :3] @ R.T, S[:, 3:] @ R.T], axis=1).T
            columns = slice(self.count, self.count + wrench.shape[1])
            for is_moment, bound in ((False, contact.max_force), (True, contact.max_moment)):
                if np.isfinite(bound):
                    selection = S.T[3:] if is_moment else S.T[:3]
                    self.norm_bounds.append(((contact.patch, is_moment), selection, columns.start, bound / self.weight))
        else:
            axes = contact.axes_at(R)
            wrench = edge_wrenches(cone_edges(axes, contact.friction, CONE_EDGES), contact.points @ R.T)
            columns = slice(self.count, self.count + wrench.shape[1])
            if np.isfinite(contact.max_force):
                row = np.zeros(columns.stop)
                row[columns] = 1.0
                self.normal_force_bounds.append((row, contact.max_force / self.weight))
        about_origin = wrench.copy()
        about_origin[3:] += cross(p[:, None], wrench[:3])
        self._append(J @ about_origin, contact.kind == "grasp")
        if contact.carrier is not None:
            _, loads = self.carried.setdefault(contact.carrier.name, (contact, []))
            loads.append((columns.start, about_origin))

    def _append(self, columns: np.ndarray, free: bool) -> None:
        self.columns.append(columns)
        self.free += [free] * columns.shape[1]
        self.count += columns.shape[1]

    def _objects(self) -> tuple[np.ndarray, np.ndarray]:
        """Add the support forces of objects; return the balance equations of the objects about the world's origin.

        They are (6 objects, variables) rows and the wrenches that these must equal.
        """
        blocks, totals = [], []
        for contact, loads in self.carried.values():
            carrier = contact.carrier
            assert carrier is not None
            support = np.zeros((6, 0))
            if carrier.rest is not None:
                edges = cone_edges(carrier.rest.axes, carrier.rest.friction, CONE_EDGES)
                support = edge_wrenches(edges, carrier.rest.world_points)
            blocks.append([*((start, -wrench) for start, wrench in loads), (self.count, support)])
            weight = -carrier.mass * STANDARD_GRAVITY / self.weight
            totals.append(np.concatenate([weight, np.cross(carrier.com, weight)]))
            self._append(np.zeros((len(self.gravity), support.shape[1])), False)
        rows = np.zeros((6 * len(blocks), self.count))
        for k, block in enumerate(blocks):
            for start, wrench in block:
                rows[6 * k : 6 * k + 6, start : start + wrench.shape[1]] = wrench
        return rows, np.concatenate(totals) if totals else np.zeros(0)

    def solve(self, names: Sequence[str], programs: LinearPrograms) -> HoldingForces:
        """Return the balance of the posture."""
        object_rows, object_wrenches = self._objects()
        J = np.concatenate([np.zeros((len(self.gravity), 0)), *self.columns], axis=1)
        x = self._minimise(programs, J, object_rows, object_wrenches, elastic=False)
        missing = 0.0
        if x is None:
            x = self._minimise(programs, J, object_rows, object_wrenches, elastic=True)
            if x is None:
                return HoldingForces(np.inf, "", np.inf)
            missing = float(np.abs(x[self.count + 1 :]).max()) * self.weight
        if not len(self.limited):
            return HoldingForces(0.0, "", missing)
        tau = self.gravity[6:] - J[6:] @ x[: self.count]
        shares = np.abs(tau[self.limited]) / np.maximum(self.limit, np.finfo(float).tiny)
        i = int(np.argmax(shares))
        return HoldingForces(float(shares[i]), names[self.limited[i]], missing)

    def _minimise(
        self,
        programs: LinearPrograms,
        J: np.ndarray,
        object_rows: np.ndarray,
        object_wrenches: np.ndarray,
        elastic: bool,
    ) -> np.ndarray | None:
        """Return contact forces, torque share and, with ``elastic``, missing wrenches; None if infeasible.

        ``elastic`` allows a part of the balance to be missing, at a cost.
        """
        n, rows = self.count, len(self.limited)
        equalities = np.zeros((6 + len(object_wrenches), n + 1))
        equalities[:6, :n], equalities[6:, :n] = J[:6], object_rows
        torque = np.zeros((2 * rows, n + 1))
        torque[:rows, :n], torque[rows:, :n] = J[6:][self.limited], -J[6:][self.limited]
        torque[:, n] = -np.tile(self.limit, 2)
        gravity_torque = np.concatenate([self.gravity[6:][self.limited], -self.gravity[6:][self.limited]])
        A_parts, b_parts = [torque], [gravity_torque]
        for row, limit in self.normal_force_bounds:
            A_parts.append(np.concatenate([row, np.zeros(n + 1 - len(row))])[None])
            b_parts.append(np.array([limit]))
        cost = np.zeros(n + 1)
        cost[n] = 1.0
        free = np.append(self.free, False)
        if elastic:
            equalities = np.concatenate([equalities, np.eye(len(equalities)), -np.eye(len(equalities))], axis=1)
            cost = np.concatenate([cost, np.full(2 * len(equalities), MISSING_COST)])
            free = np.append(free, np.full(2 * len(equalities), False))
        balance = np.concatenate([self.gravity[:6], object_wrenches])
        for key, selection, start, limit in self.norm_bounds:
            for u in self.cuts.setdefault(key, []):
                A_parts.append(_row(u @ selection, start, n + 1))
                b_parts.append(np.array([CUT_SHARE * limit]))
        for _ in range(MAX_CUT_ROUNDS):
            A = np.concatenate(A_parts)
            A = np.concatenate([A, np.zeros((len(A), len(cost) - A.shape[1]))], axis=1)
            x = programs.solve(cost, equalities, balance, A, np.concatenate(b_parts), free)
            if x is None:
                return None
            within_bounds = True
            for key, selection, start, limit in self.norm_bounds:
                value = selection @ x[start : start + selection.shape[1]]
                size = float(np.linalg.norm(value))
                if size > limit:
                    within_bounds = False
                    self.cuts[key].append(value / size)
                    A_parts.append(_row(value / size @ selection, start, n + 1))
                    b_parts.append(np.array([CUT_SHARE * limit]))
            if within_bounds:
                return x
        return None


def _row(values: np.ndarray, start: int, length: int) -> np.ndarray:
    """Return a row (1, length) of zeros, with values from column ``start``."""
    row = np.zeros((1, length))
    row[0, start : start + len(values)] = values
    return row
