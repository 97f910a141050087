"""Pace of motions (time parameterization): ``slow``, ``fast`` (the default), ``fastest``, or custom margins.

For example::

    control:
      pace: slow

    control:
      pace: {friction: 0.6, touchdown_speed: 0.1}

``slow`` moves with the speeds of ``control.timing``. Otherwise each motion between two stances is time-optimal within
the margins below, with the full dynamics of the robot: the rest of each limit remains for feedback. Missing
margins of a mapping are those of ``fast``. ``fastest`` uses contacts and joints almost up to their limits.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler

from mcplan.scene.spec import NotNegative, Positive, Spec

Fraction = Annotated[float, Field(gt=0, le=1)]


class Pace(Spec):
    """Margins of time-optimal motions."""

    friction: Fraction = 0.7
    """Fraction of every friction coefficient that a motion uses."""
    force: Fraction = 0.5
    """Fraction of every contact's largest force and moment that a motion uses. Compliant grips bear more than the
    commanded force; feedback may use a quarter of the rest of their limits."""
    torque: Fraction = 0.8
    """Fraction of the joint torque limits."""
    weight: Fraction = 0.25
    """Largest change of the total contact force, as a fraction of the weight: lightly loaded contacts slip and lift
    off."""
    pressure: NotNegative = 0.01
    """Distance of contact forces from the edge of a patch, m."""
    velocity: Fraction = 0.8
    """Fraction of the joint velocity limits."""
    acceleration: Positive = 40.0
    """Largest acceleration of joints and of the base rotation, rad/s² (prismatic joints: m/s²)."""
    jerk: Positive = 1000.0
    """Largest rate of these accelerations at the beginning and end of a motion, rad/s³ (prismatic joints: m/s³). They
    build up within ``acceleration / jerk``."""
    com_jerk: Positive = 30.0
    """Largest jerk of the centre of mass at the beginning, middle and end of a motion, m/s³."""
    touchdown_speed: Positive = 0.12
    """Normal speed of a patch at touchdown, m/s; less if the impact would overload a grip that holds the robot."""
    ramp: Positive = 0.1
    """Time in which the force of a contact decreases before it opens, s. After a contact has closed, its force limit
    rises within half of this time. Every motion takes at least four times as long."""

    def defaults(self) -> dict[str, float]:
        """Return the defaults of control settings at this pace."""
        return {
            "timing.unload_time": self.ramp,
            "timing.load_time": 0.5 * self.ramp,
            # time-optimal motions slow down at sharp corners: rounding them saves a sixth of the time of `walk`
            "timing.swing_blend": 0.4,
            "timing.descent_speed": self.touchdown_speed,
            "contact.touch_height": 0.005,
            "contact.touch_depth": 0.01,
            # patches drift while the body swings over them; stiff gains return them before they lift
            "gains.contact_kp": 400.0,
            "gains.contact_normal_kp": 400.0,
            # the planned contact forces accelerate the limbs too, so these must follow the planned posture
            "weights.posture": 0.5,
        }


def used_fraction(of_pace: float, of_controller: float, reserve: float) -> float:
    """Return the fraction of a limit that a motion uses.

    Parameters
    ----------
    of_pace, of_controller : fractions of the limit that the pace and the controller use.
    reserve : from 1, the fraction of the pace (at most that of the controller), to 0, the fraction of the controller.
    """
    least = min(of_pace, of_controller)
    return min(least + (1.0 - reserve) * (of_controller - least), 1.0)


NAMED_PACES: Final[Mapping[str, Mapping[str, float] | None]] = MappingProxyType(
    {
        "slow": None,
        "fast": {},
        "fastest": {"friction": 0.9, "force": 0.8, "torque": 0.95, "velocity": 0.95, "pressure": 0.005},
    }
)
"""Margins of the named paces, where they differ from the defaults of `Pace`; None is without time-optimal motions."""


def _margins_of(value: Any) -> Any:
    """Return the margins of a named pace; pass mappings through."""
    if value is None or isinstance(value, dict | Pace):
        return value
    if isinstance(value, str) and value in NAMED_PACES:
        return NAMED_PACES[value]
    names = ", ".join(f"`{name}`" for name in NAMED_PACES)
    raise ValueError(f"expected {names}, or a mapping of {', '.join(Pace.model_fields)}")


class _NamesInSchema:
    """Extension of the JSON Schema of a pace: its name instead of a mapping."""

    @staticmethod
    def __get_pydantic_json_schema__(schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        result = handler(schema)
        return result | {"anyOf": [*result["anyOf"], {"enum": list(NAMED_PACES)}]}


PaceOrSlow = Annotated[Pace | None, BeforeValidator(_margins_of), _NamesInSchema]
"""A pace; None is ``slow``."""
