"""Pace of motions (time parameterization): ``slow``, ``fast`` (the default), ``fastest``, or custom margins.

For example::

    control:
      pace: slow

    control:
      pace: {friction: 0.6, touchdown_speed: 0.1}

``slow`` moves with the speeds of ``control.timing``. Otherwise each motion between two stances is time-optimal within
the margins below, with the full dynamics of the robot: the rest of each limit is left to feedback. A mapping has the
margins of ``fast`` as defaults. ``fastest`` uses contacts and joints almost up to their limits.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler

from mcplan.scene.spec import NotNegative, Positive, Spec

Share = Annotated[float, Field(gt=0, le=1)]


class Pace(Spec):
    """Margins of time-optimal motions."""

    friction: Share = 0.7
    """Fraction of every friction coefficient that a motion uses."""
    force: Share = 0.5
    """Fraction of every contact's largest force and moment that a motion uses. Compliant grips bear more than the
    commanded force; feedback may use a quarter of the rest of their limits."""
    torque: Share = 0.8
    """Fraction of the joint torque limits."""
    weight: Share = 0.25
    """Largest change of the total contact force, as a fraction of the weight: lightly loaded contacts slip and lift
    off."""
    pressure: NotNegative = 0.01
    """Distance of contact forces from the edge of a patch, m."""
    velocity: Share = 0.8
    """Fraction of the joint velocity limits."""
    acceleration: Positive = 40.0
    """Largest acceleration of joints and of the base rotation, rad/s² (prismatic joints: m/s²)."""
    jerk: Positive = 1000.0
    """Largest rate of these accelerations at the begin and end of a motion, per s: they build up within
    ``acceleration / jerk``."""
    com_jerk: Positive = 30.0
    """Largest jerk of the centre of mass at the begin, middle and end of a motion, m/s³."""
    touchdown_speed: Positive = 0.12
    """Normal speed of a patch at touchdown, m/s; less if the impact would overload a grip that holds the robot."""
    ramp: Positive = 0.1
    """Time in which the force of a contact decreases before it opens, s; after it closed its limit rises within half of
    that. Every motion takes at least four times as long."""

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
            # contact forces include the momentum of limbs: they must follow the planned posture
            "weights.posture": 0.5,
        }


def used(paced: float, counted: float, kept: float) -> float:
    """Return the fraction of a limit that a motion with the reserve ``kept`` uses (`TimeParameterization.kept`).

    ``paced`` is the fraction of the pace, ``counted`` that of the controller.
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
"""Margins of the named paces."""


def _named(value: Any) -> Any:
    """Return the margins of a named pace; pass mappings through."""
    if value is None or isinstance(value, dict | Pace):
        return value
    if isinstance(value, str) and value in NAMED:
        return NAMED[value]
    names = ", ".join(f"`{name}`" for name in NAMED)
    raise ValueError(f"expected {names}, or a mapping of {', '.join(Pace.model_fields)}")


class _Names:
    """Adds the names to the JSON Schema of a pace."""

    @staticmethod
    def __get_pydantic_json_schema__(schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        result = handler(schema)
        return result | {"anyOf": [*result["anyOf"], {"enum": list(NAMED)}]}


PaceOrSlow = Annotated[Pace | None, BeforeValidator(_named), _Names]
"""None is ``slow``."""
