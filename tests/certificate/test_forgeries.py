"""Forged runs: each claims something that is not so, and a line of the certificate says which."""

from dataclasses import replace

import numpy as np
import pytest

import mcplan as mc
from mcplan.certificate.independent import Mechanism
from mcplan.certificate.recomputed_run import RecomputedRun
from mcplan.certificate.tolerances import EXACT
from mcplan.record.records import LinkRecord, PlaceRecord, WorldRecord
from mcplan.util.qp_status import HOLD, NO_QP, SLACK
from tests import shared
from tests.certificate.forging import (
    add,
    asking,
    broken,
    in_physics,
    put,
    samples,
    scale,
    tampered,
    turned,
    with_contact,
    with_document,
    with_record,
)
from tests.sim.waving_box import waving_run

SOLE, TIP = 0, 1
COUNT, TOUCH = 120, 80
DEG = float(np.deg2rad(1.0))


@pytest.fixture(scope="module")
def runs():
    """Honest runs by the kind of contact that the finger makes."""
    made = {tip: waving_run(COUNT, touch=TOUCH, tip=tip) for tip in ("point", "grasp", "edge")}
    made["overhang"] = waving_run(COUNT, touch=TOUCH, overhang=0.05)
    made["crate"] = waving_run(COUNT, touch=TOUCH, crate=True)
    return made


@pytest.fixture(scope="module")
def run(runs):
    return runs["point"]


def test_the_honest_runs_pass(runs):
    assert {name: broken(run) for name, run in runs.items()} == {name: set() for name in runs}


def test_a_quaternion_and_its_negative_are_the_same_rotation(run):
    assert broken(tampered(run, q=put((slice(30, 60), slice(3, 7)), -run.q[30:60, 3:7]))) == set()


def tip(run):
    return run.point_patch == TIP


def load_on_tip(run, force, rows=slice(TOUCH, COUNT)):
    """Another force of the wall on the finger; the points say the same."""
    return tampered(run, wrench=put((rows, TIP, slice(3)), force), point_force=put(tip(run), force))


def moved_into_tau_ext(run, share):
    """Part of every contact force is called a force from outside: the equation of motion holds."""
    record = run.record
    motion = Mechanism(record.robot).motion(run.q, wrench=run.wrench * share, patches=run.patches)
    bare = Mechanism(record.robot).motion(run.q, patches=run.patches)
    outside = bare.force - motion.force
    return replace(
        run, wrench=(1 - share) * run.wrench, point_force=(1 - share) * run.point_force, tau_ext=run.tau_ext + outside
    )


def drift(run, vector):
    """The base moves away along a vector (m) from the first sample to the last."""
    share = np.linspace(0, 1, len(run))[:, None]
    return tampered(run, q=add((slice(None), slice(3)), share * vector))


def half_mass(run):
    box, *others = run.record.robot.links
    return robot(run, links=[box.model_copy(update={"mass": 0.5 * box.mass}), *others])


def robot(run, **changes):
    return with_record(run, robot=run.record.robot.model_copy(update=changes))


def without_goal(document):
    return {key: value for key, value in document.items() if key not in ("goal", "stances")}


def moved_stance(document):
    """A plan's document in which the sole is somewhere else."""
    stances = [dict(stance) for stance in document["stances"]]
    stances[1]["contacts"] = [stances[1]["contacts"][0] | {"x": 0.15}, *stances[1]["contacts"][1:]]
    return document | {"stances": stances}


def with_friction(document):
    """A plan's document in which the finger has more friction than its wall."""
    stances = [dict(stance) for stance in document["stances"]]
    stances[1]["contacts"] = [stances[1]["contacts"][0], stances[1]["contacts"][1] | {"friction": 0.9}]
    return document | {"stances": stances}


def later(run, first, at):
    """The run without its first samples; what is left begins at a time (s)."""
    rest = samples(run, range(first, len(run)))
    return replace(rest, t=at + run.dt * np.arange(len(rest)))


def world(run, **changes):
    return with_record(run, world=WorldRecord(**changes))


def heavier(run):
    box = run.record.robot.links[0]
    return LinkRecord(name="box", mass=box.mass + 1.0, com=box.com, inertia=box.inertia)


def without_tip(run):
    first, last = run.record.plan.stances
    stances = [first, last.model_copy(update={"contacts": last.contacts[:1]})]
    return with_record(run, plan=run.record.plan.model_copy(update={"stances": stances}))


def stray(run):
    """The finger pushes on something unplanned."""
    return tampered(run, point_patch=put(tip(run), -1))


def wall_away(run, by):
    """The wall of the run's world is farther away (m) than where the finger touches it."""
    wall = run.scenario.environment.support("wall")
    return world(run, surfaces={"wall": PlaceRecord(R=wall.R.tolist(), p=(wall.p - by * wall.normal).tolist())})


FORGERIES = {
    # the motion
    "torque more": (lambda r: tampered(r, tau=add((50, 1), 1e-5)), "equation of motion"),
    "torque less": (lambda r: tampered(r, tau=add((50, 1), -1e-5)), "equation of motion"),
    "forces more": (
        lambda r: tampered(r, wrench=scale(1.01), point_force=scale(1.01)), "equation of motion"),
    "forces less": (
        lambda r: tampered(r, wrench=scale(0.99), point_force=scale(0.99)), "equation of motion"),
    "acceleration": (lambda r: tampered(r, vd=add((50, 7), 1e-3)), "equation of motion"),
    "acceleration that moves nothing": (lambda r: tampered(r, vd=add((50, 7), -1e-3)), "integration identity"),
    "half of the contacts from outside": (lambda r: moved_into_tau_ext(r, 0.5), "external forces"),
    "the same in contact physics": (
        lambda r: in_physics(moved_into_tau_ext(r, 0.5), "contact"), "external forces"),
    "twice the contacts, and back from outside": (
        lambda r: in_physics(moved_into_tau_ext(r, -1.0), "contact"), "external forces"),
    "time stretched": (lambda r: tampered(r, t=scale(1.01)), "time step"),
    "time shrunk": (lambda r: tampered(r, t=scale(0.99)), "time step"),
    "time stretched, step too": (
        lambda r: with_record(tampered(r, t=scale(2.0)), dt=0.002), "integration identity"),
    "samples left out": (lambda r: samples(r, [*range(40), *range(45, COUNT)]), "time step"),
    "samples left out, times closed": (
        lambda r: replace(samples(r, [*range(40), *range(45, COUNT)]), t=r.t[:-5]), "integration identity"),
    "a sample twice": (
        lambda r: replace(samples(r, [*range(40), 39, *range(40, COUNT - 1)]), t=r.t), "integration identity"),
    "cut before the touch": (lambda r: samples(r, range(TOUCH)), "last stance"),
    "cut before the goal": (lambda r: samples(r, range(TOUCH)), "item 2 of 2: contacts"),
    "position edited": (lambda r: tampered(r, q=add((60, 8), 1e-6)), "integration identity"),
    "velocity edited": (lambda r: tampered(r, v=add((60, 6), -1e-6)), "integration identity"),
    "base turned in a sample": (lambda r: turned(r, [0, 0, 1e-6], slice(60, 61)), "integration identity"),
    "quaternion not of length 1": (lambda r: tampered(r, q=scale(1.0 + 1e-6)), "integration identity"),
    "centre of mass forward": (lambda r: tampered(r, com=add((9, 0), 1e-8)), "centre of mass"),
    "centre of mass down": (lambda r: tampered(r, com=add((9, 2), -1e-8)), "centre of mass"),
    "not a number": (lambda r: tampered(r, tau=put((50, 0), np.nan)), "all numbers finite"),
    # limits
    "torque beyond": (lambda r: tampered(r, tau=put((50, 0), 61.0)), "torque"),
    "torque beyond, backwards": (lambda r: tampered(r, tau=put((50, 0), -61.0)), "torque"),
    "velocity beyond": (lambda r: tampered(r, v=put((50, 6), 3.1)), "velocity"),
    "velocity beyond, backwards": (lambda r: tampered(r, v=put((50, 6), -3.1)), "velocity"),
    "joint beyond its upper limit": (lambda r: tampered(r, q=put((50, 7), 2.001)), "position"),
    "joint beyond its lower limit": (lambda r: tampered(r, q=put((50, 8), -2.001)), "position"),
    # the record
    "another robot's torques": (lambda r: robot(r, torque=[600.0, 600.0]), "record: robot"),
    "another robot's lower limits": (lambda r: robot(r, lower=[-9.0, -9.0]), "record: robot"),
    "another robot's upper limits": (lambda r: robot(r, upper=[9.0, 9.0]), "record: robot"),
    "another robot's velocities": (lambda r: robot(r, velocity=[9.0, 9.0]), "record: robot"),
    "another rotor": (lambda r: robot(r, armature=[0.2, 0.0]), "record: robot"),
    "a lighter robot": (half_mass, "record: robot"),
    "the robot's files edited": (
        lambda r: robot(r, files=r.record.robot.files | {"robot.yaml": r.record.robot.files["robot.yaml"] + "\n"}),
        "record: robot"),
    "the robot's files gone": (lambda r: robot(r, files={}), "record: robot"),
    "goal gone": (lambda r: with_document(r, without_goal, ("scenario",), rehash=False), "record: scenario"),
    "goal gone, hash put right": (
        lambda r: with_document(asking(r, {"base": {"xyz": [9, 9, 9]}}), without_goal, ("scenario",)),
        "record: plan is of the scenario"),
    "sequence gone, hash put right": (
        lambda r: with_document(r, without_goal, ("scenario",)), "record: plan is of the scenario"),
    "sequence cut, hash put right": (
        lambda r: with_document(r, lambda d: d | {"stances": d["stances"][:1]}, ("scenario",)),
        "record: plan is of the scenario"),
    "scenario gone": (lambda r: with_document(r, lambda _: {}, ("scenario",)), "record: scenario"),
    "plan gone": (lambda r: with_document(r, lambda _: {}, ("plan",)), "record: plan"),
    "plan edited": (lambda r: with_document(r, moved_stance, ("plan",), rehash=False), "record: plan"),
    "plan edited, hash put right": (
        lambda r: with_document(r, moved_stance, ("plan",)), "record: stances are the plan's"),
    "friction of a planned contact": (
        lambda r: with_contact(r, 1, TIP, friction=5.0), "record: stances are the plan's"),
    "friction of a planned contact, in its document too": (
        lambda r: with_document(with_contact(r, 1, TIP, friction=0.9), with_friction, ("plan",)),
        "record: plan is of the scenario"),
    # the beginning
    "first samples gone": (lambda r: later(r, 10, 0.0), "beginning"),
    "all of it later": (lambda r: later(r, 0, 100.0), "beginning"),
    "begun in motion": (lambda r: tampered(r, v=put((0, 6), 1e-6)), "beginning"),
    "begun elsewhere": (lambda r: drift(tampered(r, q=add((slice(None), 0), 1e-6)), [0, 0, 0]), "beginning"),
    # the world
    "mass that is not in the scenario": (lambda r: world(r, links={"box": heavier(r)}), "world"),
    "friction that is not in the scenario": (lambda r: world(r, friction={"floor": 2.0}), "world"),
    "floor that is elsewhere": (
        lambda r: world(r, surfaces={"floor": PlaceRecord(R=np.eye(3).tolist(), p=[0, 0, 0.01])}), "world"),
    # contacts
    "contact that is in no stance": (without_tip, "contacts are planned"),
    "contact more than the last stance has": (without_tip, "last stance"),
    "finger off its place": (
        lambda r: with_contact(r, 1, TIP, p=list(np.add(r.record.plan.stances[1].contacts[1].p, [0, 2e-3, 0]))),
        "contact place"),
    "all of it shifted": (lambda r: tampered(r, q=add((slice(None), 0), 2e-3)), "start: contacts"),
    "all of it shifted back": (lambda r: tampered(r, q=add((slice(None), 0), -2e-3)), "contact place"),
    "all of it lifted": (lambda r: tampered(r, q=add((slice(None), 2), 2e-3)), "item 1 of 2: contacts"),
    "all of it sunk": (lambda r: tampered(r, q=add((slice(None), 2), -2e-3)), "last stance, place"),
    "turned about the normal": (lambda r: turned(r, [0, 0, 0.6 * DEG]), "contact place, angle"),
    "turned the other direction": (lambda r: turned(r, [0, 0, -0.6 * DEG]), "last stance, place, angle"),
    "tilted": (lambda r: turned(r, [0.6 * DEG, 0, 0]), "start: contacts, angle"),
    "tilted the other direction": (lambda r: turned(r, [-0.6 * DEG, 0, 0]), "item 1 of 2: contacts, angle"),
    "sliding": (lambda r: drift(r, [2e-3, 0, 0]), "slip"),
    "sliding sideways, back": (lambda r: drift(r, [0, -2e-3, 0]), "slip"),
    "lifting off": (lambda r: drift(r, [0, 0, 2e-3]), "slip"),
    "turning": (lambda r: turned(r, np.linspace(0, 1, COUNT)[:, None] * [0, 0, 0.6 * DEG]), "slip, angle"),
    "turning, the other direction": (
        lambda r: turned(r, np.linspace(0, 1, COUNT)[:, None] * [0, 0, -0.6 * DEG]), "slip, angle"),
    "finger not in contact at the end": (lambda r: tampered(r, active=put((COUNT - 1, TIP), False)), "last stance"),
    "sole not in contact at the start": (lambda r: tampered(r, active=put((0, SOLE), False)), "start: contacts"),
    "finger in contact at the start": (
        lambda r: tampered(r, active=put((slice(10), TIP), True)), "start: no other contacts"),
    "point off the patch": (lambda r: tampered(r, point_xyz=add((3, 0), 1e-4)), "contact points on their patch"),
    "point off its plane": (lambda r: tampered(r, point_xyz=add((3, 2), -1e-4)), "contact points on their patch"),
    "point of another link": (lambda r: tampered(r, point_link=put(3, 2)), "contact points on their link"),
    "normal tilted": (lambda r: tampered(r, point_normal=add((3, 0), 1e-4)), "contact normals"),
    "normal of the other side": (lambda r: tampered(r, point_normal=put(3, [0, 0, -1.0])), "contact normals"),
    "points that say less": (lambda r: tampered(r, point_force=add((3, 2), -1e-3)), "points add up to wrenches"),
    "points that say more": (lambda r: tampered(r, point_force=add((3, 2), 1e-3)), "points add up to wrenches"),
    "friction beyond the cone": (lambda r: load_on_tip(r, [-5.0, 3.51, 0.0]), "friction margin"),
    "friction beyond it, the other direction": (lambda r: load_on_tip(r, [-5.0, -2.5, -2.5]), "friction margin"),
    "friction beyond it, normals tilted towards it": (
        lambda r: tampered(load_on_tip(r, [-5.0, 3.51, 0.0]), point_normal=put(tip(r), [-0.8185, 0.5746, 0.0])),
        "friction margin"),
    "a wall that pulls": (lambda r: load_on_tip(r, [1.0, 0, 0]), "unilateral"),
    "beyond the contact's force": (
        lambda r: with_contact(with_contact(r, 0, SOLE, max_force=100.0), 1, SOLE, max_force=100.0), "normal force"),
    "the first force moved to points with little pressure": (
        lambda r: load_on_tip(r, [-0.99, 20.0, 15.0]), "friction margin"),
    "a last acceleration beyond all numbers": (
        lambda r: tampered(r, vd=put((-1, [0, 4, 6]), [1e307, 1.7e308, 1.7e308])), "equation of motion"),
    "samples that are far apart": (lambda r: with_record(r, dt=2.0 * r.dt), "time step"),
    "force where nothing touches": (
        lambda r: tampered(r, active=put((slice(100, 110), TIP), False)), "force only in contact"),
    "force from something else": (stray, "unplanned contact"),
    "fallen": (lambda r: tampered(r, q=add((slice(COUNT - 5, COUNT), 2), -0.21)), "fall"),
    "stopped": (lambda r: with_record(r, stopped="fell"), "carried out"),
    # the program
    "held all the time": (lambda r: tampered(r, qp_status=put(slice(None), HOLD)), "ticks without a solution"),
    "never asked": (lambda r: tampered(r, qp_status=put(slice(None), NO_QP)), "ticks without a solution"),
    "slack all the time": (
        lambda r: tampered(r, qp_status=put(slice(None), SLACK), qp_slack=put(slice(None), 1.0)),
        "ticks in slack form"),
    "slack without the amount": (
        lambda r: replace(tampered(r, qp_status=put(slice(None), SLACK)), qp_slack=None), "ticks in slack form"),
    "one huge slack": (lambda r: tampered(r, qp_status=put(5, SLACK), qp_slack=put(5, 60.0)), "slack"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_run_is_caught_by_name(run, name):
    forge, caught = FORGERIES[name]
    assert caught in broken(forge(run))


OF_OTHERS = {
    "grasp force": ("grasp", lambda r: load_on_tip(r, [-5.0, 3.0, 1.5]), "grasp force"),
    "grasp moment": (
        "grasp", lambda r: tampered(r, wrench=put((slice(TOUCH, COUNT), TIP, slice(3, 6)), [0, 1.01, 0])),
        "grasp moment"),
    "grasp moment, the other direction": (
        "grasp", lambda r: tampered(r, wrench=put((slice(TOUCH, COUNT), TIP, slice(3, 6)), [0, 0, -1.01])),
        "grasp moment"),
    "grasp off its bar": (
        "grasp", lambda r: tampered(r, q=add((slice(None), 2), 2e-3)), "item 2 of 2: contacts"),
    "grasp along its bar": (
        "grasp", lambda r: tampered(r, q=add((slice(None), 1), 2e-3)), "item 2 of 2: contacts"),
    "grasp turned": ("grasp", lambda r: turned(r, [0, 0.6 * DEG, 0]), "item 2 of 2: contacts, angle"),
    "edge off its wall": ("edge", lambda r: tampered(r, q=add((slice(None), 0), -2e-3)), "item 2 of 2: contacts"),
    "edge turned in its wall": ("edge", lambda r: turned(r, [0.6 * DEG, 0, 0]), "item 2 of 2: contacts, angle"),
    "edge beyond its cone": ("edge", lambda r: load_on_tip(r, [-2.5, 1.8, 0]), "friction margin"),
    "overhanging corner": (
        "overhang", lambda r: tampered(r, point_xyz=add((0, 0), 0.02)), "contact points on their patch"),
    "overhanging sole elsewhere": (
        "overhang", lambda r: tampered(r, q=add((slice(None), 0), 2e-3)), "start: contacts"),
    "crate elsewhere": ("crate", lambda r: tampered(r, object_q=add((slice(60, COUNT), 0, 0), 0.5)),
                        "objects: integration"),
    "crate turned": ("crate", lambda r: tampered(r, object_q=put((slice(60, COUNT), 0, slice(3, 7)), [0.8, 0, 0, 0.6])),
                     "objects: integration"),
    "crate that moves by itself": (
        "crate", lambda r: tampered(r, object_v=put((slice(None), 0, 0), 0.1)), "objects: equation of motion"),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_OTHERS)
def test_a_forged_run_with_other_contacts_is_caught_by_name(runs, name):
    kind, forge, caught = OF_OTHERS[name]
    assert caught in broken(forge(runs[kind]))


WITHIN = {
    "shifted": (lambda r: tampered(r, q=add((slice(None), 0), 0.9e-3)), ("contact place", "start: contacts")),
    "shifted back": (lambda r: tampered(r, q=add((slice(None), 0), -0.9e-3)), ("last stance, place", "slip")),
    "turned": (lambda r: turned(r, [0, 0, 0.4 * DEG]), ("contact place, angle", "last stance, place, angle")),
    "tilted": (lambda r: turned(r, [0.4 * DEG, 0, 0]), ("start: contacts, angle", "item 1 of 2: contacts, angle")),
    "drifting": (lambda r: drift(r, [0, 0.9e-3, 0]), ("slip",)),
    "turning": (lambda r: turned(r, np.linspace(0, 1, COUNT)[:, None] * [0, 0, 0.4 * DEG]), ("slip, angle",)),
    "torque": (lambda r: tampered(r, tau=put((50, 0), -59.9)), ("torque",)),
    "velocity": (lambda r: tampered(r, v=put((50, 6), -2.9)), ("velocity",)),
    "joint": (lambda r: tampered(r, q=put((50, 7), 1.999)), ("position",)),
    "sunk": (lambda r: tampered(r, q=add((slice(COUNT - 5, COUNT), 2), -0.19)), ("fall",)),
    "friction": (lambda r: load_on_tip(r, [-5.0, 0.0, 3.49]), ("friction margin", "unilateral")),
    "the wall pushes with 1 mN": (lambda r: load_on_tip(r, [-1e-3, 0, 0]), ("unilateral", "friction margin")),
    "the contact's force": (
        lambda r: with_contact(with_contact(r, 0, SOLE, max_force=900.0), 1, SOLE, max_force=900.0), ("normal force",)),
    "one small slack": (lambda r: tampered(r, qp_status=put(5, SLACK), qp_slack=put(5, 40.0)),
                        ("slack", "ticks in slack form")),
    "slack that is none": (lambda r: tampered(r, qp_status=put(slice(None), SLACK), qp_slack=put(slice(None), 0.04)),
                           ("slack", "ticks in slack form")),
}  # fmt: skip


@pytest.mark.parametrize("name", WITHIN)
def test_what_is_within_its_bound_passes(run, name):
    change, lines = WITHIN[name]
    assert not broken(change(run)) & set(lines)


def planned_higher(run, by):
    """The plan's last stance is higher by so much."""
    first, last = run.record.plan.stances
    q = list(last.q)
    q[2] += by
    stances = [first, last.model_copy(update={"q": q})]
    return with_record(run, plan=run.record.plan.model_copy(update={"stances": stances}))


@pytest.mark.parametrize(("higher", "sunk", "fell"), [(0.5, 0.0, False), (0.5, 0.19, False), (0.5, 0.21, True),
                                                      (-0.1, 0.29, False), (-0.1, 0.31, True)])  # fmt: skip
def test_a_fall_is_below_the_lowest_planned_centre_of_mass(run, higher, sunk, fell):
    low = tampered(planned_higher(run, higher), q=add((slice(COUNT - 5, COUNT), 2), -sunk))
    assert ("fall" in broken(low)) == fell


def shifted(run, by):
    return tampered(run, q=add((slice(None), slice(3)), by))


def pushed_by_something(run, force, count, off=()):
    """The finger pushes on something unplanned, for so many samples but those that are off."""
    late = run.point_sample() >= COUNT - count
    late &= ~np.isin(COUNT - run.point_sample(), off)
    stray = tip(run) & late
    less = tampered(run, point_patch=put(stray, -1), point_force=put(stray, [0, 0, force]))
    return tampered(less, active=put((slice(COUNT - count, COUNT), TIP), False))


def tip_late(run):
    """The points of the finger in the last five samples."""
    return tip(run) & (run.point_sample() >= COUNT - 5)


PHYSICAL = {
    "a contact 9 mm off": (lambda r: shifted(r, [9e-3, 0, 0]), "contact place", False),
    "a contact 11 mm off": (lambda r: shifted(r, [0, -11e-3, 0]), "contact place", True),
    "the last stance 9 mm off": (lambda r: shifted(r, [0, 9e-3, 0]), "last stance, place", False),
    "the last stance 11 mm off": (lambda r: shifted(r, [-11e-3, 0, 0]), "last stance, place", True),
    "a start 9 mm off": (lambda r: shifted(r, [0, 0, 9e-3]), "start: contacts", False),
    "a start 11 mm off": (lambda r: shifted(r, [0, 0, -11e-3]), "start: contacts", True),
    "drifting 9 mm": (lambda r: drift(r, [9e-3, 0, 0]), "slip", False),
    "drifting 11 mm": (lambda r: drift(r, [-11e-3, 0, 0]), "slip", True),
    "turned by 2.9 degrees": (lambda r: turned(r, [0, 0, 2.9 * DEG]), "contact place, angle", False),
    "turned by 3.1 degrees": (lambda r: turned(r, [0, 0, -3.1 * DEG]), "contact place, angle", True),
    "turning by 2.9 degrees": (
        lambda r: turned(r, np.linspace(0, 1, COUNT)[:, None] * [0, 0, -2.9 * DEG]), "slip, angle", False),
    "turning by 3.1 degrees": (
        lambda r: turned(r, np.linspace(0, 1, COUNT)[:, None] * [0, 0, 3.1 * DEG]), "slip, angle", True),
    "a joint 0.9 mrad beyond": (lambda r: tampered(r, q=put((50, 8), -2.0009)), "position", False),
    "a joint 1.1 mrad beyond": (lambda r: tampered(r, q=put((50, 8), -2.0011)), "position", True),
    "a point 1.9 mm off its plane": (
        lambda r: tampered(r, point_xyz=add((3, 2), 1.9e-3)), "contact points on their patch", False),
    "a point 2.1 mm off its plane": (
        lambda r: tampered(r, point_xyz=add((3, 2), -2.1e-3)), "contact points on their patch", True),
    "a point within the patch": (
        lambda r: tampered(r, point_xyz=add((0, slice(2)), [-0.2, 0.2])), "contact points on their patch", False),
    "a point beyond the patch": (
        lambda r: tampered(r, point_xyz=add((0, 1), -2.1e-3)), "contact points on their patch", True),
    "a normal 0.09 mrad off": (lambda r: tampered(r, point_normal=add((3, 0), 0.9e-4)), "contact normals", False),
    "a normal 0.11 mrad off": (lambda r: tampered(r, point_normal=add((3, 1), -1.1e-4)), "contact normals", True),
    "a finger that touches the wall unplanned": (stray, "unplanned contact points", False),
    "a finger that touches what is not there": (
        lambda r: tampered(stray(r), point_xyz=add((tip(r), 1), 5.0)), "unplanned contact points", True),
    "a finger that touches a wall which is 10 mm away": (
        lambda r: wall_away(stray(r), 0.010), "unplanned contact points", True),
    "a finger that touches a wall which is 3 mm away": (
        lambda r: wall_away(stray(r), 0.003), "unplanned contact points", False),
    "a brush of 4.9 N": (lambda r: pushed_by_something(r, 4.9, 30), "unplanned contact", False),
    "a brush of 4.9 N with a peak": (
        lambda r: tampered(pushed_by_something(r, 4.9, 30), point_force=put(tip_late(r), [0, 0, 5.1])),
        "unplanned contact", False),
    "5.1 N for 19 ms": (lambda r: pushed_by_something(r, -5.1, 19), "unplanned contact", False),
    "5.1 N for 21 ms": (lambda r: pushed_by_something(r, 5.1, 21), "unplanned contact", True),
    "5.1 N for 10 ms of 28 ms": (lambda r: pushed_by_something(r, 5.1, 28, range(6, 24)), "unplanned contact", False),
    "5.1 N for twice 15 ms": (lambda r: pushed_by_something(r, 5.1, 31, [16]), "unplanned contact", True),
    "5.1 N for twice 15 ms, half a moment between": (
        lambda r: pushed_by_something(r, 5.1, 40, range(16, 26)), "unplanned contact", True),
    "5.1 N for twice 15 ms, far apart": (
        lambda r: pushed_by_something(r, 5.1, 55, range(16, 41)), "unplanned contact", False),
    "slack in one tick of 24": (
        lambda r: tampered(r, qp_status=put(slice(0, 5), SLACK), qp_slack=put(slice(0, 5), 1.0)),
        "ticks in slack form", False),
    "slack in one tick of 17": (
        lambda r: tampered(r, qp_status=put(slice(0, 7), SLACK), qp_slack=put(slice(0, 7), 1.0)),
        "ticks in slack form", True),
}  # fmt: skip


@pytest.mark.parametrize("name", PHYSICAL)
def test_where_torques_drive_bounds_are_those_of_what_gives(run, name):
    change, line, caught = PHYSICAL[name]
    assert (line in broken(change(in_physics(run, "contact")))) == caught


@pytest.mark.parametrize("sign", [-1, 1])
def test_objects_have_more_room_where_they_slide(runs, sign):
    for off, turn, wrong in (
        (0.019, 2.9, set()), (0.021, 2.9, {"goal: objects"}), (0.019, 3.1, {"goal: objects, angle"}),
    ):  # fmt: skip
        crate = {"xyz": [1.5 + sign * off, 1.0, 0.1], "rpy": [0, 0, sign * turn * DEG]}
        asked = asking(runs["crate"], {"objects": {"crate": crate}})
        assert broken(in_physics(asked, "contact")) & {"goal: objects", "goal: objects, angle"} == wrong


def test_what_acts_on_a_crate_does_not_act_on_the_robot(runs):
    """A point of the crate in the last sample: no force from outside on the robot, and no other contact."""
    run = in_physics(runs["crate"], "contact")
    more = {
        "point_link": len(run.record.links), "point_patch": -1, "point_xyz": [1.5, 1.0, 0.0],
        "point_normal": [0, 0, 1.0], "point_force": [0, 0, 49.05],
    }  # fmt: skip
    arrays = {
        name: np.concatenate([getattr(run, name), np.asarray([value], getattr(run, name).dtype)])
        for name, value in more.items()
    }
    start = run.point_start.copy()
    start[-1] += 1
    standing = replace(run, point_start=start, **arrays)
    assert not broken(standing) & {"external forces", "unplanned contact", "unplanned contact points"}
    arrays["point_xyz"][-1] = [1.5, 1.0, 0.3]
    assert "unplanned contact points" in broken(replace(run, point_start=start, **arrays))


@pytest.mark.parametrize(("count", "caught"), [(2, False), (3, True)])
def test_ticks_without_a_solution_count_beyond_their_share(run, count, caught):
    for status in (HOLD, NO_QP):
        forged = tampered(run, qp_status=put(slice(10, 10 + count), status))
        assert ("ticks without a solution" in broken(forged, replace(EXACT, hold=0.02))) == caught


def test_between_ticks_nothing_is_asked_of_the_program(run):
    """At half the rate of the steps every other status is that of no program."""
    slow = with_document(run, lambda document: document | {"control": {"rate": 500}})
    right = tampered(slow, qp_status=put(slice(1, None, 2), NO_QP))
    assert broken(right) == set()
    assert broken(tampered(right, qp_status=put(slice(0, 10, 2), NO_QP))) == {"ticks without a solution"}
    for judged, caught in ((run, False), (right, True)):  # a tick that lasts two steps gives up twice as much
        assert ("slack" in broken(tampered(judged, qp_status=put(4, SLACK), qp_slack=put(4, 30.0)))) == caught


@pytest.mark.slow
def test_stairs_that_end_after_three_stances_are_not_climbed():
    plan = shared.planned("stairs")
    cut = replace(plan, stances=plan.stances[:3])
    whole, part = mc.verify(plan), mc.verify(cut)
    assert whole.success
    assert whole.values["goal_reached"]
    assert not part.values["goal_reached"]
    assert {check.name for check in part.checks if not check.passed} == {"goal: contacts", "goal: contacts, angle"}
    report = mc.verify(mc.simulate(cut, physics="qp"))
    assert {check.name for check in report.checks if not check.passed} == {"goal: contacts"}
    assert report.goals[0]["reached"] is False


@pytest.mark.parametrize(
    "part",
    [
        {"goal": "home"}, {"goal": [1]}, {"goal": {"contacts": 3}}, {"goal": {"objects": {"crate": 1}}}, {"stances": 3},
        {"stances": [3]}, {"goal": {"posture": 3}}, {"start": 3}, {"start": {"contacts": [1]}}, {"simulation": 3},
        {"simulation": {"pushes": [{"link": "ghost", "force": [1, 0, 0], "start": 0, "duration": 1}]}},
        {"simulation": {"pushes": 3}}, {"control": [1]}, {"control": {"rate": "fast"}}, {"environment": 3},
    ],
)  # fmt: skip
@pytest.mark.parametrize("physics", ["qp", "contact"])
def test_documents_of_any_kind_give_a_report_and_no_success(run, part, physics):
    forged = with_record(with_document(run, lambda document: document | part, ("scenario",)), physics=physics)
    assert "record: plan is of the scenario" in broken(forged)
    both = with_record(with_document(run, lambda document: document | part), physics=physics)
    assert broken(replace(both, record=both.record.model_copy(update={"world": WorldRecord(
        surfaces={"floor": PlaceRecord(R=np.eye(3).tolist(), p=[0, 0, 0.01])})})))  # fmt: skip


def test_a_robot_file_that_is_none_is_named(run):
    for name in ("robot.urdf", "robot.yaml"):
        assert "record: robot" in broken(robot(run, files=run.record.robot.files | {name: "<nothing"}))


def test_the_evidence_is_that_of_the_file(run):
    """A plan in memory that differs from the record changes nothing."""
    assert RecomputedRun(replace(run, live_plan="anything")).plan.stances[0].patches == ("sole",)
