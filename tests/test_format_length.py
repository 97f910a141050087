"""Amounts for people: in mm and degrees, and never nothing for something."""

import math
import re

import pytest

from mcplan.util.text import format_angle, format_length, format_length_or_angle


@pytest.mark.parametrize("exponent", range(-8, 3))
def test_an_amount_reads_back_to_two_digits_and_is_never_nothing(exponent):
    value = 1.23456 * 10.0**exponent
    number, unit = format_length(value).split()
    assert float(number) * {"m": 1.0, "mm": 1e-3}[unit] == pytest.approx(value, rel=0.05)
    number, unit = format_angle(value).split()
    assert unit == "deg"
    assert math.radians(float(number)) == pytest.approx(value, rel=0.05)


def test_amounts_read_as_people_write_them():
    assert format_length(0.0123) == "12.3 mm"
    assert format_length(1.5) == "1.5 m"
    assert format_length(-0.004) == "-4 mm"
    assert format_angle(0.02) == "1.15 deg"
    assert re.fullmatch(r"34 mm or 1.95 deg", format_length_or_angle(0.034))
