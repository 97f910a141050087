"""Tolerances of the certificate, and where each number comes from.

There are three kinds: rounding (``eom``, ``integration``, ``com``), accuracy of the QP solver (1e-6 in each row), and
tolerances of the physical task (``slip``, ``goal``, ``stray_force``, ``fall``).
"""

from dataclasses import dataclass

import numpy as np

from mcplan.util.back_ends import BACK_ENDS, load_object

FALL = 0.2
"""m: the robot has fallen if its centre of mass is this far below the lowest planned one. A humanoid of 1.5 m that
sinks to its knees lowers it by 0.25; in successful runs control errors and compliant contacts lower it by less than
0.05."""

NEGLIGIBLE_VIOLATION = 0.05
"""m/s², rad/s², N or N m: a tick counts as solved if its program violates its rows by less than this (0.5 % of
gravity). Such violations come from rounding differences between contacts and their references."""

SUPPORT_PENETRATION = 2e-3
"""m: allowed penetration of a link into the support of its own patch. The boxes that model soles end within a
millimetre of the patch, and contacts are compliant. All other links must not touch the support."""

LOADED = 1.0
"""N: friction is judged at points with more than this normal force; below it, ratios are noise."""

PLAN_PLACE, PLAN_ANGLE_DEG = 1e-4, 0.1
"""m, deg: deviation of patches in a planned posture from their contacts. The posture solver stops at 1e-6 m, and files
have all digits; the tolerance allows postures that were edited by hand to four decimals."""

PLAN_BALANCE, PLAN_FORCE = 1e-6, 2e-6
"""N and N m: errors of the force balance, and violations of friction cones and limits, of a planned posture. The force
solver satisfies rows to 1e-6; for limits the rounding of a sum of such rows is added."""

PLAN_CLEARANCE = 1e-6
"""m: allowed overlap of bodies in a planned posture, ten times the accuracy of the distances."""

TRANSITION_PLACE, TRANSITION_ANGLE_DEG = 5e-3, 0.5
"""m, deg: deviation of patches from their contacts along a transition. Its knots are smoothed references: a posture may
miss its contacts by 2 mm, and smoothing adds as much; the controller's feedback corrects it. A run in ``mujoco`` may
drift by twice the tolerance."""

TRANSITION_PATH = 0.01
"""m: deviation of patches in the air from their swing paths, in the knots of a transition. The controller follows the
path, but the certificate judges the knots. It is a fifth of the default clearance from supports."""

TRANSITION_LIFT = 5e-3
"""m: minimum height that all of a patch reaches above the support that it leaves, so that tracking errors do not drag
it along."""

TRANSITION_BALANCE, TRANSITION_COM = 1e-3, 1e-6
"""N and N m: error of the balance along a transition; the force program satisfies rows to 1e-7 of the weight. m: error
of the centre of mass at the knots, rounding."""

TRANSITION_DYNAMIC, TRANSITION_PACE = 1e-3, 0.05
"""Allowed relative excess over the limits of the pace: of torques at the nodes of a time parameterization (rounding of
numerical derivatives), and of velocity, acceleration and touchdown speed, which are limited at the nodes only."""

TRANSITION_CLEARANCE = 2e-4
"""m: accuracy of the minimum distance along a transition; samples are so dense that no larger overlap between them is
missed. At the samples ``PLAN_CLEARANCE`` applies."""

ON_SUPPORT = 2e-3
"""m: allowed distance of the corners of a patch beyond the edge of their surface: 1 mm that a scenario may request
without ``overhang``, and 1 mm for rounding of the plan and drift of the contact."""

POSTURE = 0.2
"""rad (m for prismatic joints): deviation of joints from a goal posture without ``posture_tolerance``."""

PLAN_COM = 0.01
"""m: deviation of the centre of mass of a plan from a goal without ``com_tolerance``."""

PLAN_OBJECT, PLAN_OBJECT_DEG = 1e-3, 0.1
"""m, deg: deviation of the objects of a plan from their goal; plans place them exactly, up to rounding in edited
files."""


@dataclass(frozen=True)
class Tolerances:
    """Allowed deviations; the limits themselves come from the robot, the plan and the scenario.

    Parameters
    ----------
    eom : residual of the equation of motion, N and N m: a hundred times the rounding (1e-8) of forces up to 1e4 N in a
        tree of 40 links.
    integration : difference between a state and the integrated previous one, m, rad, m/s, rad/s: rounding (1e-15) of
        lengths of 10 m, in sums over a step of up to 0.02 s.
    force : violation of friction, unilateral and grasp limits, and difference of point forces and wrenches, N and N m:
        the QP solver satisfies constraints to 1e-6, and a force is the sum of two such rows.
    torque, velocity, position : violation of joint limits, N m, rad/s, rad; as ``force``. In back ends driven by
        torques position limits are compliant contacts.
    point : distance of contact points from their patch, m. Physical: contact detection places a point anywhere between
        the two surfaces, which may overlap by ``SUPPORT_PENETRATION``.
    normal : deviation of contact normals from those of the support in ``qp``, rad; there they are copies.
    com : error of the recorded centre of mass, m: rounding.
    slip, turn : drift of a contact from its touchdown and from its planned pose, m and rad. ``qp``: a patch closes
        within 0.5 mm. Physical: within 4 mm, and it creeps on compliant supports.
    goal, goal_turn : deviation of contacts from the goal, m and rad; as ``slip`` and ``turn``.
    com_goal : deviation of the centre of mass from a goal without ``com_tolerance``, m: the state machine leaves a
        phase when the error is below ``control.timing.com_tolerance``.
    object, object_turn : deviation of objects from their goal, m and rad: in ``qp`` they arrive within 2 mm; physically
        within 10 mm, and they may slide on for a moment.
    stray_force, stray_time : force of an unplanned contact, N, and maximum time for which it may be exceeded, s: a
        light touch, and two periods of the controller's reaction at 100 Hz.
    fall : sinking of the centre of mass below the lowest planned one, m (see ``FALL``).
    impact : time over which a contact force is averaged before it is compared with its limit, s; 0: no average. Only
        the impulse of an impact is known; its force depends on its duration.
    overlap : overlap of bodies that must not touch, m. ``qp``: rows bound the second derivative of a distance, so that
        1e-5 remain, half of 20 m/s² times the square of a step of 1 ms. Physical: compliance adds to it.
    external : generalised forces that the scenario does not explain, N and N m: as ``eom``, with the rounding of forces
        at points.
    hold : share of ticks without any solution: 1 in 1000 is 10 ms of a motion of 10 s, in which a body in free fall
        drops by 0.5 mm.
    slack : share of ticks in slack form. In ``qp`` the program itself moves the robot, and it needs no slack; in other
        physics contacts that touch early or late make some programs infeasible.
    slack_amount : violation of the program's rows, integrated over time, m/s, rad/s and N s: the speed that a released
        contact may gain, a tenth of the speed of a step.
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
"""For ``qp``: motion and forces come from the quadratic program, whose solver satisfies constraints to 1e-6."""

PHYSICAL = Tolerances(
    point=2e-3, slip=1e-2, turn=float(np.deg2rad(3)), goal=1e-2, goal_turn=float(np.deg2rad(3)), position=1e-3,
    object=2e-2, object_turn=float(np.deg2rad(3)),
    impact=0.01, overlap=1e-4, slack=5e-2,
)  # fmt: skip
"""For physics driven by torques: contacts are compliant, and patches touch down early or late. Equation of motion,
integration and friction cones have the same tolerances as in ``qp``: the reported forces must explain the motion."""


def tolerances_of(physics: str) -> Tolerances:
    """Return the tolerances for runs of a physics; a custom physics has those of physics driven by torques."""
    back_end = BACK_ENDS.get(physics)
    found: Tolerances = load_object(back_end.tolerances) if back_end else PHYSICAL
    return found
