"""Settings of the whole-body controller and its state machine: the section ``control`` of a scenario."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from mcplan.robot.anatomy import HRP2_SCALE, RobotScale
from mcplan.scene.spec import NotNegative, Positive, Spec
from mcplan.settings.pace import Pace, PaceOrSlow
from mcplan.settings.states import StateSpec
from mcplan.settings.tasks import TaskSpec
from mcplan.settings.textbook import ControlType, TextbookSpec

Form = Literal["mixed", "minimal", "projected", "multiplier", "matrix"]
Solver = Literal["DAQP", "OSQP", "CLARABEL", "PIQP"]
Fraction = Annotated[float, Field(gt=0, le=1)]


class WeightSettings(Spec):
    """Weights of the tasks in the cost of the whole-body program."""

    com: NotNegative = 2000.0
    """Position of the centre of mass. Its weight is larger than that of limbs, so that a limb that cannot follow its
    reference does not disturb balance."""
    trunk: NotNegative = 5.0
    """Orientation of the base link."""
    posture: NotNegative = 0.05
    """Positions of all joints (0.5 unless the pace is ``slow``). A weight above 1/1000 of ``com`` moves the centre of
    mass away from its target."""
    limb: NotNegative = 500.0
    """Position and orientation of a moving patch."""
    angular_momentum: NotNegative = 0.1
    """Angular momentum about the centre of mass."""
    force: Positive = 1e-5
    """Difference of the contact forces from those of the plan's stance, 1/N²."""
    force_rate: NotNegative = 1e-4
    """Change of the contact forces from step to step, 1/N²."""


class GainSettings(Spec):
    """Feedback gains of tasks and contacts. Damping is critical, ``kd = 2 sqrt(kp)``, unless a key says otherwise."""

    com_kp: NotNegative = 60.0
    trunk_kp: NotNegative = 100.0
    posture_kp: NotNegative = 40.0
    limb_kp: NotNegative = 400.0
    """Stiffness of the tasks, 1/s²."""
    angular_momentum_kd: NotNegative = 5.0
    """Damping of the angular momentum, 1/s."""
    contact_kp: NotNegative = 100.0
    """Stiffness against drift of a contact along its support, about its normal, and of flat contacts against tilting,
    1/s² (``qp``: 400 unless the pace is ``slow``)."""
    contact_normal_kp: NotNegative = 100.0
    """Stiffness of a contact along its normal, 1/s² (``qp``: 400 unless the pace is ``slow``; ``contact``, ``mujoco``:
    0, since it would fight the compliance of the contact)."""
    friction_compensation: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Fraction of the joint friction and damping of the robot's file that the torques compensate (``contact``,
    ``mujoco``: 1; joints have no friction in ``qp``)."""
    torque_rate: NotNegative = 1500.0
    """Largest rate of a joint torque, N m/s; of a prismatic joint, of its force over a lever of 0.2 m. Torques may
    jump when a patch touches, when the robot is pushed, or when no other solution exists. 0: no limit."""


class TimingSettings(Spec):
    """Durations, speeds and arrival tolerances of the motions."""

    start_time: NotNegative = 0.2
    settle_time: NotNegative = 0.5
    """Times at rest before the first phase and after the last one, s."""
    unload_time: Positive = 0.3
    """Time in which the force of a contact decreases before it opens, s."""
    load_time: Positive = 0.3
    """Time in which the force limit of a contact increases after it closed, s."""
    phase_timeout: Positive = 4.0
    """A phase fails if its end condition is not met within this time after the end of its references, s."""
    min_shift_duration: Positive = 0.8
    """Least duration of a motion of the body, s."""
    com_speed: Positive = 0.25
    trunk_speed: Positive = 0.6
    joint_speed: Positive = 1.2
    limb_speed: Positive = 0.4
    """Largest speeds of the references: centre of mass (m/s), base orientation (rad/s), joints (rad/s), moving patch
    (m/s)."""
    swing_blend: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Least duration of lift and approach, as a fraction of the swing time (0.4 unless the pace is ``slow``). They
    overlap with the swing, which rounds the corners of the path."""
    descent_speed: Positive = 0.02
    """Speed at which a patch searches for a compliant support, m/s."""
    com_tolerance: Positive = 0.01
    """A motion of the body ends when the centre of mass is within this distance of its target, m."""


class ContactSettings(Spec):
    """Contact model, and the fractions of friction, force and area that the program relies on."""

    model: Literal["rigid", "compliant"] = "rigid"
    """``rigid``: a patch touches when it is at rest at its planned pose. ``compliant``: supports yield and differ from
    the plan, so a patch searches for its support and touches when it measures a force (``contact``, ``mujoco``)."""
    friction_faces: Annotated[int, Field(ge=4, le=32, multiple_of=2)] = 8
    """Faces of the pyramid inscribed in the friction cone, an even number. Time-optimal motions use the same
    pyramid, and the forces of postures stay inside it."""
    friction_fraction: Fraction = 1.0
    """Fraction of the friction that the program relies on (``contact``, ``mujoco``: 0.95). Postures of plans use up to
    0.9 of the friction, and no more than this fraction."""
    force_fraction: Fraction = 1.0
    """Fraction of a contact's largest force and moment that the program uses (``contact``, ``mujoco``: 0.9, as in
    plans: compliant contacts bear more for moments than the program asks for)."""
    pressure_margin: NotNegative = 0.0
    """Distance of the contact forces of the program from the edge of a patch, m (``contact``, ``mujoco``: 0.005).
    Postures are planned with the same distance, 0.005 at least."""
    cop_margin: Positive = 0.05
    """Largest distance of the centre of pressure from the projected centre of mass during a shift, m. A smaller value
    makes shifts slower."""
    preload_force: NotNegative = 10.0
    """Least normal force of every closed contact except grips, N, spread over its points. Only the
    force beyond it provides friction. Time-optimal motions keep it at every contact, and so does the program where
    contacts are compliant: with less load an error of a millimetre would rotate, shift or lift a contact."""
    release_force: NotNegative = 1.0
    """Force below which a contact opens, N (``contact``, ``mujoco``: 20)."""
    touch_force: Positive = 20.0
    """Measured force at which a patch touches a compliant support, N."""
    touch_height: NotNegative = 0.01
    touch_depth: NotNegative = 0.02
    """Heights above and below its planned support between which a patch searches for it, m."""


class AvoidanceSettings(Spec):
    """Collision avoidance and clearances."""

    pairs: Annotated[int, Field(ge=0, le=64)] = 8
    """Largest number of constrained pairs of shapes, at most half of them of the same two bodies. 0 switches collision
    avoidance off."""
    clearance: NotNegative = 0.005
    """Least distance between bodies that are not in contact, m."""
    swing_clearance: NotNegative = 0.05
    """Clearance of a swinging patch over its supports, along their normals, m."""
    edge_clearance: NotNegative = 0.05
    """Clearance of a patch that passes over the edge of a support, because it comes from beside it or moves to a lower
    support, m (``contact``, ``mujoco``: 0.08)."""


class RecoverySettings(Spec):
    """Reactions to slips, lost contacts and pushes, with compliant contacts."""

    max_steps: Annotated[int, Field(ge=0, le=20)] = 4
    """Maximum number of recovery steps of a standing robot in a run. Afterwards it steps back to continue its plan."""
    slip_time: Positive = 0.01
    """The friction estimate of a contact is reduced after it has slid for this time, s."""
    lift_time: Positive = 0.05
    """A contact that should carry load but has carried none for this time is set down again, s."""


LIMB_ANGULAR_SPEED_RAD_S = 1.2
"""Largest angular speed of the reference of a moving patch, rad/s."""


class ControlSettings(Spec):
    """Settings of the whole-body controller and its state machine."""

    states: tuple[StateSpec, ...] = ()
    """New states of the state machine, and changes to those of the plan."""
    tasks: tuple[TaskSpec, ...] = ()
    """Tasks of the whole-body program in addition to those of the plan."""
    rate: Positive | None = None
    """Rate of the controller, Hz: 1 / ``simulation.dt`` or an integer fraction of it; None is every step. Torques stay
    constant in between (``contact``, ``mujoco``)."""
    type: ControlType = "whole_body"
    """Source of the torques: the whole-body program that executes the plan; a textbook controller (see ``textbook``);
    or ``own``, an object passed to `mcplan.simulate`."""
    duration: Positive = 5.0
    """Duration of a run whose torques come from another source than the whole-body program, s."""
    textbook: TextbookSpec = TextbookSpec()
    """Task of a textbook controller."""
    solver: Solver = "DAQP"
    """Quadratic program solver."""
    form: Form = "mixed"
    """Form of the equation of motion: in ``mixed`` velocities; in roll, pitch and yaw (``minimal``); in the
    unit quaternion, ``projected`` or with a ``multiplier``; or in the rotation ``matrix`` with six multipliers. The
    optimum is the same; CVXPY itself solves all forms but ``mixed``."""
    pace: PaceOrSlow = Pace()
    """Timing of the motions: ``slow``, with the speeds of ``timing``; ``fast`` (the default), in the least time that
    friction, torques, areas and velocities allow with the margins of `mcplan.settings.pace.Pace`; ``fastest``, with
    smaller margins; or a mapping of margins, where missing ones are those of ``fast``. Except for ``slow`` the
    defaults of ramps and of the search for supports follow from the margins."""
    walking: Literal["static", "dynamic"] = "static"
    """Walking on level ground: ``static``, from rest to rest; or ``dynamic``, without rest between steps if that is
    quicker and ``pace`` is not ``slow``."""
    posture_priority: Annotated[int, Field(ge=1, le=9)] = 1
    """Priority level of the posture task: from 2 on it acts only in the null space of the plan's other tasks."""
    weights: WeightSettings = WeightSettings()
    """Task weights."""
    gains: GainSettings = GainSettings()
    """Feedback gains."""
    timing: TimingSettings = TimingSettings()
    """Durations, speeds and tolerances."""
    contact: ContactSettings = ContactSettings()
    """Contact model and margins."""
    avoidance: AvoidanceSettings = AvoidanceSettings()
    """Collision avoidance."""
    recovery: RecoverySettings = RecoverySettings()
    """Reactions to slips, lost contacts and pushes."""

    @model_validator(mode="after")
    def _dynamic_walking_needs_pace(self) -> "ControlSettings":
        if self.walking == "dynamic" and self.pace is None:
            raise ValueError("`walking: dynamic` needs a pace other than `slow`: `pace: fast`, for example")
        return self

    @property
    def compliant(self) -> bool:
        """Whether contacts are compliant."""
        return self.contact.model == "compliant"

    def value(self, key: str) -> Any:
        """Return a setting by its key, such as ``gains.com_kp``."""
        group, _, name = key.rpartition(".")
        return getattr(getattr(self, group) if group else self, name)

    def updated(self, values: Mapping[str, Any]) -> "ControlSettings":
        """Return the settings with other values, by keys such as ``gains.com_kp``, without validation."""
        changes: dict[str, dict[str, Any]] = {}
        for key, value in values.items():
            group, _, name = key.rpartition(".")
            changes.setdefault(group, {})[name] = value
        ungrouped = changes.pop("", {})
        groups = {group: getattr(self, group).model_copy(update=new) for group, new in changes.items()}
        return self.model_copy(update=ungrouped | groups)

    def is_set(self, key: str) -> bool:
        """Whether a file or caller has given a setting, by its key such as ``gains.com_kp``."""
        group, _, name = key.rpartition(".")
        return name in (getattr(self, group) if group else self).model_fields_set

    def under(self, physics: str, scale: RobotScale = HRP2_SCALE) -> "ControlSettings":
        """Return the settings for a back end and a robot: keys that are not set take its defaults.

        Defaults in `FROUDE_EXPONENTS` scale like motions under gravity (Froude): lengths with the size, speeds with its
        square root, stiffnesses with its inverse, forces with the mass.

        Parameters
        ----------
        physics : name of the back end.
        scale : sizes of the robot relative to HRP-2.
        """
        if physics == "qp" and scale == HRP2_SCALE and self.pace is None:
            return self
        defaults: dict[str, Any] = {} if self.pace is None else {**self.pace.defaults()}
        if physics != "qp":
            defaults |= COMPLIANT_DEFAULTS
        if scale != HRP2_SCALE:
            factors = {key: getattr(scale, size) ** exponent for key, (size, exponent) in FROUDE_EXPONENTS.items()}
            defaults = defaults | {key: defaults.get(key, self.value(key)) * factor for key, factor in factors.items()}
        return self.updated({key: value for key, value in defaults.items() if not self.is_set(key)})


SETTING_GROUPS = ("weights", "gains", "timing", "contact", "avoidance", "recovery")
"""Keys of `ControlSettings` that are groups of settings."""

COMPLIANT_DEFAULTS: Mapping[str, Any] = {
    "gains.contact_kp": 100.0,
    "gains.contact_normal_kp": 0.0,
    "gains.friction_compensation": 1.0,
    "contact.model": "compliant",
    "contact.friction_fraction": 0.95,
    "contact.force_fraction": 0.9,
    "contact.pressure_margin": 0.005,
    "contact.release_force": 20.0,
    "avoidance.edge_clearance": 0.08,
}
"""Defaults in the physics ``contact`` and ``mujoco``, where contacts yield and slip."""

FROUDE_EXPONENTS: Mapping[str, tuple[str, float]] = {
    "avoidance.swing_clearance": ("leg", 1.0),
    "avoidance.edge_clearance": ("leg", 1.0),
    "avoidance.clearance": ("leg", 1.0),
    "contact.cop_margin": ("sole", 1.0),
    "contact.pressure_margin": ("sole", 1.0),
    "contact.touch_height": ("leg", 1.0),
    "contact.touch_depth": ("leg", 1.0),
    "timing.com_tolerance": ("sole", 1.0),
    "timing.com_speed": ("leg", 0.5),
    "timing.limb_speed": ("leg", 0.5),
    "gains.com_kp": ("leg", -1.0),
    "gains.trunk_kp": ("leg", -1.0),
    "gains.limb_kp": ("leg", -1.0),
    "gains.posture_kp": ("leg", -1.0),
    "contact.touch_force": ("mass", 3.0),
    "contact.preload_force": ("mass", 3.0),
    "contact.release_force": ("mass", 3.0),
    "gains.torque_rate": ("mass", 3.5),
}
"""For each key: a size of the robot (`RobotScale`; ``mass`` is a cube root), and the power of it with which the default
scales. All other defaults are the same for every robot.
Accuracies, times and fractions should not scale. Some should scale but do not: speeds at contacts and of objects,
angular speeds, feedback gains of contacts, and weights of momenta and forces. For a robot of another size, set them in
the scenario."""
