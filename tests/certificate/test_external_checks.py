"""What acts from outside is what the scenario says: pushes, payloads, friction of joints, limits, and nothing else."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.certificate.external_checks import external_checks, joint_losses
from mcplan.certificate.recomputed_run import RecomputedRun
from mcplan.planning.planner import plan as make_plan
from mcplan.record.records import PlaceRecord
from mcplan.scenario.load import load_scenario
from mcplan.settings.simulation import SimulationSettings
from mcplan.sim.simulate import Simulation
from tests.certificate.forging import add, broken, put, scale, tampered, with_document, with_record

STEPS = 120

STILL = {
    "stances": [{"contacts": [{"patch": f"{side}_sole", "surface": "floor"} for side in ("left", "right")]}],
    "environment.surfaces": [
        {"name": "floor", "size": [4, 2]},
        {"name": "mat", "pose": {"xyz": [3, 0, 0]}, "size": [1, 1]},
    ],
    "control.timing.start_time": 5.0,
    "simulation.pushes": [
        {"link": "CHEST_LINK1", "force": [30, -20, 5], "start": 0.01, "duration": 0.05, "point": [0, 0.1, 0.2]},
        {"link": "left_hand", "force": [0, 5, 0], "start": 0.03, "duration": 0.02, "point": [0.01, 0, 0]},
    ],
    "simulation.payloads": [{"link": "RARM_LINK6", "mass": 2.0, "com": [0, 0, -0.1]}],
    "simulation.joint_friction": 0.01,
    "simulation.joint_damping": 0.5,
    "simulation.imperfections": {
        "mass_scale": 1.02, "mass_error": 0.05, "friction_scale": 0.8, "friction_error": 0.1, "ground_height": 0.01,
        "ground_tilt": 0.03, "torque_noise": 0.002, "torque_delay": 0.002,
    },
}  # fmt: skip
"""Of ``sway``: HRP-2 stands on the floor and is pushed; the robot stays off the mat."""


@pytest.fixture(scope="module")
def plan():
    return make_plan(load_scenario("sway", STILL))


def stood(plan, physics):
    simulation = Simulation(plan, physics, seed=3)
    for _ in range(STEPS):
        simulation.step()
    return simulation.finish()


@pytest.fixture(scope="module")
def run(plan):
    return stood(plan, "contact")


@pytest.fixture(scope="module", params=["contact", "mujoco"])
def either(plan, request):
    return stood(plan, request.param)


def lines(run):
    return {check.name: check for check in external_checks(RecomputedRun(run))}


def wrong(run):
    return {name for name, check in lines(run).items() if not check.passed}


def simulated(run, **settings):
    """The run of a scenario with other settings of the simulation."""
    return with_document(run, lambda document: document | {"simulation": {**document["simulation"], **settings}})


def test_a_disturbed_run_is_explained_to_the_last_newton(either):
    run = either
    assert wrong(run) == set()
    assert lines(run)["external forces"].value <= 1e-5
    assert np.abs(run.tau_ext).max() > 10.0
    assert broken(run) <= {"item 1 of 1: contacts"}


@pytest.mark.parametrize("row", [0, 2, 4])
@pytest.mark.parametrize("amount", [1e-3, -1e-3])
def test_any_other_force_on_the_base_is_not(run, row, amount):
    for k in (5, 30, 100):  # before, during and after the push
        assert wrong(tampered(run, tau_ext=add((k, row), amount))) == {"external forces"}


def test_joints_may_lose_what_friction_and_damping_take_and_no_more(either):
    run = either
    friction = 0.01 * run.record.robot.limit("torque")
    speed = run.v[:, 6:] + run.dt * run.vd[:, 6:]
    for sign in (-1.0, 1.0):
        most = tampered(run, tau_ext=put((slice(100, 120), slice(6, None)), (sign * friction - 0.5 * speed)[100:120]))
        assert wrong(most) == set()
        assert wrong(tampered(most, tau_ext=add((110, 9), sign * 1e-3))) == {"external forces"}


def test_what_the_scenario_leaves_out_does_not_act(run):
    pushes = run.record.scenario.document["simulation"]["pushes"]
    chest, hand = pushes
    for others in (
        [], [chest], [hand], [chest | {"start": 0.012}, hand], [chest | {"force": [30, 20, 5]}, hand],
        [chest | {"duration": 0.06}, hand], [chest, hand | {"point": [0.02, 0, 0]}], [chest | {"link": "BODY"}, hand],
    ):  # fmt: skip
        assert wrong(simulated(run, pushes=others)) == {"external forces"}
    assert wrong(simulated(run, joint_damping=0.0)) == {"external forces"}
    assert wrong(simulated(run, joint_friction=0.0)) == {"external forces"}


def test_payloads_and_masses_are_those_of_the_scenario(run):
    (load,) = run.record.scenario.document["simulation"]["payloads"]
    for others in ([], [load | {"mass": 2.5}], [load | {"com": [0, 0, 0.1]}], [load | {"link": "LARM_LINK5"}]):
        assert "world" in wrong(simulated(run, payloads=others))
    flaws = run.record.scenario.document["simulation"]["imperfections"]
    for name, other in (("mass_error", 0.01), ("mass_scale", 1.2), ("friction_scale", 1.0), ("friction_error", 0.0),
                        ("ground_height", 0.0), ("ground_tilt", 0.0)):  # fmt: skip
        assert wrong(simulated(run, imperfections=flaws | {name: other})) == {"world"}, name
    links = run.record.world.links
    for name, factor in (("mass", 1.2), ("mass", 0.8)):
        heavy = links["CHEST_LINK1"].model_copy(update={name: factor * links["CHEST_LINK1"].mass})
        other = run.record.world.model_copy(update={"links": links | {"CHEST_LINK1": heavy}})
        assert wrong(with_record(run, world=other)) == {"world"}
    spun = links["CHEST_LINK1"].model_copy(update={"inertia": (1.5 * np.array(links["CHEST_LINK1"].inertia)).tolist()})
    other = run.record.world.model_copy(update={"links": links | {"CHEST_LINK1": spun}})
    assert wrong(with_record(run, world=other)) == {"world"}


def test_only_ground_without_contacts_may_be_displaced_and_within_the_imperfections(run):
    world = run.record.world
    assert set(world.surfaces) == {"mat"}
    for name, p in (
        ("floor", [0, 0, 0.001]),
        ("mat", [3, 0, 0.011]),
        ("mat", [3.001, 0, 0.0]),
        ("mat", [3, 0, -0.011]),
    ):
        surfaces = {**world.surfaces, name: PlaceRecord(R=np.eye(3).tolist(), p=p)}
        assert "world" in wrong(with_record(run, world=world.model_copy(update={"surfaces": surfaces})))
    for axis in (0, 1):
        for angle, expected in ((0.029, set()), (-0.029, set()), (0.031, {"world"}), (-0.031, {"world"})):
            R = Rotation.from_rotvec(angle * np.eye(3)[axis]).as_matrix()
            surfaces = {"mat": PlaceRecord(R=R.tolist(), p=[3, 0, 0])}
            assert wrong(with_record(run, world=world.model_copy(update={"surfaces": surfaces}))) == expected
    turned = np.array([[np.cos(0.01), -np.sin(0.01), 0], [np.sin(0.01), np.cos(0.01), 0], [0, 0, 1.0]])
    surfaces = {"mat": PlaceRecord(R=turned.tolist(), p=[3, 0, 0])}
    assert wrong(with_record(run, world=world.model_copy(update={"surfaces": surfaces}))) == {"world"}


def test_half_of_every_contact_force_called_a_force_from_outside(either):
    """The equation of motion holds, points add up, cones hold; and yet nothing pushes there."""
    run = either
    evidence = RecomputedRun(run)
    full = evidence.motion.force
    half = evidence.mechanism.motion(run.q, run.v, run.vd, 0.5 * run.wrench, run.patches).force
    planned = run.point_patch >= 0
    forged = tampered(run, wrench=scale(0.5), point_force=lambda f: np.multiply(f, 0.5, out=f, where=planned[:, None]))
    forged = replace(forged, tau_ext=run.tau_ext + half - full)
    assert broken(forged) - broken(run) == {"external forces"}


def test_what_motors_at_their_limit_do_not_give_is_explained(either):
    run = either
    limit = run.record.robot.limit("torque")[3]
    for sign in (-1.0, 1.0):
        beyond = tampered(run, tau=put((100, 3), sign * (limit + 5.0)), tau_ext=add((100, 9), -sign * 5.0))
        assert wrong(beyond) == set()
        assert wrong(tampered(beyond, tau_ext=add((100, 9), sign * 5.0))) == {"external forces"}


def test_losses_of_the_joints_are_those_of_the_urdf_and_of_the_scenario(run):
    robot = run.record.robot
    joint = robot.coordinates[3]
    text = robot.files["robot.urdf"]
    begin = text.index(f'name="{joint}"')
    end = text.index("</joint>", begin)
    files = robot.files | {"robot.urdf": text[:end] + '<dynamics damping="0.7" friction="0.3"/>' + text[end:]}
    evidence = SimpleNamespace(record=SimpleNamespace(robot=robot.model_copy(update={"files": files})))
    friction, damping = joint_losses(evidence, SimulationSettings(joint_friction=0.01, joint_damping=0.5))
    bare, slow = joint_losses(RecomputedRun(run), SimulationSettings())
    assert friction[3] - bare[3] == pytest.approx(0.3 + 0.01 * robot.limit("torque")[3])
    assert damping[3] - slow[3] == pytest.approx(0.7 + 0.5)
    assert damping[4] - slow[4] == pytest.approx(0.5)
    followed = [
        x.model_copy(update={"coordinate": 4, "multiplier": -2.0}) if x.name == joint else x for x in robot.joints
    ]
    evidence.record.robot = evidence.record.robot.model_copy(update={"joints": followed})
    friction, damping = joint_losses(evidence, SimulationSettings())
    assert friction[3:5] - bare[3:5] == pytest.approx([0.0, 2.0 * 0.3])
    assert damping[3:5] - slow[3:5] == pytest.approx([0.0, 4.0 * 0.7])


def test_joints_at_their_limits_are_pushed_away_from_them(run):
    """A force of the limit acts where the joint is, or arrives, at it, and only inward."""
    joint = 3
    upper = run.record.robot.limit("upper")[joint]
    at = tampered(run, q=put((100, 7 + joint), upper))
    inward = tampered(at, tau_ext=add((100, 6 + joint), -50.0))
    assert wrong(inward) == set()
    assert wrong(tampered(at, tau_ext=add((100, 6 + joint), 50.0))) == {"external forces"}
    assert wrong(tampered(run, tau_ext=add((100, 6 + joint), -50.0))) == {"external forces"}
    lower = tampered(run, q=put((100, 7 + joint), run.record.robot.limit("lower")[joint]))
    assert wrong(tampered(lower, tau_ext=add((100, 6 + joint), 50.0))) == set()
    assert wrong(tampered(lower, tau_ext=add((100, 6 + joint), -50.0))) == {"external forces"}


def test_unplanned_contacts_explain_what_they_are_recorded_with(run):
    """A hand that meets something: its point is in the record, and so is what it does to the joints."""
    link = run.record.links.index("LARM_LINK5")
    evidence = RecomputedRun(run)
    R, p = evidence.mechanism.poses(run.q[-1:])
    point, force = R[0, link] @ [0.02, 0.01, -0.03] + p[0, link], np.array([30.0, -10.0, 20.0])
    load = np.concatenate([force, np.cross(point, force)])[None]
    outside = run.tau_ext.copy()
    outside[-1] += evidence.mechanism.generalized(run.q[-1:], {link: load})[0]
    start = run.point_start.copy()
    start[-1] += 1

    def more(name, value):
        return np.concatenate([getattr(run, name), np.asarray([value], dtype=getattr(run, name).dtype)])

    met = replace(
        run, tau_ext=outside, point_start=start, point_link=more("point_link", link),
        point_patch=more("point_patch", -1), point_xyz=more("point_xyz", point),
        point_normal=more("point_normal", [0, 0, 1.0]), point_force=more("point_force", force),
    )  # fmt: skip
    assert wrong(met) == set()
    assert wrong(tampered(met, point_force=add((-1, 0), 1e-2))) == {"external forces"}
    assert wrong(tampered(met, point_xyz=add((-1, 2), 1e-2))) == {"external forces"}
    assert wrong(tampered(met, point_link=put(-1, 0))) == {"external forces"}


def test_generalized_forces_do_the_work_of_the_forces(run):
    """``f . (point at q + dt v - point at q) = dt F . v`` to first order, for any velocity of any link."""
    evidence, rng = RecomputedRun(run), np.random.default_rng(0)
    mechanism, q = evidence.mechanism, run.q[:1]
    R, p = mechanism.poses(q)
    for link in range(len(run.record.links)):
        v, force, point = rng.normal(size=run.v.shape[1]), rng.normal(size=3), rng.normal(size=3)
        at = R[0, link] @ point + p[0, link]
        F = mechanism.generalized(q, {link: np.concatenate([force, np.cross(at, force)])[None]})[0]
        work = []
        for dt in (-1e-5, 1e-5):
            step = run.robot.integrate(q[0], v, dt)
            R2, p2 = mechanism.poses(step[None])
            work.append(force @ (R2[0, link] @ point + p2[0, link]))
        assert (work[1] - work[0]) / 2e-5 == pytest.approx(F @ v, rel=1e-6, abs=1e-6)
