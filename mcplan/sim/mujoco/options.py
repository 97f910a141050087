"""How things touch in MuJoCo: who meets whom, how stiff, with which friction."""

from typing import Any

ROBOT, WORLD, OBJECT, OBJECT_SURFACE = 1, 2, 4, 8
"""Collision bits. What does not move never collides with its like; an object's surface meets the robot only."""

EVERYTHING = ROBOT | WORLD | OBJECT | OBJECT_SURFACE

SOLREF, SOLIMP = (0.005, 1.0), (0.0, 0.99, 3e-5, 0.5, 2.0)
"""Time constant (s) and damping ratio; force grows with depth, and contacts are stiff from 0.03 mm on.

MuJoCo takes the part that ``SOLIMP`` begins with off the acceleration at which bodies approach, however little they
overlap. With its default of 0.9 a sole that is about to lift off loses a hundred newtons within a step, the other one
gets them, and both chatter while weight is shifted. Where depths are ten times as large, light contacts creep."""

STIFF = (0.95, 0.99, 0.001, 0.5, 2.0)
"""``SOLIMP`` of what is held at no depth, grips, and of objects, which must not creep."""

SLIDING = (0.1, 1.0)
"""Time constant and damping ratio of the friction below an object. MuJoCo's contacts answer what they take off a
sliding speed ``v`` within this time by lifting it with ``mu v / time``, times two: a box of HRP-2's size at 0.2 m/s
would hop with 5 ms. With 0.1 s it stays down, and creeps by 0.1 mm/s under half of the force that would move it."""


def contact_options(bit: int, meets: int, friction: float | None = None) -> dict[str, Any]:
    """Return the options of a geom.

    The friction of a contact is that of the support, which has priority over the robot's. Contacts have no torsional
    friction of their own (condim 3): a patch turns by its points, whose recorded forces are then all that acts.

    Parameters
    ----------
    bit, meets : what the geom is, and what it collides with.
    friction : of a support; None for the robot.
    """
    return {
        "contype": bit, "conaffinity": meets, "condim": 3, "friction": [friction or 0.0, 0.0, 0.0],
        "priority": 0 if friction is None else 1, "solref": SOLREF, "solimp": SOLIMP, "density": 0.0,
    }  # fmt: skip
