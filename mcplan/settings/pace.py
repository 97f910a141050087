"""Time laws of motions: ``slow``, ``fast`` (the default), ``fastest``, or margins to the limits.

For example::

    control:
      pace: slow

    control:
      pace: {friction: 0.6, touchdown_speed: 0.1}

``slow`` moves with the speeds of ``control``. Otherwise each motion between two stances takes the least time within the
margins below, with the full dynamics of the robot: the rest of each limit is left to feedback. Margins that a mapping
leaves out are those of ``fast``. ``fastest`` uses nearly all that contacts and joints can give.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler

from mcplan.scene.spec import NotNegative, Positive, Spec

Share = Annotated[float, Field(gt=0, le=1)]


class Pace(Spec):
    """Margins of motions that take the least time."""

    friction: Share = 0.7
    """Part of every friction coefficient that a motion uses."""
    force: Share = 0.5
    """Part of every contact's largest force and moment: where contacts give, a grip bears more than it is asked for.
    Of what is left of grips the controller uses a quarter to follow the motion."""
    torque: Share = 0.8
    """Part of the joints' torque limits."""
    weight: Share = 0.25
    """Part of the weight that a motion takes off all contacts together, or adds to them: what bears little slips and
    lifts off."""
    pressure: NotNegative = 0.01
    """How far forces keep inside the edge of a patch, m."""
    velocity: Share = 0.8
    """Part of the joints' velocity limits."""
    acceleration: Positive = 40.0
    """Largest acceleration of a joint and of the turning base, rad/s² (m/s² of a joint that slides)."""
    jerk: Positive = 1000.0
    """Largest change of these accelerations with which a motion begins and ends, per s: they build up within
    ``acceleration / jerk``."""
    com_jerk: Positive = 30.0
    """How quickly the acceleration of the centre of mass builds up where a motion begins, is turned around in its
    middle, and dies down where it ends, m/s³."""
    touchdown_speed: Positive = 0.12
    """Normal speed at which a patch meets its support, m/s; less where the impact would be much for a grip that holds
    the robot."""
    ramp: Positive = 0.1
    """How long the force of a contact sinks before it opens, s; after it closed its limit rises within half of that. No
    motion takes less than four of it."""

    def defaults(self) -> dict[str, float]:
        """Return what settings of the control are at this pace where a file leaves them out."""
        return {
            "timing.unload_time": self.ramp,
            "timing.load_time": 0.5 * self.ramp,
            # corners of a path are taken slowly: round ones cost a sixth of the time of `walk`
            "timing.swing_blend": 0.4,
            "timing.descent_speed": self.touchdown_speed,
            "contact.touch_height": 0.005,
            "contact.touch_depth": 0.01,
            # patches that body weight is swung over drift, and are drawn back before they lift
            "gains.contact_kp": 400.0,
            "gains.contact_normal_kp": 400.0,
            # the momentum of limbs is part of what contacts bear: they go as planned
            "weights.posture": 0.5,
        }


def used(paced: float, counted: float, kept: float) -> float:
    """Return the share of a limit that a motion uses which keeps a part of its reserve (`TimeParameterization.kept`).

    ``paced`` is that of the pace, ``counted`` what the controller counts on.
    """
    least = min(paced, counted)
    return min(least + (1.0 - kept) * (counted - least), 1.0)


NAMED: Final[Mapping[str, Mapping[str, float] | None]] = MappingProxyType(
    {
        "slow": None,
        "fast": {},
        "fastest": {"friction": 0.9, "force": 0.8, "torque": 0.95, "velocity": 0.95, "pressure": 0.005},
    }
)
"""Paces that have a name, by what they set."""


def _named(value: Any) -> Any:
    """Return what the name of a pace stands for; a mapping stays what it is."""
    if value is None or isinstance(value, dict | Pace):
        return value
    if isinstance(value, str) and value in NAMED:
        return NAMED[value]
    names = ", ".join(f"`{name}`" for name in NAMED)
    raise ValueError(f"expected {names}, or a mapping of {', '.join(Pace.model_fields)}")


class _Names:
    """Add the names to the JSON Schema of a pace."""

    @staticmethod
    def __get_pydantic_json_schema__(schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        result = handler(schema)
        return result | {"anyOf": [*result["anyOf"], {"enum": list(NAMED)}]}


PaceOrSlow = Annotated[Pace | None, BeforeValidator(_named), _Names]
"""None is ``slow``."""
