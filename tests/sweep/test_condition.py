"""Conditions on cases: their truth is Python's, and nothing else can be written in them."""

import random

import pytest

from mcplan.errors import InputError
from mcplan.sweep.condition import Condition

ROW = {"scenario": "stairs", "seed": 3, "environment.friction": 0.4, "flag": True, "nothing": None, "a[top].b": 2}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ('scenario == "stairs"', True),
        ('scenario != "stairs"', False),
        ("seed < 3 or environment.friction <= 0.4", True),
        ("seed < 3 and environment.friction <= 0.4", False),
        ("not (seed in [1, 2])", True),
        ('scenario in ["walk", "stairs"] and flag', True),
        ("1 < seed <= 3", True),
        ("1 < seed < 2", False),
        ("4 > seed > 3", False),
        ("seed > -1", True),
        ("flag == true and nothing == null", True),
        ("a[top].b == 2", True),
        ("nothing < 3", False),  # what is not there is neither less nor more
        ("nothing >= 3", False),
        ("-nothing < 0", False),
        ("-scenario == null", True),  # a text has no negative
        ('"air" in scenario', True),
    ],
)
def test_a_condition_holds_as_it_reads(text, holds):
    assert Condition(text, ROW).holds(ROW) is holds


@pytest.mark.parametrize(
    "text",
    ["", "seed <", "open('x')", "seed.__class__()", "[s for s in seed]", "lambda: 1", "seed if flag else 2",
     "f'{seed}'", "seed := 3", "seed ** 9", "scenario == b'x'", "speed < 3", "(" * 500, "1" * 2000, "{seed: 1}",
     "seed is 3"],
)  # fmt: skip
def test_anything_else_is_refused(text):
    with pytest.raises(InputError):
        Condition(text, ROW)


def test_unknown_names_are_told_with_the_closest():
    with pytest.raises(InputError, match=r"did you mean `environment\.friction`"):
        Condition("environment.friktion < 1", ROW)


def test_comparisons_agree_with_python():
    rng = random.Random(3)
    relations = ["==", "!=", "<", "<=", ">", ">="]
    for _ in range(300):
        terms = [f"{name} {rng.choice(relations)} {rng.randint(0, 3)}" for name in rng.choices("abc", k=3)]
        one, two = rng.choices(["and", "or", "and not", "or not"], k=2)
        text = f"{terms[0]} {one} ({terms[1]} {two} {terms[2]})"
        row = {name: rng.randint(0, 3) for name in "abc"}
        assert Condition(text, row).holds(row) == eval(text, {}, row), text
