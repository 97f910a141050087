"""Layout of the packed whole-body program: sizes, positions of the parameters, tables of tasks and contacts.

The parameters of the declared program are in one flat vector ``theta``, matrices by columns (Fortran order) as in
CVXPY. The kernels read the structure from one integer array ``layout`` and one float array ``constants``. Present
contacts and tasks have one table each.
"""

(
    NV,
    FORCES,  # number of force unknowns
    MASS,  # first entry in theta of each parameter, -1 where the program has none
    BIAS,
    FORCE_MAP,
    CONTACT_JACOBIAN,
    CONTACT_ACCELERATION,
    RELEASE,
    ACCELERATION_MIN,
    ACCELERATION_MAX,
    FRICTION,
    FRICTION_MARGIN,
    NORMAL_MIN,
    NORMAL_MAX,
    GRASP_FORCE,
    GRASP_MOMENT,
    ACCELERATION_WEIGHT,
    ACCELERATION_PULL,
    TASK_MATRIX,
    TASK_TARGET,
    FORCE_WEIGHT,
    FORCE_PULL,
    WRENCH_MATRIX,
    LIMIT_MATRIX,
    LIMIT_LOWER,
    FORCE_TASK_MATRIX,
    FORCE_TASK_TARGET,
    TORQUE_COST,
    TORQUE_PULL,
    TORQUE_MIN,
    TORQUE_MAX,
    CONTACT_ROWS,  # numbers of rows
    RELEASE_ROWS,
    TASK_ROWS,
    LIMIT_ROWS,
    TORQUE,  # first entries in constants: (n,) torque limits
    BALL,  # faces of the polytope in a ball (26, 3)
    LIMITS,  # (bounded, 3) lower and upper position, velocity
    BOUNDED,  # number of joints whose acceleration is bounded
    ACTUATED,  # number of joints, which follow the base; free objects follow them
    SIZES,  # numbers of entries of the parameters, 0 for absent ones
) = range(41)
"""Entries of ``layout``."""

PARAMETERS = (
    "M",
    "h",
    "force_map",
    "contact_jacobian",
    "contact_acceleration",
    "release",
    "acceleration_min",
    "acceleration_max",
    "friction",
    "friction_margin",
    "normal_min",
    "normal_max",
    "grasp_force",
    "grasp_moment",
    "acceleration_weight",
    "acceleration_pull",
    "task_matrix",
    "task_target",
    "force_weight",
    "force_pull",
    "wrench_matrix",
    "limit_matrix",
    "limit_lower",
    "force_task_matrix",
    "force_task_target",
    "torque_cost",
    "torque_pull",
    "torque_min",
    "torque_max",
)
"""Names of the parameters whose first entries are ``layout[MASS]`` and following."""

JOINTS = SIZES + len(PARAMETERS)
"""Index in ``layout`` of the first joint with bounded acceleration; these joints end ``layout``."""

(
    ACCELERATION_COST,  # weight of each acceleration squared
    FORCE_COST,  # weight of each force unknown squared
    RATE_COST,  # weight of its change squared
    MARGIN,  # N, distance of forces from their cones
    LARGE,  # N, N m: stands for an infinite force limit
    DT,
    BRAKING,
    CEILING,
    WRENCH_ROOT,  # (6,) roots of the weights of a contact's wrench
) = range(9)
"""First entries of ``constants``; from ``WRENCH_ROOT + 6`` on follow the arrays that ``layout`` points to."""

CODE, TASK_VALUES, TASK_ROW, TASK_COUNT, TASK_FRAME, SELECTED, TASK_COLUMNS = 0, 1, 2, 3, 4, 5, 11
"""Columns of the table of tasks: code of the task, first of its numbers in ``values``, first row in the task matrix,
number of rows, frame, and indices of the selected ones of three or six rows (6)."""

(
    CONTACT_FRAME,
    CONTACT_VALUES,  # first of its numbers in values
    IS_GRASP,
    POINTS,
    ROWS,  # constrained directions
    RELEASED,  # directions without force
    FIRST_FORCE,  # among the force unknowns
    FIRST_ROW,  # of contact_jacobian
    FIRST_RELEASE,
    CONE,  # index among the contacts that are not grasps, or among the grasps
    FIRST_POINT,  # among the points of the contacts that are not grasps
    FACES,
    FIRST_FACE,  # of its pyramid in constants
    WRENCH_FRAME,  # frame that the wrench's cost refers to
    FIRST_VECTOR,  # first row of ``forces`` in ``check.check_solution``
    ROLLS,  # 1 for a ball, whose axes are those of its set-point
    CONTACT_COLUMNS,
) = range(17)
"""Columns of the table of contacts."""

(
    KP,
    KD,
    MIN_INDEPENDENT,
    SETPOINT_R,
    SETPOINT_P,
    MIN_FORCE,
    MAX_FORCE,
    OWN_MAX_FORCE,
    MAX_MOMENT,
    MU,
    LEVER,
    PRELOAD,
    AXES,
    SELECTION,
) = (0, 6, 12, 18, 27, 30, 31, 32, 33, 34, 35, 36, 37, 46)
"""A contact's numbers in ``values``: gains, and the smallest independent fraction of a row (6 each), set-point (R
row-major, p), force limits, friction, lever (m, relates the cost of moments to that of forces), preload, axes (3, 3),
selection (rows, 6), then points (k, 3) and the directions without force (released, 6)."""
