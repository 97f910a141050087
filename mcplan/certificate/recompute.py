"""A run in the coordinates of an engine, sample by sample, and what the engine says of it in those of the run."""

from dataclasses import dataclass

import numpy as np

from mcplan.certificate.engines.contract import Engine
from mcplan.certificate.engines.joints import Joints
from mcplan.sim.records import RobotRecord

STEP = 1e-4
"""s: between the instants from which the rate of energy is taken. The difference quotient of fourth order is off by
``STEP**4 E''''' / 30``, below rounding (some 1e-9 W) up to joint accelerations of 1e4 rad/s²."""


@dataclass(frozen=True, eq=False)
class Motion:
    """The state of a robot at N samples, and what acts on its P patches; as in a run.

    Parameters
    ----------
    q, v, vd : (N, 7+n), (N, 6+n), (N, 6+n).
    wrench : (N, P, 6).
    """

    q: np.ndarray
    v: np.ndarray
    vd: np.ndarray
    wrench: np.ndarray


class Recomputed:
    """What an engine recomputes of a motion.

    Parameters
    ----------
    engine : made of the same record.
    robot : the record.
    motion : N samples.

    Attributes
    ----------
    force : (N, 6+n) ``M vd + h - sum J' w`` in world axes, N and N m.
    com : (N, 3) m.
    R, p : (N, P, 3, 3), (N, P, 3) poses of the patch frames.
    twist : (N, P, 6) velocities of the patch origins, world axes.
    kinetic, potential : (N,) J, rotors included.
    """

    def __init__(self, engine: Engine, robot: RobotRecord, motion: Motion):
        self._engine, self._joints, self._motion = engine, Joints(robot), motion
        q, v, vd = motion.q, motion.v, motion.vd
        self._x, self._u, self._a = self._joints.state(q), self._joints.rate(q, v), self._joints.growth(q, v, vd)
        samples = [engine.sample(*row) for row in zip(self._x, self._u, self._a, motion.wrench, strict=True)]
        force, com, R, p, twist, kinetic, potential = (np.array(values) for values in zip(*samples, strict=True))
        self.force = self._joints.force(q, vd, force)
        self.com, self.R, self.p, self.twist = com, R, p, twist
        self.kinetic, self.potential = kinetic + self._joints.rotor_energy(v), potential

    def next_configuration(self, dt: float) -> np.ndarray:
        """Return what ``q`` of the following sample has to be, (N-1, 7+n): ``integrate(q, v+, dt)`` by the engine."""
        motion, joints = self._motion, self._joints
        u = joints.step_rate(motion.q[:-1], motion.v[1:], dt)
        after = [self._engine.integrate(*row, dt) for row in zip(self._x[:-1], u, strict=True)]
        rows = [joints.configuration(q, x) for q, x in zip(motion.q[:-1], after, strict=True)]
        return np.array(rows).reshape(-1, motion.q.shape[1])

    def energy_rate(self, rows: np.ndarray) -> np.ndarray:
        """Return ``dE/dt`` (k,) of samples by differences of the engine's energy along the motion, W.

            dE/dt = (8 (E(s) - E(-s)) - (E(2s) - E(-2s))) / 12 s,   x(s) = integrate(x, u, s), u(s) = u + s a

        Only the tangent of the curve counts, and ``dx/ds = u``, ``du/ds = a`` at ``s = 0``. Neither inverse dynamics
        nor Jacobians take part.
        """
        rates = []
        for x, u, a in zip(self._x[rows], self._u[rows], self._a[rows], strict=True):
            energy = [self._engine.energy(self._engine.integrate(x, u, s * STEP), u + s * STEP * a) for s in _AHEAD]
            rates.append(float(np.dot(_WEIGHT, energy)) / (12 * STEP))
        v, vd = self._motion.v[rows, 6:], self._motion.vd[rows, 6:]
        return np.array(rates) + (v * vd) @ self._joints.armature


_AHEAD, _WEIGHT = (-2.0, -1.0, 1.0, 2.0), (1.0, -8.0, 8.0, -1.0)
