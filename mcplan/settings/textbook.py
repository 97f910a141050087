"""What a scenario asks of a controller of the textbooks.

For example, an arm that presses on a wall and moves along it::

    control:
      type: operational_space
      duration: 6
      textbook:
        frame: tip
        path: [{xyz: [0.6, 0.1, 0.9]}, {xyz: [0.6, -0.1, 0.9]}]
        over: 2
        press: [20, 0, 0]
"""

from typing import Literal

from mcplan.scene.spec import NotNegative, PoseSpec, Positive, Spec, Triple
from mcplan.settings.states import Joints

ControlType = Literal[
    "whole_body",
    "gravity_compensation",
    "joint_impedance",
    "inverse_dynamics",
    "operational_space",
    "virtual_model",
    "hierarchical",
    "own",
]


class TextbookSpec(Spec):
    """What to do; each controller reads what concerns it, and begins where the plan's first stance is."""

    kp: NotNegative | None = None
    kd: NotNegative | None = None
    """Stiffness and damping. ``joint_impedance``: N m/rad, N m s/rad (default 200, 30). ``inverse_dynamics``,
    ``operational_space``, ``hierarchical``: 1/s², 1/s (100 and critical damping). ``virtual_model``: of the centre of
    mass, as a share of the mass, 1/s² and 1/s (40, critical). ``gravity_compensation``: ``kd`` alone, N m s/rad (0)."""
    posture: str | Joints | None = None
    """``joint_impedance``, ``inverse_dynamics``: where the joints go; the others stay."""
    com: Triple | None = None
    """``virtual_model``: where the centre of mass goes, world, m."""
    frame: str | None = None
    """``operational_space``, ``hierarchical``: the link or patch that is moved."""
    path: tuple[PoseSpec, ...] = ()
    """Its poses, one after the other; a pose without an orientation keeps that of the beginning."""
    over: Positive = 2.0
    """How long each motion takes, s."""
    press: Triple | None = None
    """``operational_space``: force that the frame exerts, world, N; along it force is controlled instead of motion."""
