"""The sections ``simulation``, ``control`` and ``planner`` of a scenario: every option with its default."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from mcplan.robot.anatomy import HRP2_SCALE, RobotScale
from mcplan.scene.spec import NotNegative, PoseSpec, Positive, Spec
from mcplan.settings.disturbance import Imperfections, Payload, Push
from mcplan.settings.pace import PaceOrSlow
from mcplan.settings.states import StateSpec
from mcplan.settings.tasks import TaskSpec
from mcplan.settings.textbook import ControlType, TextbookSpec
from mcplan.util.back_ends import PhysicsName


class ContactLaw(Spec):
    """What contacts are like in the physics ``contact``."""

    compliance: Annotated[float, Field(gt=0, le=1)] = 1e-4
    """Of hard contacts, as a fraction of the inverse mass that a contact sees: it makes the forces of redundant
    contacts unique, and is far too small to be seen."""
    recovery: Annotated[float, Field(gt=0, le=1)] = 0.1
    recovery_speed: NotNegative = 0.2
    """Part of a penetration that a step takes back, and the greatest speed of that, m/s."""
    restitution: Annotated[float, Field(ge=0, le=1)] = 0.0
    bounce_speed: NotNegative = 0.02
    """Normal speed after an impact over the speed before, of impacts faster than this, m/s."""
    soft: bool = False
    stiffness: Positive = 1e5
    damping: NotNegative = 1e3
    """Springs and dampers instead of hard contacts: N/m and N s/m of every contact point, in all directions."""
    grasp_reach: NotNegative = 0.03
    """How far from the surface of a bar a hand may be that closes on it, m."""


class SimulationSettings(Spec):
    """How the motion is simulated: the keys of the section ``simulation`` of a scenario."""

    physics: PhysicsName = "qp"
    """Back end: ``qp`` integrates the accelerations of the quadratic program."""
    dt: Annotated[float, Field(gt=0, le=0.02)] = 0.001
    """Time step, s."""
    time_limit: Positive = 300.0
    """The simulation stops here even if the plan is not finished, s."""
    lost_time: Positive = 0.5
    """It stops when the program has had no solution for more than half of the last so many seconds: the run is lost."""

    contact: ContactLaw = ContactLaw()
    """What contacts are like (``contact``)."""
    joint_friction: Annotated[float, Field(ge=0, le=1)] = 0.0
    joint_damping: NotNegative = 0.0
    """Of every joint, besides that of the URDF: Coulomb friction as a fraction of the torque limit, and N m s/rad."""
    torque_limits: bool = True
    """Whether motors give no more than their limits (``contact``)."""
    pushes: tuple[Push, ...] = ()
    """Forces from outside."""
    payloads: tuple[Payload, ...] = ()
    """Masses that the controller knows nothing of."""
    imperfections: Imperfections = Imperfections()
    """Errors and noise. These and the four above need a physics that torques drive: ``contact`` or ``mujoco``."""


Form = Literal["mixed", "minimal", "projected", "multiplier", "matrix"]
Solver = Literal["DAQP", "OSQP", "CLARABEL", "PIQP"]


class ControlSettings(Spec):
    """Weights, gains and times of the whole-body controller and its state machine."""

    states: tuple[StateSpec, ...] = ()
    """Of the state machine: new ones, and what is different about those of the plan."""
    tasks: tuple[TaskSpec, ...] = ()
    """Of the whole-body program, beside those of the plan."""
    rate: Positive | None = None
    """How often the controller runs, Hz: 1 / ``simulation.dt`` or a whole fraction of it; None is at every step. In
    between the torques stay (``contact``, ``mujoco``)."""
    type: ControlType = "whole_body"
    """What gives the torques: the whole-body program that carries out the plan; a controller of the textbooks (see
    ``textbook``); or ``own``, an object that `mcplan.simulate` is given."""
    duration: Positive = 5.0
    """How long a run lasts in which something else than the program gives the torques, s."""
    textbook: TextbookSpec = TextbookSpec()
    """What a controller of the textbooks is to do."""
    solver: Solver = "DAQP"
    """Quadratic program solver."""
    form: Form = "mixed"
    """Of the equation of motion: in mixed velocities, in roll, pitch and yaw (``minimal``), in the unit quaternion,
    ``projected`` or with a ``multiplier``, or in the rotation ``matrix`` with six. The optimum is the same; all but
    ``mixed`` are solved by CVXPY itself."""
    friction_faces: Annotated[int, Field(ge=4, le=32, multiple_of=2)] = 8
    """Faces of the pyramid inscribed in the friction cone, an even number: rows come in opposite pairs. Laws of time
    count on the same, postures on no friction that is outside it."""

    com_weight: NotNegative = 2000.0
    com_kp: NotNegative = 60.0
    """Centre of mass; 1/s². Damping is critical everywhere. It outweighs a limb: one that cannot go where it is led is
    not to cost the balance."""
    trunk_weight: NotNegative = 5.0
    trunk_kp: NotNegative = 100.0
    """Orientation of the base link."""
    posture_weight: NotNegative = 0.05
    posture_kp: NotNegative = 40.0
    """All joints (weight at a quick ``pace``: 0.5); more than 1/1000 of the centre of mass pulls it off its target."""
    posture_priority: Annotated[int, Field(ge=1, le=9)] = 1
    """Level of the posture: from 2 on it only has what the plan's other tasks leave, whatever it weighs."""
    limb_weight: NotNegative = 500.0
    limb_kp: NotNegative = 400.0
    """Moving patch, position and orientation."""
    angular_momentum_weight: NotNegative = 0.1
    angular_momentum_damping: NotNegative = 5.0
    """About the centre of mass; 1/s."""
    force_weight: Positive = 1e-5
    force_rate_weight: NotNegative = 1e-4
    """On contact forces in N, counted from those of the plan's stance; and on their change from step to step."""

    contact_kp: NotNegative = 100.0
    contact_kd: NotNegative = 20.0
    """Feedback of contact drift, 1/s² and 1/s: stiffness along the support, about its normal and of what lies flat on
    it against tilting, damping of all (``qp`` at a quick ``pace``: 400, 40)."""
    contact_normal_kp: NotNegative = 100.0
    """Stiffness along the normal, 1/s² (``qp`` at a quick ``pace``: 400); where contacts give (``contact``, ``mujoco``:
    0) it would fight them."""
    friction_fraction: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Part of the friction that the program counts on (``contact``, ``mujoco``: 0.95). Postures of plans use up to 0.9
    of the friction, and where the program counts on less, no more than that."""
    grip_fraction: Annotated[float, Field(gt=0, le=1)] = 1.0
    """The same of contacts that hold an object in the air (``contact``, ``mujoco``: 0.5): less is a firmer grip, which
    also keeps the object from turning about the line through two hands."""
    velocity_fraction: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Part of the joints' velocity limits that the program makes use of (``contact``, ``mujoco``: 0.99: what torques do
    differs a little from what the program foresees)."""
    force_fraction: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Part of a contact's largest force and moment that the program makes use of (``contact``, ``mujoco``: 0.9, as in
    plans: contacts that give bear more for moments than the program asks)."""
    pressure_margin: NotNegative = 0.0
    """How far the program keeps contact forces inside the edge of a patch, m (``contact``, ``mujoco``: 0.005). Postures
    are planned so that forces so far inside hold them, 0.005 at least."""

    torque_rate: NotNegative = 1500.0
    """Largest change of a torque that the program asks for, N m/s, or of a prismatic joint's force over a lever of 0.2
    m; where a patch touches, the robot is pushed off its course, or there is no other solution, torques jump. 0: they
    may do so everywhere."""

    impedance_kp: NotNegative = 0.0
    impedance_kd: NotNegative = 0.0
    impedance_leak: Positive = 0.05
    """Joint impedance around the program's motion, N m/rad and N m s/rad for a joint of 150 N m, and the time constant
    with which that motion leaks to the measured one, s (``contact``, ``mujoco``: 1000, 20)."""
    friction_compensation: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of the joints' friction and damping, as the robot's file has them, that torques make up for
    (``contact``, ``mujoco``: 1; in ``qp`` joints do not rub)."""

    posture_inertia: Positive = 0.2
    """A joint that moves more than this inertia, kg m², counts in proportion to it in the posture."""

    start_time: NotNegative = 0.2
    settle_time: NotNegative = 0.5
    """At rest before the first phase and after the last one, s."""
    unload_time: Positive = 0.3
    load_time: Positive = 0.3
    """How long the force of a contact sinks before it opens, and how long its limit rises after it closed, s."""
    part_time: NotNegative = 0.1
    """Where contacts give, how long a link is given to part from a support while its limb rests on another patch, s."""
    patience: Positive = 4.0
    """A phase that has not met its criterion so long after its references ended gives up, s."""

    pace: PaceOrSlow = None
    """How quickly motions go: ``slow``, as the speeds below say; ``swift``, as quickly as friction, torques, areas and
    velocities allow with the margins of `mcplan.settings.pace.Pace`; ``swiftest``, with least; or a mapping of these
    margins, those left out as in ``swift``. Then the times of ramps and of the search for supports follow from it, too,
    where a file leaves them out."""
    walking: Literal["static", "dynamic"] = "static"
    """How the robot steps from foot to foot on level ground: from rest to rest; or, at a quick ``pace`` where that is
    quicker, without coming to rest in between."""

    shortest_shift: Positive = 0.8
    """Least duration of a motion of the body, s."""
    pressure_room: Positive = 0.05
    """Room of the centre of pressure around the centre of mass that a shift counts on, m: less is slower."""
    com_speed: Positive = 0.25
    trunk_speed: Positive = 0.6
    joint_speed: Positive = 1.2
    """Largest speeds of the references of centre of mass (m/s), base orientation (rad/s) and joints (rad/s)."""
    joint_speed_fraction: Annotated[float, Field(gt=0, le=1)] = 0.4
    """Largest speed of a joint's reference as a fraction of its limit."""
    limb_speed: Positive = 0.4
    limb_angular_speed: Positive = 1.2
    """Largest speeds of a moving patch, m/s and rad/s."""
    lift_share: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Least part of a swing's time that lift and approach take (at a quick ``pace``: 0.4): what of them overlaps the
    swing rounds its corners, which otherwise are the sharper the longer it is."""
    slide_speed: Positive = 0.2
    """Largest speed of an object that is pushed or pulled, m/s."""
    slide_error: Positive = 2e-3
    """It has arrived when it is this near to its place, m (``contact``, ``mujoco``: 0.01)."""
    clearance: NotNegative = 0.05
    """How far a moving patch keeps off its supports along their normals, m."""
    reach_clearance: NotNegative = 0.05
    """The same for a patch that comes to its support through the air, or leaves it for a place below, m: it passes over
    the edge (``contact``, ``mujoco``: 0.08)."""

    avoid_pairs: Annotated[int, Field(ge=0, le=64)] = 8
    """How many pairs of shapes are kept apart at a time, at most half of them of the same two bodies; 0 turns collision
    avoidance off."""
    avoid_clearance: NotNegative = 0.005
    """What bodies that do not touch on purpose keep between them, m."""
    avoid_distance: Positive = 0.03
    """Pairs nearer than this beyond the clearance are watched, m: room to stop from 0.4 m/s."""

    com_error: Positive = 0.01
    com_rest_speed: Positive = 0.02
    joint_rest_speed: Positive = 0.02
    """A shift of the body ends within these: m, m/s, rad/s (the joints at the end only)."""
    touch_error: Positive = 5e-4
    touch_speed: Positive = 5e-3
    """A patch touches when it is this near to its place and this slow: m, m/s (``contact``, ``mujoco``: 0.004, 0.02,
    for grips; the others feel)."""
    contacts: Literal["rigid", "compliant"] = "rigid"
    """``rigid``: a patch touches when it is in its place and at rest. ``compliant``: supports give and are not quite
    where the plan has them, so that a patch seeks them, and touches when it feels a force (``contact``, ``mujoco``)."""
    touch_force: Positive = 20.0
    touch_time: NotNegative = 0.003
    """On compliant contacts a patch touches when it feels so much for so long altogether: N, s."""
    touch_height: NotNegative = 0.01
    touch_depth: NotNegative = 0.02
    descent_speed: Positive = 0.02
    """Then the approach goes from so far above the support to so far below it at this speed: m, m/s."""
    descent_ramp: Positive = 0.2
    """In which time it gets up to that speed, s."""
    slip_speed: Positive = 0.03
    slip_time: Positive = 0.01
    """Where forces are measured, a contact that slides this fast for so long is trusted with less friction: m/s, s."""
    preload: NotNegative = 10.0
    """What every closed contact but a grip bears at least along its normal, N, spread over its points; friction is
    counted on of what it bears besides. Quick motions leave it to each of their contacts, those that keep less of their
    reserve a part of it, and it is asked for where contacts give: what bears less is turned, shifted and lifted by the
    errors of a millisecond."""
    recovery_steps: Annotated[int, Field(ge=0, le=20)] = 4
    """How many steps a robot on its feet that would fall may take in a run to catch itself where contacts give. Then it
    steps back to where its plan goes on."""
    lift_time: Positive = 0.05
    """A contact that is asked to bear a load and has borne none for so long is set down again, s."""
    release_force: NotNegative = 1.0
    """A contact opens when it carries no more than this, N (``contact``, ``mujoco``: 20)."""

    @model_validator(mode="after")
    def _walks_at_a_pace(self) -> "ControlSettings":
        if self.walking == "dynamic" and self.pace is None:
            raise ValueError("`walking: dynamic` needs a quick pace: `pace: swift`, for example")
        return self

    @property
    def compliant(self) -> bool:
        """Whether contacts give."""
        return self.contacts == "compliant"

    def under(self, physics: str, scale: RobotScale = HRP2_SCALE) -> "ControlSettings":
        """Return the settings for a back end: what the file leaves out takes that back end's defaults.

        ``scale`` is the robot's. Defaults in `POWERS` follow it as motions under gravity do (Froude): lengths with the
        size, speeds with its root, stiffnesses with its inverse, forces with the mass.
        """
        if physics == "qp" and scale == HRP2_SCALE and self.pace is None:
            return self
        defaults = ({} if self.pace is None else self.pace.defaults()) | ({} if physics == "qp" else PHYSICAL)
        if scale != HRP2_SCALE:
            sized = {key: getattr(scale, of) ** power for key, (of, power) in POWERS.items()}
            defaults = defaults | {key: defaults.get(key, getattr(self, key)) * by for key, by in sized.items()}
        return self.model_copy(update={k: v for k, v in defaults.items() if k not in self.model_fields_set})


PHYSICAL = {
    "contact_kp": 100.0,
    "contact_kd": 20.0,
    "contact_normal_kp": 0.0,
    "friction_fraction": 0.95,
    "grip_fraction": 0.5,
    "velocity_fraction": 0.99,
    "force_fraction": 0.9,
    "pressure_margin": 0.005,
    "impedance_kp": 1000.0,
    "impedance_kd": 20.0,
    "friction_compensation": 1.0,
    "touch_error": 4e-3,
    "touch_speed": 0.02,
    "contacts": "compliant",
    "release_force": 20.0,
    "reach_clearance": 0.08,
    "slide_error": 0.01,
}
"""Defaults of the control where contacts give, slip and surprise."""

POWERS = {
    "clearance": ("leg", 1.0),
    "reach_clearance": ("leg", 1.0),
    "avoid_clearance": ("leg", 1.0),
    "avoid_distance": ("leg", 1.0),
    "pressure_room": ("sole", 1.0),
    "pressure_margin": ("sole", 1.0),
    "touch_height": ("leg", 1.0),
    "touch_depth": ("leg", 1.0),
    "com_error": ("sole", 1.0),
    "com_speed": ("leg", 0.5),
    "limb_speed": ("leg", 0.5),
    "com_kp": ("leg", -1.0),
    "trunk_kp": ("leg", -1.0),
    "limb_kp": ("leg", -1.0),
    "posture_kp": ("leg", -1.0),
    "touch_force": ("mass", 3.0),
    "preload": ("mass", 3.0),
    "release_force": ("mass", 3.0),
    "torque_rate": ("mass", 3.5),
}
"""With which of the robot's sizes, and which power of it, the defaults of the control change. All others are the same
for any robot. Accuracies (``touch_error``, ``slide_error``), times and fractions should not scale. These should, but do
not (a file may give them for a robot of another size): speeds at contacts and of objects (``descent_speed``,
``touch_speed``, ``slip_speed``, ``slide_speed``), angular speeds, the feedback of contacts, ``posture_inertia``
(kg m²), and ``angular_momentum_weight``, ``force_weight`` and ``force_rate_weight``, which weigh momenta and forces
against accelerations."""


class PlannerSettings(Spec):
    """What limits the postures; options of the search live here too."""

    require: tuple[str | tuple[str, ...], ...] = ()
    """Patches that must carry over 5 N in some stance, for a robot of the mass of HRP-2 and in proportion for others; a
    list among them means one of these."""
    patches: tuple[str, ...] = ()
    """Patches that may make contacts, beside those of start and goal; empty: all of the robot's."""
    max_nodes: Annotated[int, Field(ge=1)] = 5000
    """Stances that the search may look at."""
    max_calls: Annotated[int, Field(ge=1)] = 3000
    """Calls of the posture generator that the search may take."""
    step: Annotated[float, Field(gt=0, le=2)] = 0.4
    """How far ahead of the others a contact is placed at first, along the way (m), later attempts go farther; left out,
    so far for a robot of the size of HRP-2, and in proportion for others."""
    guide: tuple[PoseSpec, ...] = ()
    """Poses of the base that the way to the first goal goes through, where the straight one does not do. At one without
    ``rpy`` and ``quat_wxyz`` the heading is between those before and after it."""
