"""Tolerances of the certificate, and where each number comes from.

Three kinds: what arithmetic leaves (``eom``, ``integration``, ``com``), what the solver of the quadratic program leaves
(1e-6 in each row), and what a task of the physical world allows (``slip``, ``goal``, ``stray``, ``fall``).
"""

from dataclasses import dataclass

import numpy as np

from mcplan.util.back_ends import BACK_ENDS, load_object

FALL = 0.2
"""m: a centre of mass so far below the lowest planned one has fallen. A humanoid of 1.5 m that kneels down unasked
lowers it by 0.25; what control and contacts leave in runs that hold is below 0.05."""

NEGLIGIBLE_VIOLATION = 0.05
"""m/s², rad/s², N or N m: a tick whose program misses its rows by less counts as solved: contacts differ from their
references by rounding, 0.5 % of gravity."""

SUPPORT_PENETRATION = 2e-3
"""m: how far a link may sink into what its own patch rests on: soles are modelled as boxes that end at the patch to
within a millimetre, and contacts give (design: a slab collides with all but the link that rests on it)."""

LOADED = 1.0
"""N: friction is judged at points that carry more than this normal force; below it ratios are noise."""

PLAN_PLACE, PLAN_ANGLE_DEG = 1e-4, 0.1
"""m, deg: contacts of a planned posture against their places. The posture solver stops at 1e-6 m; files keep all
digits; the rest is room for a posture that was edited by hand to four decimals."""

PLAN_BALANCE, PLAN_FORCE = 1e-6, 2e-6
"""N and N m: balance, and cones and limits, of a planned posture: the solver of its forces keeps rows to 1e-6, and a
limit is a row with the rounding of a sum of such rows."""

PLAN_CLEARANCE = 1e-6
"""m: overlap of bodies in a planned posture that is none: ten times the accuracy of the distances."""

TRANSITION_PLACE, TRANSITION_ANGLE_DEG = 5e-3, 0.5
"""m, deg: contacts along a transition against their places. Its knots are smoothed references: a posture may miss its
contacts by 2 mm, and smoothing by as much again; the controller's feedback takes out the rest. A run in ``mujoco``
may drift by twice as much."""

TRANSITION_PATH = 0.01
"""m: patches in the air along a transition, in its knots, against their courses: the knots, which are judged, and the
executed motion are not to differ. A fifth of the height at which they keep off supports by default."""

TRANSITION_LIFT = 5e-3
"""m: how high above the support that it leaves all of a patch is at least once: what control drifts must not drag."""

TRANSITION_BALANCE, TRANSITION_COM = 1e-3, 1e-6
"""N and N m: balance along a transition, of forces found by a program that keeps rows to 1e-7 weights. m: the curve of
the centre of mass at its knots, rounded."""

TRANSITION_DYNAMIC, TRANSITION_PACE = 1e-3, 0.05
"""Relative: torque of a motion with a law in its nodes, beyond the share that may be used: digits of numerical
derivatives. Velocities, accelerations, and the speed at which patches come down, beyond what the pace allows: a law
keeps them in its nodes, and is smooth between them."""

TRANSITION_CLEARANCE = 2e-4
"""m: how well the least distance along a transition is known: its times are looked at as closely as that needs, and
bodies that overlap by more at any time are found. At the times that are looked at ``PLAN_CLEARANCE`` counts."""

ON_SUPPORT = 2e-3
"""m: how far the corners of a patch may be beyond the rim of the surface that they are on: 1 mm is what a scenario may
ask for without ``overhang``, another is rounding of the plan and drift of a contact."""

POSTURE = 0.2
"""rad (m for a sliding joint): joints of a posture that is a goal, where the goal gives no ``posture_tolerance``."""

PLAN_COM = 0.01
"""m: centre of mass that is a goal, in a plan, where the goal gives no ``com_tolerance``."""

PLAN_OBJECT, PLAN_OBJECT_DEG = 1e-3, 0.1
"""m, deg: objects that are a goal, in a plan, which places them exactly; rounding by hand."""


@dataclass(frozen=True)
class Tolerances:
    """Allowed deviations; the limits themselves come from the robot, the plan and the scenario.

    Parameters
    ----------
    eom : equation of motion, N and N m: rounding of forces up to 1e4 N through a tree of 40 links, 1e-8, and a hundred
        times that.
    integration : state against the integrated previous one, m, rad, m/s, rad/s: rounding of lengths of 10 m, 1e-15, in
        sums over a step of up to 0.02 s.
    force : friction, unilateral and grasp limits, and points against wrenches, N and N m: the program's solver keeps
        constraints to 1e-6, and a force is the sum of two such rows.
    torque, velocity, position : beyond the joint limits, N m, rad/s, rad; likewise. Where torques drive, limits of
        position are contacts that give by compliance.
    point : contact points against the patch that they belong to, m. Physical: a finder of contacts places a point
        anywhere between the two surfaces, which may overlap by ``SUPPORT_PENETRATION``.
    normal : contact normals against their support's, rad, in ``qp``, where they are copies.
    com : recorded centre of mass, m: rounding.
    slip, turn : drift of a contact from where it began and from its planned place, m and rad. ``qp``: a patch closes
        within 0.5 mm. Physical: within 4 mm, and it creeps on what gives.
    goal, goal_turn : contacts that are a goal against the places that the goal gives; as slip and turn.
    com_goal : centre of mass that is a goal, m, where the goal gives no ``com_tolerance``: the state machine leaves a
        phase when the error is below ``control.timing.com_tolerance``.
    object, object_turn : objects that are a goal against their place there, m and rad: in ``qp`` they arrive within
        2 mm, physically within 10 mm, and slide on for a moment.
    stray_force, stray_time : what an unplanned contact may carry, N, and for how long it may carry more, s: a
        brush, and two periods of the controller's reaction at 100 Hz.
    impact : time over which the load of a contact is averaged before it is held against the contact's limit, s; 0 for
        none. Of an impact the impulse is known; what force it takes is a matter of how long it lasts.
    overlap : of bodies that may not touch, m. ``qp``: rows keep the second derivative of a distance, so that half an
        acceleration of 20 m/s² times the square of a step of 1 ms remains, 1e-5. Physical: what compliance adds.
    external : generalised forces beyond what the scenario explains, N and N m: as ``eom``, with the rounding of
        forces at points instead of the rows of a back end.
    hold : ticks without any solution, as a share of all: a damped hold of 1 in 1000 is 10 ms of a motion of 10 s, in
        which a body that falls freely loses 0.5 mm.
    slack : ticks in slack form, as a share of all. Where every tick's program is what moves the robot (``qp``) none is
        needed; where the physics surprises the controller, contacts that touch early or late make a few infeasible.
    slack_amount : violation of the program's rows that was given up, integrated over time, m/s, rad/s and N s:
        what a contact that was let go by it may gain in speed; a tenth of the speed of a step.
    """

    eom: float = 1e-6
    integration: float = 1e-9
    force: float = 2e-6
    torque: float = 2e-6
    velocity: float = 2e-6
    position: float = 2e-6
    point: float = 1e-6
    normal: float = 1e-6
    com: float = 1e-9
    slip: float = 1e-3
    turn: float = float(np.deg2rad(0.5))
    goal: float = 1e-3
    goal_turn: float = float(np.deg2rad(0.5))
    com_goal: float = 0.01
    object: float = 5e-3
    object_turn: float = float(np.deg2rad(1))
    stray_force: float = 5.0
    stray_time: float = 0.020
    fall: float = FALL
    impact: float = 0.0
    overlap: float = 2e-5
    external: float = 1e-5
    hold: float = 1e-3
    slack: float = 1e-2
    slack_amount: float = 0.05


EXACT = Tolerances(stray_force=0.0, stray_time=0.0)
"""For ``qp``: the certificate is that of the quadratic program, whose solver keeps constraints to 1e-6."""

PHYSICAL = Tolerances(
    point=2e-3, slip=1e-2, turn=float(np.deg2rad(3)), goal=1e-2, goal_turn=float(np.deg2rad(3)), position=1e-3,
    object=2e-2, object_turn=float(np.deg2rad(3)),
    impact=0.01, overlap=1e-4, slack=5e-2,
)  # fmt: skip
"""For physics that the controller does not own: contacts give, and touch down where they touch down. What the back end
reports must explain the motion as exactly as in ``qp``: equation of motion, integration, cones."""


def tolerances_of(physics: str) -> Tolerances:
    """Return the tolerances for runs of a physics; a custom one is judged as a physical one."""
    known = BACK_ENDS.get(physics)
    found: Tolerances = load_object(known.tolerances) if known else PHYSICAL
    return found
