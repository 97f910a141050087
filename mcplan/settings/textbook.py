"""Settings of textbook controllers: ``control.textbook`` of a scenario.

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
    """Task of a textbook controller, which starts in the first stance of the plan; each one reads its own keys."""

    kp: NotNegative | None = None
    kd: NotNegative | None = None
    """Stiffness and damping. ``joint_impedance``: N m/rad, N m s/rad (default 200, 30). ``inverse_dynamics``,
    ``operational_space``, ``hierarchical``: 1/s², 1/s (100 and critical damping). ``virtual_model``: of the centre of
    mass, per unit of mass, 1/s² and 1/s (40, critical). ``gravity_compensation``: ``kd`` only, N m s/rad (0)."""
    posture: str | Joints | None = None
    """``joint_impedance``, ``inverse_dynamics``: final positions of joints; the others stay."""
    com: Triple | None = None
    """``virtual_model``: final position of the centre of mass, world, m."""
    frame: str | None = None
    """``operational_space``, ``hierarchical``: the controlled link or patch."""
    path: tuple[PoseSpec, ...] = ()
    """Poses of the frame in order; a pose without an orientation keeps that of the first stance."""
    over: Positive = 2.0
    """Duration of each motion, s."""
    press: Triple | None = None
    """``operational_space``: force of the frame on its environment, world, N; force control replaces motion control in
    this direction."""
