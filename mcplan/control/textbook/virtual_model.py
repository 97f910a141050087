"""Virtual model control: virtual springs and dampers act on the body, and the contacts bear their forces.

    F = m kp (c* - c) - m kd c',      n = -k_r log(R R*') - k_w w                 virtual force and moment
    [1  ..  1; [r_1]x .. [r_k]x] f = rows of the base in g + J_v' F_v            (3.119), minimum-norm forces f
    tau = g_j + J_v,j' F_v - J_c,j' f     (j: columns of the joints)             (3.118, 3.120)

Quasi-static: inertia and velocity terms are neglected. Forces act at the corners of the contacts and are not bounded:
the robot stands only while the forces of minimum norm press.

Source: S1 (docs/sources.md), sec. 3.11; Pratt, Chew, Torres, Dilworth & Pratt, Virtual model control, IJRR 2001.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from mcplan.control.textbook.joint_space import gravity_torque
from mcplan.errors import InputError
from mcplan.motion.spline import Spline
from mcplan.robot.pose import cross_matrix, rotation_from_quat
from mcplan.robot.robot import Robot
from mcplan.robot.terms import Terms
from mcplan.scene.contact import Contact
from mcplan.util.text import summary

SQUARED_LEVER_M2 = 1e-2
"""Squared lever arm by which a grasp's moment is compared with its force (m²): 1 N m costs as much as 10 N."""


class VirtualModelControl:
    """Virtual model control with springs at the centre of mass, the base and the joints.

    Parameters
    ----------
    robot : Robot
    contacts : contacts that bear the robot; for a robot with a fixed base its contact ``fixed_base``.
    q : (nq,) posture that gives the set-points of centre of mass, base orientation and joints.
    com : (3,) another set-point of the centre of mass, m; it is reached within ``over`` s.
    kp, kd : gains of the centre of mass per unit of mass, 1/s² and 1/s; ``kd`` None is critical damping.
    turn_kp, turn_kd : gains of the base orientation, N m/rad and N m s/rad.
    joint_kp, joint_kd : gains of the joints, N m/rad and N m s/rad.
    """

    __repr__ = summary

    def __init__(
        self,
        robot: Robot,
        contacts: Sequence[Contact],
        q: ArrayLike,
        com: ArrayLike | None = None,
        over: float = 2.0,
        kp: float = 40.0,
        kd: float | None = None,
        turn_kp: float = 800.0,
        turn_kd: float = 80.0,
        joint_kp: float = 60.0,
        joint_kd: float = 6.0,
    ):
        if not contacts:
            raise InputError("contacts: virtual model control needs at least one that bears the robot")
        q = np.asarray(q, float)
        self.robot, self.contacts = robot, tuple(contacts)
        self.base = robot.link_names[0]
        self.frames = (self.base, *(contact.patch for contact in contacts))
        start = robot.com(q)
        self.com = Spline.to_rest(start, start if com is None else np.asarray(com, float), over)
        self.R, self.joints = rotation_from_quat(q[3:7]), q[7:].copy()
        self.kp, self.kd = float(kp), 2.0 * float(np.sqrt(kp)) if kd is None else float(kd)
        self.turn_kp, self.turn_kd = float(turn_kp), float(turn_kd)
        self.joint_kp, self.joint_kd = float(joint_kp), float(joint_kd)

    def torque(self, t: float, terms: Terms, wrenches: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the torques (n,)."""
        required = gravity_torque(terms, self.robot.mass) + self.virtual_force(t, terms)
        force_map = self.contact_map(terms)
        f = np.linalg.pinv(force_map[:6], 1e-9) @ required[:6]
        return np.asarray((required - force_map @ f)[6:])

    def virtual_force(self, t: float, terms: Terms) -> np.ndarray:
        """Return the generalized force (nv,) of the springs and dampers."""
        m, reference, base = self.robot.mass, self.com.sample(t), terms.frame(self.base)
        F = m * (self.kp * (reference.value - terms.com) + self.kd * (reference.velocity - terms.com_velocity))
        turn = Rotation.from_matrix(self.R @ base.R.T).as_rotvec()
        n = self.turn_kp * turn - self.turn_kd * base.velocity[3:]
        force = terms.com_jacobian.T @ F + base.J[3:].T @ n
        force[6:] += self.joint_kp * (self.joints - terms.q[7:]) - self.joint_kd * terms.v[6:]
        return np.asarray(force)

    def contact_map(self, terms: Terms) -> np.ndarray:
        """Return the map (nv, k) from point forces, and wrenches of grasps, to the generalized force."""
        columns = []
        for contact in self.contacts:
            frame = terms.frame(contact.patch)
            if contact.kind == "grasp":
                columns.append(frame.J.T @ np.diag([1.0, 1.0, 1.0, *np.full(3, np.sqrt(SQUARED_LEVER_M2))]))
                continue
            arms = contact.points @ contact.turned(frame.R).T
            columns += [(frame.J[:3] - cross_matrix(arm) @ frame.J[3:]).T for arm in arms]
        return np.hstack(columns)
