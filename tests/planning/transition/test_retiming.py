"""Laws of least time: those of the declared program, within their margins, and none where there is none."""

from dataclasses import replace

import numpy as np
import pytest

from mcplan.motion.time_parameterization import TimeParameterization
from mcplan.optimize.path_program import law_basis, least_time
from mcplan.planning.plan_file import load_plan, save_plan
from mcplan.planning.timing import path_dynamics, retiming
from mcplan.planning.timing.path_dynamics import (
    IMPACT_HEIGHT_M,
    TOUCHDOWN_HEIGHT_M,
    PathDynamics,
    PathForces,
    RetimingError,
    preload_unknowns,
)
from mcplan.planning.timing.retiming import RESERVE_BETWEEN_NODES, TORQUE_RATE_SHARE, Retimer, SlowerError
from mcplan.scene.placement import make_contact
from tests import shared
from tests.planning.measure_retiming import difference, seconds


@pytest.mark.parametrize(("k", "jerk", "part"), [(0, 30.0, 1.0), (1, 30.0, 0.25), (0, 3.0, 1.0)])
@pytest.mark.filterwarnings("ignore::UserWarning")  # the last digits of the declared one "may be inaccurate"
def test_the_fast_form_has_the_optimum_of_the_declared_program(step, k, jerk, part):
    """With a part of all that moves it, the declared one takes longer by the root of that."""
    segment, scenario = step.segments[k], step.scenario
    retimer = Retimer(scenario.robot, scenario.replace(control={"pace": {"com_jerk": jerk}}).transition_settings)
    program, (x, u) = retimer.program(segment), retimer.solve(segment)
    declared = replace(program, part=part * program.part, bend=part * program.bend)
    time, slower, change = least_time(declared)
    assert seconds(program, x) == pytest.approx(part**0.5 * time, rel=1e-6)
    np.testing.assert_allclose(slower, part * x, atol=0.02 * part * x.max())
    np.testing.assert_allclose(change, part * u, atol=0.02 * part * np.abs(u).max())


def test_so_it_has_for_a_motion_of_a_few_hundredths_of_a_second(step, retimer):
    segment, robot = step.segments[0], step.scenario.robot
    short = part_of(robot, segment, 0.001)
    assert retimer.timing(short).duration < 0.1
    assert abs(difference(retimer, short)) < 1e-6


def part_of(robot, segment, part):
    """A segment whose postures leave the first by a part of the way."""
    q = np.array([robot.integrate(segment.q[0], robot.difference(segment.q[0], at), part) for at in segment.q])
    return replace(segment, q=q, com=robot.com(q))


def test_every_motion_takes_a_fraction_of_its_own_time_and_all_less_than_half_of_the_slow_ones(step):
    for segment in step.segments:
        assert segment.law is not None
        assert segment.time < 0.8 * segment.duration
        assert segment.law.path[-1] == segment.duration
    slow = shared.planned("step", control__pace="slow")
    assert len(slow.segments) == len(step.segments)
    assert sum(s.time for s in step.segments) < 0.5 * sum(s.time for s in slow.segments)


def test_looser_limits_make_it_faster(step):
    segment, scenario = step.segments[1], step.scenario
    times = []
    for pace in ({"acceleration": 10.0}, {"touchdown_speed": 0.1}, {"touchdown_speed": 0.3, "jerk": 1e4}):
        settings = scenario.replace(control={"pace": pace}).transition_settings
        times.append(Retimer(scenario.robot, settings).timing(segment).duration)
    assert times[0] > times[1] > times[2]


def test_velocities_accelerations_and_touching_down_keep_their_bounds(step):
    pace, robot = step.scenario.control.pace, step.scenario.robot
    for segment in step.segments:
        for t in np.linspace(0.0, segment.time, 100):
            s, rate, change = segment.law.at(t)
            x = segment.posture.sample(s)
            assert np.all(np.abs(x.v[6:]) * rate <= 1.03 * pace.velocity * robot.limits.velocity)
            assert np.all(np.abs(x.vd * rate**2 + x.v * change)[3:] <= 1.3 * pace.acceleration)
    heights, speeds = coming_down(robot, step.segments[1])
    assert np.all(speeds[heights < TOUCHDOWN_HEIGHT_M] <= 1.05 * pace.touchdown_speed)


def test_the_impact_bound_holds_at_the_end_of_the_descent_alone(step, retimer, monkeypatch):
    least = 0.01
    monkeypatch.setattr(retiming, "touchdown_speed", lambda *of: least)
    segment = retimer.time_parameterized(step.segments[1])
    heights, speeds = coming_down(retimer.robot, segment)
    assert np.all(speeds[heights < IMPACT_HEIGHT_M] <= 1.05 * least)
    assert np.all(speeds[heights < TOUCHDOWN_HEIGHT_M] <= 1.05 * retimer.pace.touchdown_speed)
    monkeypatch.setattr(path_dynamics, "IMPACT_HEIGHT_M", TOUCHDOWN_HEIGHT_M)
    assert (
        segment.time + 0.3 * (TOUCHDOWN_HEIGHT_M - IMPACT_HEIGHT_M) / least
        < retimer.time_parameterized(step.segments[1]).time
    )


def coming_down(robot, segment):
    """Heights (m) of the patch that a segment sets down over its support, and how fast it comes down there (m/s)."""
    contact = segment.courses[0].target
    times = np.linspace(0.0, segment.time, 800)
    q = np.array([segment.posture.sample(segment.law.at(t)[0]).q for t in times])
    heights = (robot.frame_pose(q, contact.patch)[:, :3, 3] - contact.p) @ contact.normal
    return heights[1:], -np.diff(heights) / times[1]


def test_torque_rates_along_a_bent_swing_stay_within_their_limit(step):
    segment, scenario = step.segments[1], step.scenario
    robot, course = scenario.robot, segment.courses[0]
    (free,) = np.nonzero(np.abs(robot.frame_jacobian(segment.q[0], course.patch)[:, 6:]).max(axis=0))
    rates, durations = {}, {}
    for most in (0.0, 100.0):
        settings = scenario.replace(control={"gains": {"torque_rate": most}}).transition_settings
        law = Retimer(robot, settings).timing(segment)
        t = np.linspace(0.0, law.duration, 600)
        s, rate, _ = np.array([law.at(each) for each in t]).T
        path = PathDynamics(robot, segment, s / segment.duration)
        bent = np.abs(np.gradient(path.of_x[:, 6 + free], s, axis=0)).max(axis=1) * rate**3
        rates[most], durations[most] = bent[20:-20].max(), law.duration  # the ends are bounded by the jerk
    assert rates[0.0] > 2.0 * 100.0
    assert 0.5 * TORQUE_RATE_SHARE * 100.0 < rates[100.0] <= 1.1 * TORQUE_RATE_SHARE * 100.0
    assert durations[0.0] < durations[100.0] < 2.5 * durations[0.0]


def test_half_the_reserve_is_kept_in_the_middle_of_path_and_time_between_nodes(step, retimer, monkeypatch):
    segment, nodes, looked = step.segments[1], law_basis().s, []
    h, k = segment.duration * np.diff(nodes), len(nodes) // 2
    u = np.zeros(len(nodes))
    u[[k, k + 1]] = -1.8 / h[k]  # it brakes within three intervals, from a rate of 2.8 to one of 0.9
    x = 8.0 + np.append(0.0, np.cumsum(h * (u[:-1] + u[1:])))
    _, middles = PathDynamics.pair(retimer.robot, segment)

    def reach(forces, x, u):
        looked.append((forces.path.s, forces.reserve, x, u))
        return np.full(len(x), 0.9 if len(looked) == 1 else 0.7)

    monkeypatch.setattr(PathForces, "reach", reach)
    part = retimer._feasible_share(middles, retimer.forces(middles, 1.0 - RESERVE_BETWEEN_NODES), x, u)
    (way, kept, *_), (time, also_kept, x_at, u_at) = looked
    assert kept == also_kept == 1.0 - RESERVE_BETWEEN_NODES
    np.testing.assert_array_equal(way, middles.s)
    assert np.all(part == 0.7)
    assert np.abs(time - middles.s).max() > 0.05 * (nodes[k + 1] - nodes[k])
    for k, (at, x_there, u_there) in enumerate(zip(time, x_at, u_at, strict=True)):
        share = np.linspace(0.0, 1.0, 20001)
        squared = x[k] + 2 * h[k] * u[k] * share + h[k] * (u[k + 1] - u[k]) * share**2
        gone = np.cumsum(squared**-0.5)  # time is the integral of ds / sqrt(x)
        half = share[np.searchsorted(gone, 0.5 * gone[-1])]
        assert at == pytest.approx(nodes[k] + half * (nodes[k + 1] - nodes[k]), abs=0.02 * (nodes[k + 1] - nodes[k]))
        assert x_there == pytest.approx(np.interp(half, share, squared), rel=0.1)
        assert u_there == pytest.approx(u[k] + half * (u[k + 1] - u[k]), abs=0.3 * np.abs(u).max())


def test_a_law_that_takes_too_much_between_its_nodes_is_slowed_down_as_a_whole(step, retimer, monkeypatch):
    """No limit is lowered about the points where it does, and no reserve may be used there."""
    monkeypatch.setattr(retiming, "MAX_ROUNDS", 0)
    monkeypatch.setattr(retiming, "RESERVE_BETWEEN_NODES", 0.0)
    segment = step.segments[3]
    law, (x, u) = retimer.timing(segment), retimer.solve(segment)
    share = law.rate**2 / x
    assert np.ptp(share) < 1e-9
    assert share[0] < 0.99
    np.testing.assert_allclose(law.change, share[0] * u, atol=1e-12)
    t = 0.5 * (law.times[:-1] + law.times[1:])
    s, rate, change = np.array([law.at(each) for each in t]).T
    path, _ = PathDynamics.pair(retimer.robot, segment)
    there = path.at(retimer.robot, s / segment.duration)
    assert retimer.forces(there, law.kept).reach(rate**2, change).min() > 1.0 - 1e-3


def test_contacts_keep_their_part_of_the_weight(step):
    segment, scenario = step.segments[1], step.scenario
    times = []
    for weight in (0.25, 0.1):
        control = {"pace": {"weight": weight}, "gains": {"torque_rate": 0.0}}
        settings = scenario.replace(control=control).transition_settings
        law = Retimer(scenario.robot, settings).timing(segment)
        rise = []
        for t in np.linspace(0.0, law.duration, 200):
            s, rate, change = law.at(t)
            x = segment.centre.sample(s)
            rise.append(x.acceleration[2] * rate**2 + x.velocity[2] * change)
        assert 0.8 * weight * 9.81 < np.abs(rise).max() <= 1.15 * weight * 9.81
        times.append(law.duration)
    assert times[1] > times[0]


def test_the_jerk_of_the_centre_of_mass_stays_within_its_bound(step):
    """Of the jerk of the centre of mass, ``|c'| |u'| sd`` is bounded in the middle of every piece."""
    segment, scenario, basis = step.segments[0], step.scenario, law_basis()
    jerks, times = [], []
    for most in (1000.0, 5.0):
        settings = scenario.replace(control={"pace": {"com_jerk": most}}).transition_settings
        x, u = Retimer(scenario.robot, settings).solve(segment)
        s = segment.duration * basis.s
        along = [np.linalg.norm(segment.centre.sample(at).velocity) for at in s[1::2]]
        jerks.append((along * np.abs(np.diff(u[::2]) / np.diff(s[::2])) * np.sqrt(x[1::2])).max())
        times.append(seconds(Retimer(scenario.robot, settings).program(segment), x))
    assert jerks[0] > 50.0
    assert 4.0 < jerks[1] < 5.0
    assert 1.01 < times[1] / times[0] < 1.5


@pytest.mark.parametrize("k", [0, 1])
def test_accelerations_of_the_body_build_up_where_it_starts_and_die_down_where_it_stops(step, k):
    """A jerk j from rest has built up ``(6 j² l)^(1/3)`` after a way l; the law keeps to that in its nodes."""
    segment, scenario, basis = step.segments[k], step.scenario, law_basis()
    s = segment.duration * basis.s[1:-1]
    centre = [segment.centre.sample(at) for at in s]
    gone = np.cumsum(np.linalg.norm(np.diff([segment.com[0], *(x.value for x in centre)], axis=0), axis=1))
    left = np.linalg.norm(np.diff([*(x.value for x in centre), segment.com[-1]], axis=0), axis=1)[::-1].cumsum()[::-1]
    parts = []
    for most in (1000.0, 20.0):
        settings = scenario.replace(control={"pace": {"com_jerk": most}}).transition_settings
        x, u = Retimer(scenario.robot, settings).solve(segment)
        along = [
            here.velocity @ (here.velocity * du + here.acceleration * dx) / np.linalg.norm(here.velocity)
            for here, du, dx in zip(centre, u[1:-1], x[1:-1], strict=True)
        ]
        parts.append(np.abs(along) / np.cbrt(6.0 * 20.0**2 * np.minimum(gone, left)))
    assert parts[0].max() > 1.1
    assert parts[1].max() < 1.001


def test_a_centre_of_mass_at_rest_prevents_no_parameterization(step, monkeypatch):
    """Where it has gone no way at all, it has no velocity, and its acceleration asks for nothing."""
    segment, retimer = step.segments[1], Retimer(step.scenario.robot, step.scenario.transition_settings)
    took = retimer.timing(segment).duration
    still, moving = segment.centre.sample(0.0), type(segment.centre).samples

    def samples(self, s):
        found = moving(self, s)
        for values, rest in zip(found, still, strict=True):
            values[s < 0.02 * segment.duration] = rest
        return found

    monkeypatch.setattr(type(segment.centre), "samples", samples)
    assert retimer.timing(segment).duration == pytest.approx(took, rel=0.1)


def test_the_toes_of_a_foot_whose_sole_is_down_are_not_counted_on(step):
    robot, segment = step.scenario.robot, step.segments[0]
    floor = step.scenario.environment
    sole = next(contact for contact in segment.contacts if contact.patch == "left_sole")
    toe = make_contact(robot, floor, {"patch": "left_toe", "surface": "floor", "x": 0.13, "y": 0.1, "yaw": 0.0})
    retimer = Retimer(robot, step.scenario.transition_settings)

    def unknowns(contacts):
        path, _ = PathDynamics.pair(robot, replace(segment, contacts=contacts))
        return retimer.forces(path, 1.0).of_contacts.size

    assert unknowns((*segment.contacts, toe)) == unknowns(segment.contacts)
    alone = tuple(contact for contact in segment.contacts if contact is not sole)
    assert unknowns((*alone, toe)) > unknowns(alone)


def test_accelerations_do_not_jump(step):
    """Over a tenth of a short time they change by about a tenth as much."""
    for segment in step.segments[:2]:
        changes = []
        for dt in (1e-3, 1e-4):
            states = [segment.law.at(t) for t in np.arange(0.0, segment.time, dt)]
            samples = [segment.posture.sample(s) for s, _, _ in states]
            vd = [x.vd * rate**2 + x.v * change for x, (_, rate, change) in zip(samples, states, strict=True)]
            changes.append(np.abs(np.diff(vd, axis=0)).max())
        assert changes[1] < 0.15 * changes[0]


def test_a_segment_that_contacts_cannot_hold_has_a_retiming_failure(step, retimer):
    segment = step.segments[1]
    q = segment.q.copy()
    q[:, 1] += 0.5 * np.sin(np.pi * np.linspace(0.0, 1.0, len(q))) ** 4
    with pytest.raises(RetimingError, match=r"\d+ % along it, no forces"):
        retimer.timing(replace(segment, q=q, com=step.scenario.robot.com(q)))
    slow = retimer.time_parameterized(replace(segment, q=q, com=step.scenario.robot.com(q)))
    assert slow.law is None
    assert "along it" in slow.retiming_failure
    assert slow.time == slow.duration
    with pytest.raises(RetimingError, match="nothing is in contact"):
        retimer.timing(replace(segment, contacts=()))


def test_a_posture_that_needs_more_than_the_pace_uses_is_left_with_less_reserve(step):
    segment, scenario = step.segments[1], step.scenario
    settings = scenario.replace(control={"pace": {"torque": 0.3}}).transition_settings
    law = Retimer(scenario.robot, settings).timing(segment)
    assert 0.0 <= law.kept < 1.0


def test_what_would_creep_keeps_less_of_its_reserve(step):
    segment, scenario = step.segments[1], step.scenario
    tightest, looser = 0.3, 1.0
    while looser - tightest > 1e-3:  # the least part of the torques with which there is a law that keeps everything
        torque = 0.5 * (tightest + looser)
        settings = scenario.replace(control={"pace": {"torque": torque}}).transition_settings
        try:
            Retimer(scenario.robot, settings).solve(segment)
            looser = torque
        except RetimingError:
            tightest = torque
    retimer = Retimer(scenario.robot, scenario.replace(control={"pace": {"torque": looser}}).transition_settings)
    law, (x, _) = retimer.timing(segment), retimer.solve(segment)
    assert law.kept < 1.0
    assert law.duration < seconds(retimer.program(segment), x)


def test_what_takes_no_less_than_another_law_is_given_up(step, retimer):
    segment = step.segments[0]
    path, middles = PathDynamics.pair(retimer.robot, segment)
    took = retimer.timing(segment).duration
    _, x, _, between = retimer._solve(path, middles, 1.0, 1.001 * took)
    assert between == 1.0
    assert seconds(retimer.program(segment), x) == pytest.approx(took, rel=1e-3)
    with pytest.raises(SlowerError):
        retimer._solve(path, middles, 1.0, 0.999 * took)
    quicker = took * (1 / 3) ** 0.25  # with a third of the reserve it is gone with the root of a third of x
    with pytest.raises(SlowerError):
        retimer._solve(path, middles, 1 / 3, quicker)


def test_the_least_time_of_short_motions_grows_with_the_root_of_their_length(step):
    segment, robot, scenario = step.segments[0], step.scenario.robot, step.scenario
    retimer = Retimer(robot, scenario.replace(control={"pace": {"com_jerk": 1000.0}}).transition_settings)
    times = np.array([retimer.timing(part_of(robot, segment, part)).duration for part in (0.001, 0.002, 0.004)])
    np.testing.assert_allclose(times[1:] / times[:-1], np.sqrt(2.0), rtol=0.02)
    assert times[0] < 0.1


def test_a_file_brings_back_the_same_laws_and_another_pace_finds_others(step, tmp_path):
    path = tmp_path / "plan.yaml"
    save_plan(step, path)
    again = load_plan(path)
    assert not again.notices
    for one, other in zip(step.segments, again.segments, strict=True):
        for name in ("times", "path", "rate", "change"):
            np.testing.assert_array_equal(getattr(one.law, name), getattr(other.law, name))
        assert one.law.kept == other.law.kept
    gentle = load_plan(path, {"control.pace": {"acceleration": 8}})
    assert sum(s.time for s in gentle.segments) > sum(s.time for s in step.segments)
    assert [segment.duration for segment in gentle.segments] == [segment.duration for segment in step.segments]
    assert "control.pace" in gentle.notices[-1]


def test_a_slow_motion_has_other_corners_and_is_planned_again(step, tmp_path):
    path = tmp_path / "plan.yaml"
    save_plan(step, path)
    slow = load_plan(path, {"control.pace": "slow"})
    assert all(segment.law is None for segment in slow.segments)
    assert slow.notices == ("the motions between stances were planned again: control.timing.swing_blend changed",)
    blend = step.scenario.transition_settings.timing.swing_blend
    same = load_plan(path, {"control": {"pace": "slow", "timing": {"swing_blend": blend}}})
    assert [segment.duration for segment in same.segments] == [segment.duration for segment in step.segments]
    assert "control.pace" in same.notices[-1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda law: law["nodes"].__setitem__(3, "1 2 3"), "four finite numbers"),
        (lambda law: law["nodes"].__setitem__(3, law["nodes"][2]), "rise from 0"),
        (lambda law: law["nodes"].pop(), "where the times of the knots end"),
        (lambda law: law["nodes"].__setitem__(0, "0 0 -1 0"), "expected positive rates"),
        (lambda law: law.__setitem__("kept", 1.5), "expected a number <= 1, got 1.5"),
    ],
)  # fmt: skip
def test_an_invalid_time_parameterization_is_an_error(step, tmp_path, change, message):
    from mcplan.document.document import dump_document
    from mcplan.errors import ScenarioError
    from mcplan.planning.plan_file import plan_document

    data = plan_document(step, tmp_path)
    change(data["stances"][1]["transition"]["segments"][0]["law"])
    (tmp_path / "bad.yaml").write_text(dump_document(data))
    with pytest.raises(ScenarioError, match=message):
        load_plan(tmp_path / "bad.yaml")


def test_a_law_knows_its_time():
    law = TimeParameterization([0.0, 1.0], [0.0, 2.0], [2.0, 2.0], [0.0, 0.0])
    assert law.duration == 1.0


def test_a_law_that_is_slower_than_the_plain_timing_is_taken_as_well(step, retimer):
    """The plain timing knows no forces: a motion that it has go more quickly than they allow goes by the law."""
    segment = step.segments[0]
    hurried = replace(segment, times=0.1 * segment.times)
    paced = retimer.time_parameterized(hurried)
    assert hurried.duration < paced.law.duration
    assert paced.law.duration == pytest.approx(retimer.timing(segment).duration, rel=1e-3)
    assert paced.retiming_failure == ""


def test_each_contact_but_a_grip_bears_its_preload_in_all_of_its_points(step, retimer):
    path = PathDynamics.pair(retimer.robot, step.segments[0])[0]
    forces = retimer.forces(path, 1.0).of_contacts
    unknowns = preload_unknowns(forces, 12.0)
    for block in forces.blocks:
        part = unknowns[block.entries].reshape(-1, 3)
        np.testing.assert_allclose(part[:, 2], 12.0 / len(part))
        assert not part[:, :2].any()
    for kept, expected in ((1.0, retimer.settings.contact.preload_force), (0.0, 0.0)):
        forces = retimer.forces(path, kept)
        borne = forces.hold + forces.G @ preload_unknowns(forces.of_contacts, expected)
        np.testing.assert_allclose(borne, path.hold, atol=1e-9)
