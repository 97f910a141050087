"""Amounts as a person reads them: lengths in mm, angles in degrees, with digits that say something however small."""

import math


def length(metres: float) -> str:
    """Return a length: ``12.3 mm``, from a metre on ``1.23 m``; never one that reads as nothing."""
    return f"{metres:.3g} m" if abs(metres) >= 1.0 else f"{_digits(1000.0 * metres)} mm"


def angle(radians: float) -> str:
    """Return an angle: ``1.15 deg``."""
    return f"{_digits(math.degrees(radians))} deg"


def length_or_angle(amount: float) -> str:
    """Return an amount that is the larger of one in m and one in rad."""
    return f"{length(amount)} or {angle(amount)}"


def _digits(value: float) -> str:
    """Return three digits, without an exponent for what is small."""
    return f"{value:.3g}" if abs(value) >= 0.1 or value == 0.0 else f"{value:.2g}"
