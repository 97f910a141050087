"""Active limits of a time parameterisation: at each point of its path, the limit that bounds its speed.

Rest is within all limits, and what a law asks for, (sdd, sd²), grows along a ray from there. So each limit has a part
of it that is used: 1 where the law is at the limit, ``1 / k`` where k times as much would be. The limit that is used
most bounds the law; where none is used by more than `LOOSE`, the law is bound by its neighbours in time.

What forces allow is one linear program per place, with the contact forces f and k as unknowns::

    maximise k   with   S' tau + G f = hold + k (of_u u + of_x x),   F f <= upper,   |tau| <= limit

Its multipliers tell what more of would help: of the torque of a joint, of the friction coefficient of a contact, of the
size of a patch, of what a grip or a contact may bear. Named is that of which one part in a hundred more helps most.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

from mcplan.optimize.path_program import PathProgram, law_basis
from mcplan.planning.timing.path_dynamics import PathDynamics, joint_speeds
from mcplan.planning.timing.retiming import TOUCHDOWN, VELOCITY, Retimer
from mcplan.planning.transition.transition import Segment
from mcplan.robot.robot import Robot
from mcplan.statics.contact_forces import ContactUnknowns, ForceUnknowns

LOOSE = 0.8
"""Used share from which a limit counts as active: a smooth time parameterization stays below limits between nodes."""

EVERY = 2
"""Every so many spline pieces of a time parameterization, one is evaluated."""

MOST = 100.0
"""Multiple of the required forces beyond which contact forces are no limit."""

NOTHING = "smoothness"
TORQUE, FRICTION, PRESSURE, GRIP, FORCE = "torque", "friction", "pressure", "grip", "largest force"
ACCELERATION, WEIGHT, TURN = "acceleration", "weight on contacts", "jerk of the centre of mass"


class Bound(NamedTuple):
    """Active limit at a time (s): kind, owner (joint or patch; may be empty), and used share."""

    t: float
    kind: str
    whose: str
    used: float

    @property
    def name(self) -> str:
        """Format as text."""
        return f"{self.kind}, {self.whose}" if self.whose else self.kind


class Used(NamedTuple):
    """Used share of a limit."""

    kind: str
    whose: str
    part: float


def bounds(retimer: Retimer, segment: Segment) -> tuple[Bound, ...]:
    """Return the active limits of a segment at times along it; empty without a time parameterization."""
    timing = segment.law
    if timing is None:
        return ()
    basis, robot = law_basis(), retimer.robot
    path, _ = PathDynamics.pair(robot, segment)
    forces = retimer.forces(path, timing.kept)
    program = retimer.program_at(path, forces)
    rates = retimer.rates(path, timing.kept)
    found = []
    for i in basis.middle[::EVERY].tolist():
        before, t, after = (timing.time_of(path.length * basis.s[k]) for k in (i - 1, i, i + 1))
        _, rate, change = timing.at(t)
        bend = (timing.at(after)[2] - timing.at(before)[2]) / (path.length * (basis.s[i + 1] - basis.s[i - 1]))
        used = [
            *_speeds(retimer, path, rates, i, rate),
            *_accelerations(retimer, path, i, rate, change),
            Used(TURN, "", float(abs(path.along[i] @ (change, rate**2)) / program.start[i])),
            Used(TURN, "", float(path.speed[i] * abs(bend) * rate / retimer.pace.com_jerk)),
            *_forces(robot, path, program, forces.of_contacts, i, (change, rate * rate)),
        ]
        most = max(used, key=lambda one: one.part)
        what = (most.kind, most.whose) if most.part > LOOSE else (NOTHING, "")
        found.append(Bound(t, *what, most.part))
    return tuple(found)


def shares(found: Sequence[Bound], duration: float) -> dict[str, float]:
    """Return the time (s) in which each limit is active, the longest first."""
    if not found:
        return {}
    times = [bound.t for bound in found]
    middles = [0.0, *(0.5 * (a + b) for a, b in pairwise(times)), duration]
    parts: dict[str, float] = {}
    for bound, (begin, end) in zip(found, pairwise(middles), strict=True):
        parts[bound.name] = parts.get(bound.name, 0.0) + (end - begin) / duration
    return dict(sorted(parts.items(), key=lambda item: -item[1]))


def _speeds(retimer: Retimer, path: PathDynamics, rates: dict[str, np.ndarray], i: int, rate: float) -> Iterator[Used]:
    """Yield the used shares of the bounds of the rate."""
    for kind, most in rates.items():
        whose = ""
        if kind == VELOCITY:
            whose = _joint(retimer.robot, int(np.argmax(path.joints[i] / joint_speeds(retimer.robot, 1.0))))
        elif kind == TOUCHDOWN:
            whose = path.arriving[int(np.argmax(path.closing[i])) % len(path.arriving)].patch
        yield Used(kind, whose, float((rate / most[i]) ** 2))


def _accelerations(retimer: Retimer, path: PathDynamics, i: int, rate: float, change: float) -> Iterator[Used]:
    """Yield the used shares of the bounds of accelerations of joints, base and centre of mass."""
    pace, robot = retimer.pace, retimer.robot
    vd = np.abs(path.vd[i] * rate**2 + path.v[i] * change)[3:]
    k = int(np.argmax(vd))
    yield Used(ACCELERATION, "the base" if k < 3 else _joint(robot, k - 3), float(vd[k] / pace.acceleration))
    rise = path.height[i] @ (change, rate**2)
    yield Used(WEIGHT, "", float(abs(rise) / retimer.rise))


def _forces(
    robot: Robot, path: PathDynamics, program: PathProgram, forces: ForceUnknowns, i: int, node: tuple[float, float]
) -> Iterator[Used]:
    """Yield the used shares of joint and contact limits, by the limit whose increase would help."""
    asked, joints, rows = program.of_u[i] * node[0] + program.of_x[i] * node[1], 6 + program.limited, len(program.faces)
    A, b, C, d = program.forces_at(i, program.hold[i])
    A = np.column_stack([A, np.concatenate([np.zeros(rows), asked[joints], -asked[joints]])])
    C = np.column_stack([C, np.concatenate([-asked[:6], np.zeros(len(program.equal))])])
    cost = np.zeros(forces.size + 1)
    cost[-1] = -1.0
    limits = [(None, None)] * forces.size + [(0.0, MOST)]
    answer = linprog(cost, A, b, C, d, limits, method="highs")
    if answer.status != 0 or answer.x[-1] >= MOST:
        return
    f, y = answer.x[:-1], -answer.ineqlin.marginals
    upper, lower = y[rows:].reshape(2, -1)
    worth = np.zeros(len(asked))  # of each generalised force that contacts exert
    worth[:6], worth[joints] = -answer.eqlin.marginals[:6], lower - upper
    gains = {
        (TORQUE, _joint(robot, int(j))): float(gain)
        for j, gain in zip(program.limited, (upper + lower) * program.limit, strict=True)
    }
    against = program.faces.T @ y[:rows]
    for block in forces.blocks:
        turning = path.jacobians[block.contact.patch][i, 3:] @ worth
        gains |= _of_contact(block, f[block.place], against[block.place], turning)
    (kind, whose), _ = max(gains.items(), key=lambda item: item[1])
    yield Used(kind, whose, float(1.0 / max(answer.x[-1], 1.0 / MOST)))


def _of_contact(
    block: ContactUnknowns, f: np.ndarray, against: np.ndarray, turning: np.ndarray
) -> dict[tuple[str, str], float]:
    """Return the sensitivity to each limit of a contact, by kind and patch.

    Parameters
    ----------
    f, against : (size,) its forces, and what its limits do to each.
    turning : (3,) what a moment (world axes) of it would help.
    """
    contact = block.contact
    if block.is_grasp:
        return {(GRIP, contact.patch): float(abs(f @ against))}
    force, normal = f.reshape(-1, 3), against.reshape(-1, 3)[:, 2]
    arms = contact.world_points - contact.world_points.mean(axis=0)
    moment = np.cross(arms, force @ contact.axes.T).sum(axis=0)
    return {
        (FRICTION, contact.patch): float(np.maximum(-normal, 0.0) @ force[:, 2]),
        (FORCE, contact.patch): float(np.maximum(normal, 0.0) @ force[:, 2]),
        (PRESSURE, contact.patch): float(abs(moment @ turning)),
    }


def _joint(robot: Robot, index: int) -> str:
    return robot.joint_names[index]
