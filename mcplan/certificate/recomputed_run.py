"""A run recomputed by the independent dynamics: motion, contact intervals, planned contacts and point forces."""

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from mcplan.certificate.independent import Mechanism, contact_deviation, deviation, rotation_of, rotation_vector
from mcplan.certificate.tolerances import Tolerances, tolerances_of
from mcplan.errors import RunError
from mcplan.record.records import ContactRecord
from mcplan.record.replica import rebuild_plan
from mcplan.record.run import Run

if TYPE_CHECKING:
    from mcplan.planning.plan import Plan
    from mcplan.scene.environment import Surface

NONE = -1
"""Index that stands for no contact."""


class RecomputedRun:
    """A run recomputed by the independent dynamics.

    Parameters
    ----------
    run : a run in which all numbers are finite.
    tolerances : allowed deviations; by default those of the run's physics.

    Attributes
    ----------
    mechanism, motion : the robot, and its recomputed motion.
    contacts : all planned contacts, each once.
    contact_poses : R, p and axes of each planned contact, on supports at their poses in the physics.
    selections : projector onto the constrained directions of each, (6, 6).
    normals, grasps, frictions : (C, 3) normals, (C,) mask of grasps, and (C,) friction coefficients in the physics.
    """

    def __init__(self, run: Run, tolerances: Tolerances | None = None):
        self.run, self.record = run, run.record
        self.tolerances = tolerances or tolerances_of(run.record.physics)
        links = [self.record.world.links.get(link.name, link) for link in self.record.robot.links]
        self.mechanism = Mechanism(self.record.robot.model_copy(update={"links": links}))
        self.motion = self.mechanism.motion(run.q, run.v, run.vd, run.wrench, run.patches)
        self.contacts: list[ContactRecord] = []
        for stance in run.record.plan.stances:
            self.contacts += [contact for contact in stance.contacts if contact not in self.contacts]
        self.contact_poses = [self._actual_pose(contact) for contact in self.contacts]
        self.selections = [_projector(contact) for contact in self.contacts]
        self.normals = np.array([axes[:, 2] for _, _, axes in self.contact_poses]).reshape(-1, 3)
        self.grasps = np.array([contact.kind == "grasp" for contact in self.contacts], bool)
        factor = self.record.world.friction
        self.frictions = np.array(
            [np.nan if c.friction is None else c.friction * factor.get(c.support, 1.0) for c in self.contacts]
        )

    @cached_property
    def plan(self) -> "Plan":
        """The plan with scenario and robot, rebuilt from the document in the record (even if the plan is in memory)."""
        try:
            return rebuild_plan(self.record)
        except (TypeError, ValueError, KeyError, AttributeError, OSError) as error:  # the document may be tampered with
            raise RunError(f"the plan in this run cannot be rebuilt: {type(error).__name__}: {error}") from error

    @cached_property
    def planned_surfaces(self) -> "dict[str, Surface]":
        """Surfaces by name, at their planned poses; empty if the plan cannot be rebuilt."""
        try:
            return {surface.name: surface for surface in self.plan.scenario.environment.surfaces}
        except RunError:
            return {}

    def section(self, name: str) -> dict:
        """Return a section of the scenario's document; empty if it is absent or invalid."""
        found = self.record.scenario.document.get(name)
        return found if isinstance(found, dict) else {}

    def time(self, k: int) -> str:
        """Return the time of a sample as text."""
        return f"t = {self.run.t[k]:.3f} s"

    def coordinate(self, i: int) -> str:
        """Return the name of a row of v."""
        base = ("base x", "base y", "base z", "base rotation x", "base rotation y", "base rotation z")
        return base[i] if i < 6 else self.record.joints[i - 6]

    @cached_property
    def contact_intervals(self) -> list[tuple[int, int, int, int]]:
        """Contact intervals: (index of patch, first sample, sample after the last, index of planned contact)."""
        found = []
        for column, patch in enumerate(self.run.patches):
            is_active = np.concatenate([[False], self.run.active[:, column], [False]])
            edges = np.flatnonzero(is_active[1:] != is_active[:-1])
            for first, end in zip(edges[::2], edges[1::2], strict=True):
                found.append((column, int(first), int(end), self._planned_contact(patch, int(first), int(end))))
        return found

    @cached_property
    def contact_index(self) -> np.ndarray:
        """Index of the planned contact of each patch at each sample, (N, P); NONE without contact."""
        target = np.full(self.run.active.shape, NONE)
        for column, first, end, contact in self.contact_intervals:
            target[first:end, column] = contact
        return target

    def pose_error(
        self,
        column: int,
        rows: slice,
        R: np.ndarray,
        p: np.ndarray,
        contact: int,
        object_pose: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return distance (m) and angle (rad) of a patch from a pose (R, p), in constrained directions of a contact.

        For a contact on an object, (R, p) holds at the pose ``object_pose`` (7,) of the object, and moves with it.
        """
        name = self.run.patches[column]
        R_patch, p_patch = self.motion.R[name][rows], self.motion.p[name][rows]
        if object_pose is not None and (q := self.carrier_poses(contact)) is not None:
            to_begin = rotation_of(object_pose[3:, None])[..., 0] @ rotation_of(q[rows, 3:].T).transpose(2, 1, 0)
            R_patch, p_patch = (
                to_begin @ R_patch,
                object_pose[:3] + np.einsum("kij,kj->ki", to_begin, p_patch - q[rows, :3]),
            )
        if contact != NONE and self.contacts[contact].radius:
            e = self._rolling_error(self.contacts[contact], R, p, R_patch, p_patch)
            return np.linalg.norm(e, axis=1), np.zeros(len(e))
        selection = np.eye(6) if contact == NONE else np.array(self.contacts[contact].selection)
        e = deviation(R.T @ R_patch, (p_patch - p) @ R, selection)
        return np.linalg.norm(e[:, :3], axis=1), np.linalg.norm(e[:, 3:], axis=1)

    def _rolling_error(
        self, ball: ContactRecord, R: np.ndarray, p: np.ndarray, R_patch: np.ndarray, p_patch: np.ndarray
    ) -> np.ndarray:
        """Return the deviation (K, 3) of a ball from pure rolling that starts at a pose (R, p), in contact axes.

        In physics driven by torques it is the error at the first sample plus the distance slid since then,

            p_k - p_0 - sum r dphi x n

        with the radius r, the normal n, and the rotation dphi from one sample to the next. In ``qp``, as in plans, the
        expected position is a function of ``phi``, the rotation from upright.
        """
        R0 = np.array(ball.R)
        k = len(R_patch) if self.record.physics == "qp" else 1
        offset = contact_deviation(ball, R0.T @ R_patch[:k], (p_patch[:k] - p) @ R0) - contact_deviation(
            ball, (R0.T @ R)[None], np.zeros((1, 3))
        )
        if k == len(R_patch):
            return offset[:, :3]
        rotation = rotation_vector(R_patch[1:] @ np.swapaxes(R_patch[:-1], 1, 2))
        rolled = np.cumsum(ball.radius * np.cross(rotation, np.array(ball.axes)[:, 2]), axis=0)
        slid = p_patch - p_patch[0] - np.concatenate([np.zeros((1, 3)), rolled])
        return offset[:, :3] + slid @ R0

    def planned_error(self, column: int, rows: slice, contact: int) -> tuple[np.ndarray, np.ndarray]:
        """Return distance (m) and angle (rad) of a patch from a planned contact."""
        pose = self.contacts[contact].carrier_pose
        return self.pose_error(
            column, rows, *self.contact_poses[contact][:2], contact, None if pose is None else np.array(pose)
        )

    def drift(self, column: int, rows: slice, contact: int) -> tuple[np.ndarray, np.ndarray]:
        """Return distance (m) and angle (rad) of a patch from its pose at the first of some samples."""
        name, q = self.run.patches[column], self.carrier_poses(contact)
        object_pose = None if q is None else q[rows.start]
        R, p = self.motion.R[name][rows.start], self.motion.p[name][rows.start]
        return self.pose_error(column, rows, R, p, contact, object_pose)

    def carrier_poses(self, contact: int) -> np.ndarray | None:
        """Return the poses (N, 7) of the object that a planned contact is on, or None."""
        name = None if contact == NONE else self.contacts[contact].carrier
        if name is None or self.run.object_q is None:
            return None
        return self.run.object_q[:, self.record.objects.index(name)]

    @cached_property
    def point_sample(self) -> np.ndarray:
        """Sample of every contact point, (K,)."""
        return self.run.point_sample()

    @cached_property
    def point_contact_index(self) -> np.ndarray:
        """Index of the planned contact of every contact point, (K,), or NONE."""
        if not self.run.patches:
            return np.full(len(self.run.point_patch), NONE)
        patch = self.run.point_patch
        return np.where(patch >= 0, self.contact_index[self.point_sample, np.maximum(patch, 0)], NONE)

    @cached_property
    def point_force_parts(self) -> tuple[np.ndarray, np.ndarray]:
        """Normal component, and magnitude of the tangential part, of every point's force, (K,), (K,) N.

        The normal is the recorded one (in ``qp`` the planned one). If faces are not exactly parallel, it is the normal
        of one of them or of two crossing edges; the check of contact normals bounds its deviation by ``point_tilt``.
        """
        run = self.run
        normal = self.support_normal if self.record.physics == "qp" else run.point_normal
        fn = np.sum(run.point_force * normal, axis=1)
        return fn, np.linalg.norm(run.point_force - fn[:, None] * normal, axis=1)

    @cached_property
    def support_normal(self) -> np.ndarray:
        """Normal of the support at every planned contact point, (K, 3); at other points the recorded normal.

        The normal of a support on an object turns with the object.
        """
        target, normal = self.point_contact_index, self.run.point_normal.copy()
        for c, contact in enumerate(self.contacts):
            points = target == c
            normal[points] = self.normal(c, self.point_sample[points])
            q = self.carrier_poses(c)
            if contact.carrier_pose is not None and q is not None:
                planned = rotation_of(np.array(contact.carrier_pose)[3:, None])[..., 0]
                rotation = rotation_of(q[self.point_sample[points], 3:].T)
                normal[points] = np.einsum("ijk,j->ki", rotation, planned.T @ self.normals[c])
        return normal

    @cached_property
    def point_tilt(self) -> np.ndarray:
        """Angle (K,), rad, between patch and support at every planned contact point; 0 at other points."""
        tilt, target = np.zeros(len(self.point_contact_index)), self.point_contact_index
        for column, patch in enumerate(self.run.patches):
            points = (target != NONE) & (self.run.point_patch == column)
            patch_normal = self.motion.R[patch][self.point_sample[points], :, 2]
            tilt[points] = np.linalg.norm(patch_normal + self.support_normal[points], axis=1)
        return tilt

    def normal(self, contact: int, rows: np.ndarray) -> np.ndarray:
        """Return the normal (k, 3) of a planned contact at samples; it turns with a rolling patch."""
        planned = self.contacts[contact]
        if not planned.rolls:
            return np.broadcast_to(self.normals[contact], (len(rows), 3))
        in_patch = self.contact_poses[contact][0].T @ self.normals[contact]
        return self.motion.R[planned.patch][rows] @ in_patch

    def point_name(self, i: int) -> str:
        """Return name and time of a contact point as text."""
        k, patch = int(self.point_sample[i]), int(self.run.point_patch[i])
        if patch < 0:
            names = [*self.record.links, *self.record.objects]
            return f"{names[self.run.point_link[i]]} at {self.time(k)}"
        first = int(self.run.point_start[k])
        number = int(np.count_nonzero(self.run.point_patch[first:i] == patch))
        return f"point {number} of {self.run.patches[patch]} at {self.time(k)}"

    def _actual_pose(self, contact: ContactRecord) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return R, p and axes of a planned contact, with its surface at the pose in the physics."""
        R, p, axes = (np.array(value) for value in (contact.R, contact.p, contact.axes))
        actual = self.record.world.surfaces.get(contact.support)
        if actual is None:
            return R, p, axes
        planned = self.planned_surfaces.get(contact.support)
        if planned is None:
            return R, p, axes
        rotation = np.array(actual.R) @ planned.R.T
        return rotation @ R, np.array(actual.p) + rotation @ (p - planned.p), rotation @ axes

    def _planned_contact(self, patch: str, first: int, end: int) -> int:
        """Return the index of a patch's planned contact in an interval: the nearest one of the stances at that time.

        The previous stance counts too, because a patch may touch its previous support again while it is lifted.
        """
        stances = self.record.plan.stances
        phase_stances = [self.record.phases[i].stance for i in np.unique(self.run.phase[first:end])]
        indices = [i for i in phase_stances if i is not None]
        candidates = list(stances)
        if indices and None not in phase_stances:
            start = max(min(indices) - 1, 0)
            previous = [s for s in stances[:start] if s.contact(patch)]
            candidates = [*previous[-1:], *stances[start : max(indices) + 2]]
        options = [s.contact(patch) for s in candidates if s.contact(patch)] or [s.contact(patch) for s in stances]
        best, nearest = NONE, np.inf
        for contact in options:
            if contact is None:
                continue
            index, column = self.contacts.index(contact), self.run.patches.index(patch)
            distance, angle = self.planned_error(column, slice(first, first + 1), index)
            if best == NONE or distance[0] + 0.1 * angle[0] < nearest:
                best, nearest = index, float(distance[0] + 0.1 * angle[0])
        return best


def _projector(contact: ContactRecord) -> np.ndarray:
    """Return ``S' S``, the projector onto the constrained directions, in patch axes."""
    S = np.array(contact.selection).reshape(-1, 6)
    return S.T @ S
