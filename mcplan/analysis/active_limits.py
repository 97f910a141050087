"""Active limits of a time parameterisation: at each point of its path, the limit that bounds its speed.

Rest satisfies all limits. The state of a time parameterisation, (sdd, sd²), is scaled by k along the ray from rest
until a limit is active: ``1 / k`` is the used share of this limit, 1 at the limit. The limit with the largest share is
the active one. If no share exceeds `ACTIVE_SHARE`, smoothness at neighbouring times is the limit.

For forces, k follows from one linear program per node, with the contact forces f and k as unknowns::

    maximise k   with   S' tau + G f = hold + k (of_u u + of_x x),   F f <= upper,   |tau| <= limit

with the state u = sdd, x = sd² at the node. `PathProgram` has the generalised forces: ``hold`` at rest, ``of_u`` and
``of_x`` per unit of u and x. G maps contact forces, F and upper are the friction cones and force limits.

The multipliers are the sensitivities to the limits: torque of a joint, friction coefficient of a contact, size of a
patch, maximum force of a grip or a contact. The limit with the largest gain per relative increase is reported.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from mcplan.optimize.dense import solve_dense
from mcplan.optimize.path_program import PathProgram, law_basis
from mcplan.planning.timing.path_dynamics import PathDynamics, joint_speeds
from mcplan.planning.timing.retiming import TOUCHDOWN, VELOCITY, Retimer
from mcplan.planning.transition.transition import Segment
from mcplan.robot.robot import Robot
from mcplan.statics.contact_forces import ContactUnknowns, ForceUnknowns

ACTIVE_SHARE = 0.8
"""Used share from which a limit counts as active. A smooth time parameterization stays below limits between nodes."""

NODE_STRIDE = 2
"""Every second spline piece of a time parameterization is evaluated."""

MAX_FORCE_MULTIPLE = 100.0
"""Contact forces that could supply this multiple of the required forces do not count as a limit."""

SMOOTHNESS = "smoothness"
TORQUE, FRICTION, PRESSURE, GRIP, FORCE = "torque", "friction", "pressure", "grip", "largest force"
ACCELERATION, CONTACT_WEIGHT, COM_JERK = "acceleration", "weight on contacts", "jerk of the centre of mass"


class ActiveLimit(NamedTuple):
    """Active limit at a time (s): kind, owner (joint or patch; may be empty), and used share."""

    t: float
    kind: str
    owner: str
    share: float

    @property
    def name(self) -> str:
        """Format as text."""
        return f"{self.kind}, {self.owner}" if self.owner else self.kind


class UsedShare(NamedTuple):
    """Used share of a limit: kind, owner (joint or patch; may be empty), and share, 1 at the limit."""

    kind: str
    owner: str
    share: float


def active_limits(retimer: Retimer, segment: Segment) -> tuple[ActiveLimit, ...]:
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
            # near a start or end at rest, the jerk bounds the acceleration of the centre of mass by `program.start`
            UsedShare(COM_JERK, "", float(abs(path.along[i] @ (accel, rate**2)) / program.start[i])),
            UsedShare(COM_JERK, "", float(path.speed[i] * abs(jerk) * rate / retimer.pace.com_jerk)),
            *_forces(robot, path, program, forces.of_contacts, i, (accel, rate * rate)),
        ]
        largest = max(used_shares, key=lambda used: used.share)
        limit = (largest.kind, largest.owner) if largest.share > ACTIVE_SHARE else (SMOOTHNESS, "")
        found.append(ActiveLimit(t, *limit, largest.share))
    return tuple(found)


def time_shares(found: Sequence[ActiveLimit], duration: float) -> dict[str, float]:
    """Return the share of the duration in which each limit is active, the largest first."""
    if not found:
        return {}
    times = [bound.t for bound in found]
    middles = [0.0, *(0.5 * (a + b) for a, b in pairwise(times)), duration]
    shares: dict[str, float] = {}
    for bound, (begin, end) in zip(found, pairwise(middles), strict=True):
        shares[bound.name] = shares.get(bound.name, 0.0) + (end - begin) / duration
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def _speeds(
    retimer: Retimer, path: PathDynamics, rates: dict[str, np.ndarray], i: int, rate: float
) -> Iterator[UsedShare]:
    """Yield the used shares of the limits of the rate sd."""
    for kind, limits in rates.items():
        owner = ""
        if kind == VELOCITY:
            owner = _joint(retimer.robot, int(np.argmax(path.joints[i] / joint_speeds(retimer.robot, 1.0))))
        elif kind == TOUCHDOWN:
            owner = path.arriving[int(np.argmax(path.closing[i])) % len(path.arriving)].patch
        yield UsedShare(kind, owner, float((rate / limits[i]) ** 2))


def _accelerations(retimer: Retimer, path: PathDynamics, i: int, rate: float, accel: float) -> Iterator[UsedShare]:
    """Yield the used shares of the limits of the accelerations of joints, base and centre of mass."""
    pace, robot = retimer.pace, retimer.robot
    vd = np.abs(path.vd[i] * rate**2 + path.v[i] * accel)[3:]
    k = int(np.argmax(vd))
    yield UsedShare(ACCELERATION, "the base" if k < 3 else _joint(robot, k - 3), float(vd[k] / pace.acceleration))
    rise = path.height[i] @ (accel, rate**2)
    yield UsedShare(CONTACT_WEIGHT, "", float(abs(rise) / retimer.rise))


def _forces(
    robot: Robot, path: PathDynamics, program: PathProgram, forces: ForceUnknowns, i: int, node: tuple[float, float]
) -> Iterator[UsedShare]:
    """Yield one share of the force and torque limits, for the limit with the largest sensitivity.

    Parameters
    ----------
    program, forces, i : path program, its contact forces, and index of the node.
    node : (sdd, sd²) at the node.
    """
    required, joints, rows = (
        program.of_u[i] * node[0] + program.of_x[i] * node[1],
        6 + program.limited,
        len(program.faces),
    )
    A, b, C, d = program.forces_at(i, program.hold[i])
    A = np.column_stack([A, np.concatenate([np.zeros(rows), required[joints], -required[joints]])])
    C = np.column_stack([C, np.concatenate([-required[:6], np.zeros(len(program.equal))])])
    cost, low = np.zeros(forces.size + 1), np.full(forces.size + 1, -np.inf)
    cost[-1], low[-1] = -1.0, 0.0
    below, above = np.append(np.full(len(b), -np.inf), d), np.append(b, d)
    solution = solve_dense(None, cost, np.vstack([A, C]), below, above, x_lower=low)
    if not solution.ok or solution.x[-1] >= MAX_FORCE_MULTIPLE:
        return
    f, multipliers = solution.x[:-1], solution.dual[len(cost) :]
    upper, lower = multipliers[rows : len(b)].reshape(2, -1)
    sensitivity = np.zeros(len(required))  # of k to the generalised forces of contacts
    sensitivity[:6], sensitivity[joints] = multipliers[len(b) : len(b) + 6], lower - upper
    gains = {
        (TORQUE, _joint(robot, int(j))): float(gain)
        for j, gain in zip(program.limited, (upper + lower) * program.limit, strict=True)
    }
    force_costs = program.faces.T @ multipliers[:rows]
    for block in forces.blocks:
        moment_gains = path.jacobians[block.contact.patch][i, 3:] @ sensitivity
        gains |= _contact_gains(block, f[block.entries], force_costs[block.entries], moment_gains)
    (kind, owner), _ = max(gains.items(), key=lambda item: item[1])
    yield UsedShare(kind, owner, float(1.0 / max(solution.x[-1], 1.0 / MAX_FORCE_MULTIPLE)))


def _contact_gains(
    block: ContactUnknowns, f: np.ndarray, force_costs: np.ndarray, moment_gains: np.ndarray
) -> dict[tuple[str, str], float]:
    """Return the sensitivity to each limit of a contact, by kind and patch.

    Parameters
    ----------
    f, force_costs : (size,) forces of the contact, and the cost of each: multipliers of the limits times their rows.
    moment_gains : (3,) sensitivity of k to the moment of the contact (world axes).
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
