"""Tolerances of the certificate, and where each number comes from.

Three kinds: rounding (``eom``, ``integration``, ``com``), the accuracy of the QP solver (1e-6 in each row), and
tolerances of a physical task (``slip``, ``goal``, ``stray``, ``fall``).
"""

from dataclasses import dataclass

import numpy as np

from mcplan.util.back_ends import BACK_ENDS, load_object

FALL = 0.2
"""m: the robot has fallen if its centre of mass is this far below the lowest planned one. An unplanned kneeling of a
humanoid of 1.5 m lowers it by 0.25; in successful runs control and contacts lower it by less than 0.05."""

NEGLIGIBLE_VIOLATION = 0.05
"""m/s², rad/s², N or N m: a tick counts as solved if its program violates its rows by less than this, 0.5 % of gravity:
contacts differ from their references by rounding."""

SUPPORT_PENETRATION = 2e-3
"""m: allowed penetration of a link into the support of its own patch: the boxes that model soles end at the patch to
within a millimetre, and contacts are compliant. All other links must not touch the support."""

LOADED = 1.0
"""N: friction is judged at points that carry more than this normal force; below it ratios are noise."""

PLAN_PLACE, PLAN_ANGLE_DEG = 1e-4, 0.1
"""m, deg: contacts of a planned posture against their places. The posture solver stops at 1e-6 m, and files have all
digits; the tolerance allows a posture edited by hand to four decimals."""

PLAN_BALANCE, PLAN_FORCE = 1e-6, 2e-6
"""N and N m: balance, and force cones and limits, of a planned posture: the force solver satisfies rows to 1e-6, and a
limit adds the rounding of a sum of such rows."""

PLAN_CLEARANCE = 1e-6
"""m: allowed overlap of bodies in a planned posture: ten times the accuracy of the distances."""

TRANSITION_PLACE, TRANSITION_ANGLE_DEG = 5e-3, 0.5
"""m, deg: contacts along a transition against their places. Its knots are smoothed references: a posture may miss its
contacts by 2 mm, and smoothing adds as much; the controller's feedback corrects it. A run in ``mujoco`` may drift by
twice as much."""

TRANSITION_PATH = 0.01
"""m: patches in the air, in the knots of a transition, against their swing paths: the controller follows the path, but
the certificate judges the knots. A fifth of the default clearance from supports."""

TRANSITION_LIFT = 5e-3
"""m: height that a whole patch reaches above the support that it leaves, so that tracking errors do not drag it."""

TRANSITION_BALANCE, TRANSITION_COM = 1e-3, 1e-6
"""N and N m: balance along a transition; the force program satisfies rows to 1e-7 of the weight. m: rounding of the
centre of mass at the knots."""

TRANSITION_DYNAMIC, TRANSITION_PACE = 1e-3, 0.05
"""Relative excess over the limits of the pace. Torque, at the nodes of a time parameterization: rounding of numerical
derivatives. Velocity, acceleration and touchdown speed: they are limited at the nodes only, and smooth between them."""

TRANSITION_CLEARANCE = 2e-4
"""m: accuracy of the smallest distance along a transition: samples are so dense that any larger overlap between them is
found. At the samples ``PLAN_CLEARANCE`` applies."""

ON_SUPPORT = 2e-3
"""m: distance of the corners of a patch beyond the rim of their surface: 1 mm that a scenario may request without
``overhang``, 1 mm for rounding of the plan and drift of a contact."""

POSTURE = 0.2
"""rad (m for a sliding joint): joints of a goal posture, if the goal has no ``posture_tolerance``."""

PLAN_COM = 0.01
"""m: centre of mass of a plan against a goal without ``com_tolerance``."""

PLAN_OBJECT, PLAN_OBJECT_DEG = 1e-3, 0.1
"""m, deg: objects of a plan against their goal; a plan places them exactly, apart from rounding by hand."""


@dataclass(frozen=True)
class Tolerances:
    """Allowed deviations; the limits themselves come from the robot, the plan and the scenario.

    Parameters
    ----------
    eom : equation of motion, N and N m: rounding of forces up to 1e4 N through a tree of 40 links, 1e-8, and a hundred
        times that.
    integration : state against the integrated previous one, m, rad, m/s, rad/s: rounding of lengths of 10 m, 1e-15, in
        sums over a step of up to 0.02 s.
    force : friction, unilateral and grasp limits, and point forces against wrenches, N and N m: the QP solver satisfies
        constraints to 1e-6, and a force is the sum of two such rows.
    torque, velocity, position : beyond the joint limits, N m, rad/s, rad; as ``force``. In back ends driven by torques
        position limits are compliant contacts.
    point : contact points against their patch, m. Physical: contact detection places a point anywhere between the two
        surfaces, which may overlap by ``SUPPORT_PENETRATION``.
    normal : contact normals against those of the support, rad, in ``qp``, where they are copies.
    com : recorded centre of mass, m: rounding.
    slip, turn : drift of a contact from its touchdown and from its planned place, m and rad. ``qp``: a patch closes
        within 0.5 mm. Physical: within 4 mm, and it creeps on compliant supports.
    goal, goal_turn : contacts against the places of the goal; as slip and turn.
    com_goal : centre of mass against a goal without ``com_tolerance``, m: the state machine leaves a phase when the
        error is below ``control.timing.com_tolerance``.
    object, object_turn : objects against their place in the goal, m and rad: in ``qp`` they arrive within 2 mm,
        physically within 10 mm, and slide on for a moment.
    stray_force, stray_time : largest force of an unplanned contact, N, and the time for which it may be exceeded, s: a
        brush, and two periods of the controller's reaction at 100 Hz.
    impact : time over which a contact force is averaged before it is compared with its limit, s; 0: no average. Only
        the impulse of an impact is known; the force depends on its duration.
    overlap : of bodies that may not touch, m. ``qp``: rows bound the second derivative of a distance, so that half an
        acceleration of 20 m/s² times the square of a step of 1 ms remains, 1e-5. Physical: compliance adds to it.
    external : generalised forces that the scenario does not explain, N and N m: as ``eom``, with the rounding of
        forces at points instead of the rows of a back end.
    hold : share of ticks without any solution: a damped hold of 1 in 1000 is 10 ms of a motion of 10 s, in which a body
        in free fall drops by 0.5 mm.
    slack : share of ticks in slack form. In ``qp`` the program itself moves the robot, and none is needed; in other
        physics contacts that touch early or late make a few programs infeasible.
    slack_amount : violation of the program's rows, integrated over time, m/s, rad/s and N s: the speed that a released
        contact may gain; a tenth of the speed of a step.
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
"""For physics driven by torques: contacts are compliant, and touch down early or late. The forces that the back end
reports must explain the motion as exactly as in ``qp``: equation of motion, integration, cones."""


def tolerances_of(physics: str) -> Tolerances:
    """Return the tolerances for runs of a physics; a custom one is judged as a physical one."""
    known = BACK_ENDS.get(physics)
    found: Tolerances = load_object(known.tolerances) if known else PHYSICAL
    return found
