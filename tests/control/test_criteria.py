from mcplan.control.criteria import (
    AllOf,
    AnyOf,
    Asked,
    Elapsed,
    ErrorBelow,
    ForceAbove,
    ForceBelow,
    Measurement,
    SpeedBelow,
    Sustained,
    Timeout,
)


def measure(elapsed=1.0, error=0.0, speed=0.0, force=0.0):
    return Measurement(elapsed, {"com": error}, {"com": speed}, {"foot": force})


def test_each_criterion_turns_at_its_bound():
    cases = [
        (Elapsed(1.0), {"elapsed": 0.999}, {"elapsed": 1.0}, "time"),
        (Timeout(1.0), {"elapsed": 0.999}, {"elapsed": 1.0}, "timeout"),
        (ErrorBelow("com", 0.1), {"error": 0.101}, {"error": 0.1}, "error com"),
        (SpeedBelow("com", 0.1), {"speed": 0.101}, {"speed": 0.1}, "speed com"),
        (ForceBelow("foot", 5.0), {"force": 5.1}, {"force": 5.0}, "unloaded foot"),
        (ForceAbove("foot", 5.0), {"force": 4.9}, {"force": 5.0}, "force foot"),
    ]
    for criterion, before, at, label in cases:
        assert criterion.met(measure(**before)) == ""
        assert criterion.met(measure(**at)) == label


def test_time_is_met_at_the_tick_that_rounding_places_just_before():
    ticks = 0.0
    for _ in range(10):
        ticks += 0.1
    assert ticks < 1.0
    assert Elapsed(1.0).met(measure(elapsed=ticks)) == "time"


def test_all_needs_every_one_and_any_names_the_first_that_is_met():
    both = AllOf(Elapsed(1.0), ErrorBelow("com", 0.1))
    assert both.met(measure(error=0.2)) == ""
    assert both.met(measure(error=0.0)) == "time and error com"
    either = AnyOf(both, Timeout(3.0))
    assert either.met(measure(error=0.2)) == ""
    assert either.met(measure(error=0.2, elapsed=3.0)) == "timeout"
    assert either.met(measure(error=0.0, elapsed=3.0)) == "time and error com"


def test_what_has_to_last_is_asked_at_every_tick_whatever_else_is_met():
    def at(t, error, speed):
        return measure(elapsed=t, error=error, speed=speed)

    near, slow = ErrorBelow("com", 0.1), SpeedBelow("com", 0.1)
    both, either = AllOf(near, Sustained(slow, 0.5)), AnyOf(near, Sustained(slow, 0.5))
    moments = [at(0.0, 0.0, 0.0), at(0.2, 1.0, 1.0), at(0.7, 0.0, 0.0)]  # it has not been slow without a break
    assert [both.met(moment) for moment in moments] == [""] * 3
    assert both.met(at(1.2, 0.0, 0.0)) != ""
    assert [bool(either.met(moment)) for moment in (at(0.0, 0.0, 0.0), at(0.2, 0.0, 1.0), at(0.6, 1.0, 0.0))] == [
        True, True, False,
    ]  # fmt: skip
    waiting = AllOf(Elapsed(1.0), Sustained(slow, 0.5))
    assert [bool(waiting.met(at(t, 0.0, 0.0))) for t in (0.0, 0.5, 1.0)] == [False, False, True]


def test_what_does_not_exist_has_no_error_and_carries_nothing():
    nothing = Measurement(0.0)
    assert ErrorBelow("left_hand", 1e-3).met(nothing)
    assert ForceBelow("left_hand", 0.0).met(nothing)
    assert not ForceAbove("left_hand", 1.0).met(nothing)


def test_what_no_criterion_looks_at_is_not_computed():
    looked_at = []

    def compute(name):
        looked_at.append(name)
        return 0.5

    error = Asked(lambda: ("com", "left_foot"), compute)
    both = AllOf(Elapsed(2.0), ErrorBelow("com", 1.0))
    assert both.met(Measurement(1.0, error)) == ""
    assert looked_at == []
    assert both.met(Measurement(2.0, error)) == "time and error com"
    assert looked_at == ["com"]
    assert ErrorBelow("left_hand", 0.1).met(Measurement(0.0, error))
    assert dict(error) == {"com": 0.5, "left_foot": 0.5}
