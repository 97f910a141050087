"""Contact force unknowns of static equilibrium, with friction cones, force limits and torque limits.

The stacked unknown ``f`` contains for each contact the forces at its points in the contact's axes ``(t1, t2, n)``, or
for a grasp one wrench at the patch origin in the patch's axes. The admissible set has two forms:

    by faces    F f <= upper                          pyramids of ``faces`` faces, for quadratic programs
    by rays     f = V x,  x >= 0,  C x <= 1           the same set, for the simplex method; V has the rays as columns,
                                                      C the force limits of contacts ("caps")

    pyramid     cos(a) ft1 + sin(a) ft2 <= mu cos(pi / faces) fn,   a = 2 pi k / faces      (inscribed in the true cone)
    ray         (mu cos(b), mu sin(b), 1),                          b = (2 k + 1) pi / faces,   k = 0 ... faces - 1

A contact on a free object loads the support of the object: unknown support forces at the object's corners bear its
weight and the forces of the robot. So the robot may lean on a box only if the box neither slides nor tips; only the
robot's contacts bear a box in the air (S0 of docs/sources.md, sec. 11: robot and object are one system).

A grasp may pull: force and moment each lie in a polytope of 26 faces inscribed in the ball of ``max_force`` or
``max_moment``. Pyramid and polytope are those of the controller. `mcplan.core.statics.rays` computes their rays; for
exact cones and balls it computes further rays while the linear program is solved.

Torque limits are rows of a linear program over contact forces, with slack variables s:

    tau = h(q) - sum J_i' f_i,   |tau| <= share limit
    as   -J' f / limit + s = share - h / limit,   0 <= s <= 2 share
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from scipy.spatial import ConvexHull

from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.core.statics.rays import BALL, CONE, Triples, inner_faces, wrench_map
from mcplan.optimize.polytope import ball_polytope, friction_pyramid
from mcplan.robot.pose import cross_matrix
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Carrier, Contact
from mcplan.scene.polygon import area

MAX_GRASP_LIMIT = 1e4
"""Bound on the force (N) and moment (N m) of a grasp without limits, so that its admissible set is a polytope."""

SOLE_AREA_M2 = 0.03
"""Area (m²) of a contact whose normal forces have weight 1 in the norm of the forces."""

MIN_AREA_M2 = 0.002
"""Area (m²) that smaller contacts (edges, points, grasps) are taken to have in that norm."""


@cache
def ball_rays() -> np.ndarray:
    """Return the vertices (k, 3) of the polytope inscribed in the unit ball."""
    facets = ConvexHull(ball_polytope()).equations  # polar dual: the facet n x = -b corresponds to the vertex n / -b
    return np.unique(np.round(facets[:, :3] / -facets[:, 3:], 12), axis=0)


@dataclass(frozen=True)
class ContactUnknowns:
    """Unknowns of one contact.

    Attributes
    ----------
    contact : the contact.
    entries : its slice of ``f``.
    map : (6, size) wrench in world axes about the world's origin, per unit of each unknown.
    """

    contact: Contact
    entries: slice
    map: np.ndarray

    @property
    def is_grasp(self) -> bool:
        """Whether the unknown is a wrench in patch axes."""
        return self.contact.kind == "grasp"

    @property
    def norm(self) -> np.ndarray:
        """Weight (size,) of the square of each unknown in the norm of the forces.

        It is inversely proportional to the area of the contact, so that soles carry most. A tangential force counts
        twice as much as a normal one, so that little friction is used; a grasp's moment of 1 N m counts like 5 N.
        """
        corners = self.contact.points[:, :2]
        weight = SOLE_AREA_M2 / max(abs(area(corners)), MIN_AREA_M2)
        if self.is_grasp:
            return weight * np.array([1.0, 1.0, 1.0, 25.0, 25.0, 25.0])
        return weight * np.tile([4.0, 4.0, 1.0], self.map.shape[1] // 3)


def moments_about(map_: np.ndarray, point: np.ndarray) -> np.ndarray:
    """Shift a wrench map (6, k) from the world's origin to ``point``."""
    shifted = map_.copy()
    shifted[3:] -= cross_matrix(point) @ map_[:3]
    return shifted


def _axes(axes: object) -> tuple[str, ...]:
    """Return axis names of a file entry: one name, several, or none."""
    return tuple(str(axis) for axis in axes) if isinstance(axes, (str, list, tuple)) else ()


class ForceUnknowns:
    """The unknown contact forces of the robot, and of the supports of the objects that it touches.

    Parameters
    ----------
    contacts : the contacts that may carry load.
    faces : faces of each friction pyramid.
    unit : normal force (N) of a ray of a friction cone; with the robot's weight the variables x are of order one.

    Attributes
    ----------
    size : number of unknowns.
    triples : the unknowns in groups of three (force of a point, or force or moment of a grasp), with their bounds.
    caps : number of caps (rows of C).
    blocks : unknowns of each contact of the robot.
    map : (6, size) from ``f`` to the wrench on the robot about the world's origin (force, then moment), world axes.
    equal, equal_to : (k, size), (k,): ``equal f = equal_to``. The wrenches of a contact in its free directions
        (``slide``, ``hinge``), in patch axes at the patch origin, vanish; the wrench on an object, about its centre of
        mass in world axes, balances its weight (N, N m).
    """

    def __init__(self, contacts: Sequence[Contact], faces: int = 8, unit: float = 1.0):
        self.faces = faces
        self.unit = unit
        carriers = {contact.carrier.name: contact.carrier for contact in contacts if contact.carrier is not None}
        robot_count = len(contacts)
        resting = [carrier for carrier in carriers.values() if carrier.rest is not None]
        contacts = [*contacts, *(carrier.rest for carrier in resting if carrier.rest is not None)]
        sizes = [2 if contact.kind == "grasp" else len(contact.points) for contact in contacts]
        count = sum(sizes)
        position, axes, is_moment = np.empty((count, 3)), np.empty((count, 3, 3)), np.zeros(count, bool)
        self.triples = triples = Triples(
            np.full(count, CONE), np.empty(count), np.full(count, unit), np.full(count, -1), np.zeros(count)
        )
        self.caps = 0
        first = 0
        for contact, size in zip(contacts, sizes, strict=True):
            triple_slice = slice(first, first + size)
            axes[triple_slice] = contact.axes
            if contact.kind == "grasp":
                position[triple_slice], axes[triple_slice], is_moment[first + 1] = contact.p, contact.R, True
                triples.kind[triple_slice], triples.length[triple_slice] = BALL, 1.0
                triples.bound[triple_slice] = np.minimum((contact.max_force, contact.max_moment), MAX_GRASP_LIMIT)
                triples.cap[triple_slice], triples.share[triple_slice] = (self.caps, self.caps + 1), 1.0
                self.caps += 2
            else:
                position[triple_slice], triples.bound[triple_slice] = contact.world_points, contact.friction
                if contact.max_force < np.inf:
                    triples.cap[triple_slice], triples.share[triple_slice] = self.caps, unit / contact.max_force
                    self.caps += 1
            first += size
        self.size = 3 * count
        self.map = np.empty((6, self.size))
        wrench_map(position, axes, is_moment, self.map)
        ends = 3 * np.cumsum([0, *sizes])
        blocks = [
            ContactUnknowns(contact, slice(begin, end), self.map[:, begin:end])
            for contact, begin, end in zip(contacts, ends[:-1].tolist(), ends[1:].tolist(), strict=True)
        ]
        self.blocks, self._rests = blocks[:robot_count], blocks[robot_count:]
        equal = [self._free_rows(block) for block in self.blocks if block.contact.options]
        equal_to = [np.zeros(len(rows)) for rows in equal]
        rests = dict(zip((carrier.name for carrier in resting), self._rests, strict=True))
        for carrier in carriers.values():
            equal.append(self._object_rows(carrier, rests.get(carrier.name)))
            equal_to.append(np.array([0.0, 0.0, carrier.mass * GRAVITY, 0.0, 0.0, 0.0]))
        self.map[:, ends[robot_count] :] = 0.0  # supports of objects act on the robot only through its contacts
        self.equal = np.vstack(equal) if equal else np.zeros((0, self.size))
        self.equal_to = np.concatenate(equal_to) if equal else np.zeros(0)

    def without_equalities(self) -> "ForceUnknowns":
        """Return the same unknowns without ``equal``, for programs that allow residuals of those rows."""
        free = copy(self)
        free.equal, free.equal_to = np.zeros((0, self.size)), np.zeros(0)
        return free

    @cached_property
    def norm(self) -> np.ndarray:
        """Weights (size,) of ``f^2`` in the norm of the forces, see `ContactUnknowns.norm`."""
        return np.concatenate([np.zeros(0), *(block.norm for block in (*self.blocks, *self._rests))])

    @property
    def frictionless(self) -> np.ndarray:
        """Indices (k,) of the unknowns that are zero: tangential forces of points without friction."""
        points = np.flatnonzero((self.triples.kind == CONE) & (self.triples.bound <= 0.0))
        return (3 * points[:, None] + np.arange(2)).ravel()

    def load_rows(self) -> np.ndarray:
        """Return the rows (k, size) of the normal force of each contact of the robot; for a grasp, the upward force."""
        rows = np.zeros((len(self.blocks), self.size))
        for row, block in zip(rows, self.blocks, strict=True):
            normal = [0.0, 0.0, 1.0] if block.is_grasp else block.contact.normal
            row[block.entries] = normal @ block.map[:3]
        return rows

    def _free_rows(self, block: ContactUnknowns) -> np.ndarray:
        """Return the rows (k, size) of a contact's wrench along its free directions."""
        options, R = block.contact.options, block.contact.R
        local = block.map.copy()
        local[3:] -= cross_matrix(block.contact.p) @ local[:3]
        free_rows = [R[:, "xyz".index(axis)] @ local[:3] for axis in _axes(options.get("slide"))]
        free_rows += [R[:, "xyz".index(axis)] @ local[3:] for axis in _axes(options.get("hinge"))]
        rows = np.zeros((len(free_rows), self.size))
        for row, values in zip(rows, free_rows, strict=True):
            row[block.entries] = values
        return rows

    def _object_rows(self, carrier: Carrier, rest: ContactUnknowns | None) -> np.ndarray:
        """Return the rows (6, size) of the wrench on an object about its centre of mass, from support and robot."""
        rows = np.zeros((6, self.size))
        if rest is not None:
            rows[:, rest.entries] = rest.map
        for block in self.blocks:
            if block.contact.carrier is not None and block.contact.carrier.name == carrier.name:
                rows[:, block.entries] = -block.map
        return moments_about(rows, carrier.com)

    def wrenches(self, f: np.ndarray, origins: dict[str, np.ndarray] | None = None) -> dict[str, np.ndarray]:
        """Return each patch's wrench (6,) at its origin in world axes (N, N m).

        ``origins`` are the patch origins at a posture; they differ from those of the contact if a rotation is free.
        """
        result = {}
        for block in self.blocks:
            wrench = block.map @ f[block.entries]
            origin = block.contact.p if origins is None else origins[block.contact.patch]
            wrench[3:] -= cross_matrix(origin) @ wrench[:3]
            result[block.contact.patch] = wrench
        return result

    def point_forces(self, f: np.ndarray) -> dict[str, np.ndarray]:
        """Return each patch's forces at its contact points (k, 3) in world axes (N); a grasp's at its origin."""
        result = {}
        for block in self.blocks:
            if block.is_grasp:
                result[block.contact.patch] = (block.contact.R @ f[block.entries][:3])[None, :]
            else:
                result[block.contact.patch] = f[block.entries].reshape(-1, 3) @ block.contact.axes.T
        return result

    def face_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Return ``F`` (k, size) and ``upper`` (k,) of the admissible set by faces."""
        pyramid, ball = friction_pyramid(self.faces), ball_polytope()
        ball_count = int((self.triples.kind == BALL).sum())
        cone_count = len(self.triples.kind) - ball_count
        max_rows = cone_count * (self.faces + 1) + ball_count * len(ball) + self.caps
        F, upper = np.zeros((max_rows, self.size)), np.zeros(max_rows)
        count = inner_faces(self.triples, self.caps, pyramid, ball, F, upper)
        return F[:count], upper[:count]


@dataclass(frozen=True)
class TorqueRows:
    """Torque limits as rows of a linear program, see the module's docstring; scaled by the limits.

    Attributes
    ----------
    map : (k, size) ``-J' / limit``.
    rhs : (k,) ``share - h / limit``; the slack of each row lies between 0 and ``2 share``.
    share : usable fraction of the limits.
    joints : (k,) indices of the joints.
    """

    map: np.ndarray
    rhs: np.ndarray
    share: float
    joints: np.ndarray

    @classmethod
    def at(cls, robot: Robot, q: np.ndarray, forces: ForceUnknowns, share: float = 1.0) -> "TorqueRows":
        """Return the rows of a posture."""
        joints = np.flatnonzero(np.isfinite(robot.limits.torque))
        limit = robot.usable_torque[joints]
        gravity_share = robot.nonlinear_effects(q, np.zeros(robot.nv))[6:][joints] / limit
        force_map = -joint_torque_map(robot, q, forces)[joints] / limit[:, None]
        return cls(force_map, share - gravity_share, share, joints)

    def push(self, robot: Robot, q: np.ndarray) -> np.ndarray:
        """Return the map (k, 3) from a force at the centre of mass (N) to the rows.

        The force is distributed over the links in proportion to their mass, like a tilt of gravity.
        """
        return -robot.com_jacobian(q)[:, 6:].T[self.joints] / robot.usable_torque[self.joints][:, None]


def joint_torque_map(robot: Robot, q: np.ndarray, forces: ForceUnknowns) -> np.ndarray:
    """Return ``J'`` (n, size), the map from contact forces to joint torques."""
    result = np.zeros((robot.n, forces.size))
    for block in forces.blocks:
        J = robot.frame_jacobian(q, block.contact.patch)
        p = robot.frame_pose(q, block.contact.patch)[:3, 3]
        about_world = J.copy()
        about_world[:3] += cross_matrix(p) @ J[3:]
        result[:, block.entries] = about_world[:, 6:].T @ block.map
    return result
