"""A run in the coordinates of an engine, sample by sample, and what the engine says of it in those of the run.

Distances by an engine: the pairs that the certificate's line on clearance judges, at samples of the run, one by one.

Which pairs have to stay apart, and which may touch, is the certificate's rule; how far apart they are is measured by
the engine between shapes that are read anew from the texts in the run (``engines/collision_shapes.py``). Compared are
signed distances up to ``NEAR`` of whatever is named in a pair (of links with several shapes the least), at samples that
are ``PERIOD`` apart and at the last one, as that line does: where all of them agree, so does the clearance.
"""


from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mcplan.certificate.engines.contract import Engine, Unsupported
from mcplan.certificate.engines.joints import Joints
from mcplan.certificate.evidence import Evidence
from mcplan.certificate.independent import rotation_of
from mcplan.certificate.motion_checks import worst
from mcplan.certificate.report import Check
from mcplan.collision.model import CollisionModel
from mcplan.errors import InputError
from mcplan.record.records import RobotRecord
from mcplan.record.world import with_flaws

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


NEAR, PERIOD = 0.05, 0.02
"""m, s."""

APART = 1e-6
"""m: how far two distances may differ: both sides iterate to less, and the distance of convex solids is one number."""

DEEP = 1e-4
"""m: the same where shapes overlap. The depth is the least over all directions, which has several local minima."""


def distance_checks(engine: type[Engine], evidence: Evidence) -> Iterator[Check]:
    """Yield the line of distances, if the engine measures them.

    A run that does not keep its shapes is not compared, and the line says so; nor is one with shapes that the engine
    does not have.
    """
    run, name = evidence.run, f"{engine.name}: distances"
    if engine.shapes is Engine.shapes:
        return
    kept = "robot.urdf" in run.record.robot.files and (run.live_plan is not None or run.record.plan.document)
    try:
        shapes = engine.shapes(run.record) if kept else None
        scenario = run.scenario if kept else None
    except Unsupported as error:
        yield Check(name, None, "m", "", True, f"not compared: {error}")
        return
    except InputError as error:
        yield Check(name, None, "m", f"<= {APART:g}", False, "", f"{engine.name}: {error}")
        return
    if shapes is None or scenario is None:
        yield Check(name, None, "m", "", True, "not compared: this run keeps no files of robot and plan")
        return
    model = CollisionModel(scenario.robot, with_flaws(scenario.environment, run.record.world))
    pairs = list(dict.fromkeys((pair.a, pair.b) for pair in model.pairs))
    if not pairs:
        yield Check(name, None, "m", "", True, "there is nothing that could collide")
        return
    number = {pair: i for i, pair in enumerate(pairs)}
    step = max(1, round(PERIOD / run.dt))
    rows = np.unique([*range(0, len(run), step), len(run) - 1])
    x = Joints(run.record.robot).state(run.q[rows])
    ours, theirs = np.full((len(rows), len(pairs)), NEAR), np.empty((len(rows), len(pairs)))
    for k, row in enumerate(rows):
        poses = {} if run.object_q is None else dict(zip(run.record.objects, run.object_q[row], strict=True))
        places = {name: (rotation_of(pose[3:, None])[..., 0], pose[:3]) for name, pose in poses.items()}
        q = np.concatenate([x[k, :7], run.q[row, 7:]])
        near = model.distances(q, NEAR, objects=places)
        for pair, distance in zip(near.pairs, near.distance, strict=True):
            i = number[pair.a, pair.b]
            ours[k, i] = min(ours[k, i], distance)
        theirs[k] = shapes.distances(x[k], poses, pairs, NEAR)
    off, allowed = np.abs(theirs - ours), np.where(np.minimum(ours, theirs) < 0, DEEP, APART)
    k, i = worst(off / allowed)
    value, (a, b) = float(off[k, i]), pairs[i]
    where = f"{a} and {b}, {evidence.time(int(rows[k]))}"
    passed = bool(off[k, i] <= allowed[k, i])
    failure = "" if passed else (
        f"{engine.name}: distance of {where}: {theirs[k, i]:.9g} instead of {ours[k, i]:.9g} m "
        f"({np.count_nonzero(off > allowed)} of {np.count_nonzero(np.minimum(ours, theirs) < NEAR)} distances)"
    )  # fmt: skip
    yield Check(name, value, "m", f"<= {allowed[k, i]:g}", passed, where, failure)
