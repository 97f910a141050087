"""Termination criteria of phases."""

from math import inf

import pytest

from mcplan.control.criteria import LazyValues, Measurement, criterion_of, earliest_time
from mcplan.settings.states import Until

NEAR, SLOW, TIME = Until(error="com", below=0.1), Until(speed="com", below=0.1), Until(elapsed=1.0)


def criterion(until):
    return criterion_of(until, 0.0)


def measure(elapsed=1.0, error=0.0, speed=0.0, force=0.0):
    return Measurement(elapsed, {"com": error}, {"com": speed}, {"foot": force})


@pytest.mark.parametrize(
    ("until", "before", "at", "label"),
    [
        (TIME, {"elapsed": 0.999}, {"elapsed": 1.0}, "time"),
        (Until(timeout=1.0), {"elapsed": 0.999}, {"elapsed": 1.0}, "timeout"),
        (NEAR, {"error": 0.101}, {"error": 0.1}, "error com"),
        (SLOW, {"speed": 0.101}, {"speed": 0.1}, "speed com"),
        (Until(force="foot", below=5.0), {"force": 5.1}, {"force": 5.0}, "unloaded foot"),
        (Until(force="foot", above=5.0), {"force": 4.9}, {"force": 5.0}, "force foot"),
    ],
)
def test_each_criterion_turns_at_its_bound(until, before, at, label):
    assert criterion(until).evaluate(measure(**before)) == ""
    assert criterion(until).evaluate(measure(**at)) == label


def test_time_is_met_at_the_tick_that_rounding_places_just_before():
    ticks = sum([0.1] * 10)
    assert ticks < 1.0
    assert criterion(TIME).evaluate(measure(elapsed=ticks)) == "time"


def test_all_needs_every_one_and_any_names_the_first_that_is_met():
    both = Until(all=(TIME, NEAR))
    assert criterion(both).evaluate(measure(error=0.2)) == ""
    assert criterion(both).evaluate(measure(error=0.0)) == "time and error com"
    either = criterion(Until(any=(both, Until(timeout=3.0))))
    assert either.evaluate(measure(error=0.2)) == ""
    assert either.evaluate(measure(error=0.2, elapsed=3.0)) == "timeout"
    assert either.evaluate(measure(error=0.0, elapsed=3.0)) == "time and error com"


def test_a_criterion_that_has_to_last_is_evaluated_in_every_tick():
    def at(t, error, speed):
        return measure(elapsed=t, error=error, speed=speed)

    lasting = SLOW.model_copy(update={"lasting": 0.5})
    both, either = criterion(Until(all=(NEAR, lasting))), criterion(Until(any=(NEAR, lasting)))
    moments = [at(0.0, 0.0, 0.0), at(0.2, 1.0, 1.0), at(0.7, 0.0, 0.0)]  # it has not been slow without a break
    assert [both.evaluate(moment) for moment in moments] == [""] * 3
    assert both.evaluate(at(1.2, 0.0, 0.0)) != ""
    assert [bool(either.evaluate(moment)) for moment in (at(0.0, 0.0, 0.0), at(0.2, 0.0, 1.0), at(0.6, 1.0, 0.0))] == [
        True, True, False,
    ]  # fmt: skip
    waiting = criterion(Until(all=(TIME, lasting)))
    assert [bool(waiting.evaluate(at(t, 0.0, 0.0))) for t in (0.0, 0.5, 1.0)] == [False, False, True]


def test_a_missing_task_has_no_error_and_a_missing_contact_no_force():
    nothing = Measurement(0.0)
    assert criterion(Until(error="left_hand", below=1e-3)).evaluate(nothing)
    assert criterion(Until(force="left_hand", below=0.0)).evaluate(nothing)
    assert not criterion(Until(force="left_hand", above=1.0)).evaluate(nothing)
    assert not criterion(Until(over="left_hand", below=1.0)).evaluate(nothing)


def test_only_values_that_a_criterion_needs_are_computed():
    computed = []

    def compute(name):
        computed.append(name)
        return 0.5

    error = LazyValues(lambda: ("com", "left_foot"), compute)
    both = criterion(Until(all=(Until(elapsed=2.0), Until(error="com", below=1.0))))
    assert both.evaluate(Measurement(1.0, error)) == ""
    assert computed == []
    assert both.evaluate(Measurement(2.0, error)) == "time and error com"
    assert computed == ["com"]
    assert criterion(Until(error="left_hand", below=0.1)).evaluate(Measurement(0.0, error))
    assert dict(error) == {"com": 0.5, "left_foot": 0.5}


@pytest.mark.parametrize(
    ("until", "earliest"),
    [
        (TIME, 1.0),
        (Until(all=(NEAR, TIME)), 1.0),
        (Until(any=(Until(all=(TIME, SLOW)), Until(elapsed=3.0))), 1.0),
        (Until(all=(TIME, Until(elapsed=3.0)), label="late"), 3.0),
        (Until(any=(NEAR, TIME)), -inf),
        (Until(all=(TIME, NEAR), lasting=0.5), -inf),
        (Until(all=(TIME, Until(error="com", below=0.1, lasting=0.5))), -inf),  # it has to notice interruptions
    ],
)
def test_before_its_earliest_time_no_criterion_is_met_or_has_to_be_evaluated(until, earliest):
    assert earliest_time(criterion(until)) == pytest.approx(earliest)
    assert not criterion(until).evaluate(measure(elapsed=earliest - 0.001 if earliest > 0.0 else 0.0, error=1.0))
