"""Active limits of a time parameterisation: at each point of its path, the limit that bounds its speed.

Rest satisfies all limits. The state of a time parameterisation, (sdd, sd²), is scaled by k along the ray from rest
until a limit is active: ``1 / k`` is the used share of this limit, 1 at the limit. The limit with the largest share is
the active one. If no share exceeds `ACTIVE_SHARE`, smoothness at neighbouring times is the limit.

For forces, k follows from one linear program per node, with the contact forces f and k as unknowns::

    maximise k   with   S' tau + G f = hold + k (of_u u + of_x x),   F f <= upper,   |tau| <= limit

Its multipliers are the sensitivities to the limits: torque of a joint, friction coefficient of a contact, size of a
patch, maximum force of a grip or a contact. The limit with the largest gain per relative increase is reported.
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

ACTIVE_SHARE = 0.8
"""Used share from which a limit counts as active: a smooth time parameterization stays below limits between nodes."""

NODE_STRIDE = 2
"""Of this many spline pieces of a time parameterization, one is evaluated."""

MAX_FORCE_MULTIPLE = 100.0
"""Multiple of the required forces above which contact forces do not count as a limit."""

SMOOTHNESS = "smoothness"
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


class UsedShare(NamedTuple):
    """Used share of a limit."""

    kind: str
    whose: str
    share: float


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
    for i in basis.middle[::NODE_STRIDE].tolist():
        t_before, t, t_after = (timing.time_of(path.length * basis.s[k]) for k in (i - 1, i, i + 1))
        _, rate, accel = timing.at(t)
        jerk = (timing.at(t_after)[2] - timing.at(t_before)[2]) / (path.length * (basis.s[i + 1] - basis.s[i - 1]))
        used_shares = [
            *_speeds(retimer, path, rates, i, rate),
            *_accelerations(retimer, path, i, rate, accel),
            UsedShare(TURN, "", float(abs(path.along[i] @ (accel, rate**2)) / program.start[i])),
            UsedShare(TURN, "", float(path.speed[i] * abs(jerk) * rate / retimer.pace.com_jerk)),
            *_forces(robot, path, program, forces.of_contacts, i, (accel, rate * rate)),
        ]
        largest = max(used_shares, key=lambda used: used.share)
        limit = (largest.kind, largest.whose) if largest.share > ACTIVE_SHARE else (SMOOTHNESS, "")
        found.append(Bound(t, *limit, largest.share))
    return tuple(found)


def shares(found: Sequence[Bound], duration: float) -> dict[str, float]:
    """Return the time (s) in which each limit is active, the longest first."""
    if not found:
        return {}
    times = [bound.t for bound in found]
    middles = [0.0, *(0.5 * (a + b) for a, b in pairwise(times)), duration]
    times_active: dict[str, float] = {}
    for bound, (begin, end) in zip(found, pairwise(middles), strict=True):
        times_active[bound.name] = times_active.get(bound.name, 0.0) + (end - begin) / duration
    return dict(sorted(times_active.items(), key=lambda item: -item[1]))


def _speeds(
    retimer: Retimer, path: PathDynamics, rates: dict[str, np.ndarray], i: int, rate: float
) -> Iterator[UsedShare]:
    """Yield the used shares of the bounds of the rate."""
    for kind, limits in rates.items():
        whose = ""
        if kind == VELOCITY:
            whose = _joint(retimer.robot, int(np.argmax(path.joints[i] / joint_speeds(retimer.robot, 1.0))))
        elif kind == TOUCHDOWN:
            whose = path.arriving[int(np.argmax(path.closing[i])) % len(path.arriving)].patch
        yield UsedShare(kind, whose, float((rate / limits[i]) ** 2))


def _accelerations(retimer: Retimer, path: PathDynamics, i: int, rate: float, accel: float) -> Iterator[UsedShare]:
    """Yield the used shares of the bounds of accelerations of joints, base and centre of mass."""
    pace, robot = retimer.pace, retimer.robot
    vd = np.abs(path.vd[i] * rate**2 + path.v[i] * accel)[3:]
    k = int(np.argmax(vd))
    yield UsedShare(ACCELERATION, "the base" if k < 3 else _joint(robot, k - 3), float(vd[k] / pace.acceleration))
    rise = path.height[i] @ (accel, rate**2)
    yield UsedShare(WEIGHT, "", float(abs(rise) / retimer.rise))


def _forces(
    robot: Robot, path: PathDynamics, program: PathProgram, forces: ForceUnknowns, i: int, node: tuple[float, float]
) -> Iterator[UsedShare]:
    """Yield the used shares of joint and contact limits, by the limit whose increase would help."""
    required, joints, rows = (
        program.of_u[i] * node[0] + program.of_x[i] * node[1],
        6 + program.limited,
        len(program.faces),
    )
    A, b, C, d = program.forces_at(i, program.hold[i])
    A = np.column_stack([A, np.concatenate([np.zeros(rows), required[joints], -required[joints]])])
    C = np.column_stack([C, np.concatenate([-required[:6], np.zeros(len(program.equal))])])
    cost = np.zeros(forces.size + 1)
    cost[-1] = -1.0
    limits = [(None, None)] * forces.size + [(0.0, MAX_FORCE_MULTIPLE)]
    solution = linprog(cost, A, b, C, d, limits, method="highs")
    if solution.status != 0 or solution.x[-1] >= MAX_FORCE_MULTIPLE:
        return
    f, y = solution.x[:-1], -solution.ineqlin.marginals
    upper, lower = y[rows:].reshape(2, -1)
    sensitivity = np.zeros(len(required))  # of k to the generalised forces of contacts
    sensitivity[:6], sensitivity[joints] = -solution.eqlin.marginals[:6], lower - upper
    gains = {
        (TORQUE, _joint(robot, int(j))): float(gain)
        for j, gain in zip(program.limited, (upper + lower) * program.limit, strict=True)
    }
    force_costs = program.faces.T @ y[:rows]
    for block in forces.blocks:
        moment_gains = path.jacobians[block.contact.patch][i, 3:] @ sensitivity
        gains |= _contact_gains(block, f[block.entries], force_costs[block.entries], moment_gains)
    (kind, whose), _ = max(gains.items(), key=lambda item: item[1])
    yield UsedShare(kind, whose, float(1.0 / max(solution.x[-1], 1.0 / MAX_FORCE_MULTIPLE)))


def _contact_gains(
    block: ContactUnknowns, f: np.ndarray, force_costs: np.ndarray, moment_gains: np.ndarray
) -> dict[tuple[str, str], float]:
    """Return the sensitivity to each limit of a contact, by kind and patch.

    Parameters
    ----------
    f, force_costs : (size,) its forces, and the multipliers of its limits for each of them.
    moment_gains : (3,) sensitivity of k to its moment (world axes).
    """
    contact = block.contact
    if block.is_grasp:
        return {(GRIP, contact.patch): float(abs(f @ force_costs))}
    force, normal = f.reshape(-1, 3), force_costs.reshape(-1, 3)[:, 2]
    arms = contact.world_points - contact.world_points.mean(axis=0)
    moment = np.cross(arms, force @ contact.axes.T).sum(axis=0)
    return {
        (FRICTION, contact.patch): float(np.maximum(-normal, 0.0) @ force[:, 2]),
        (FORCE, contact.patch): float(np.maximum(normal, 0.0) @ force[:, 2]),
        (PRESSURE, contact.patch): float(abs(moment @ moment_gains)),
    }


def _joint(robot: Robot, index: int) -> str:
    return robot.joint_names[index]
