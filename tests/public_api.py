"""A user's file: the public names, as a type checker with all its rules sees them (`tests/test_public_names.py`)."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import mcplan as mc


class Gaze:
    """A task of one's own: any class with these members is one."""

    weight = 1.0
    dimension = 3
    key = ("gaze",)
    diagonal = False
    frames = ("HEAD_LINK1",)

    def rows(self, terms: mc.Terms) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return A and b."""
        return np.zeros((3, 34)), np.zeros(3)


class Log(mc.Observer):
    """An observer of one's own."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def on_step(self, sample: mc.StepSample) -> None:
        """Keep the time."""
        self.times.append(sample.t)


def scene() -> tuple[mc.Robot, mc.Environment, list[mc.Contact]]:
    """Return robot, environment and contacts at the start."""
    robot: mc.Robot = mc.load_robot("hrp2")
    floor = mc.Surface("floor", size=(4, 4))
    rail = mc.Bar("rail", ends=[(0, 0.5, 0.8), (2, 0.5, 0.8)], radius=0.02)
    post = mc.Obstacle("post", mc.Box((0.1, 0.1, 1.0)), xyz=(1, 0, 0.5))
    box = mc.FreeObject("box", mc.Sphere(0.1), mass=2.0, xyz=(1, 1, 0.1))
    soles = [mc.contact(robot, f"{side}_sole", floor, x=0.0, y=y) for side, y in (("left", 0.1), ("right", -0.1))]
    return robot, mc.Environment([floor, rail, post, box]), soles


def statics(robot: mc.Robot, environment: mc.Environment, contacts: list[mc.Contact]) -> float:
    """Return how far the centre of mass is from the border of the support region."""
    found: mc.PostureResult = mc.solve_posture(robot, environment, contacts, near=robot.posture("half_sitting"))
    forces: mc.Equilibrium = mc.balance(robot, found.q, contacts)
    cone: mc.WrenchSet = mc.wrench_cone(contacts[0])
    region: mc.SupportRegion = mc.support_region(robot, found.q, contacts)
    depth: float = region.depth(robot.com(found.q)) + cone.depth(forces.wrenches["left_sole"])
    return depth


def parts(robot: mc.Robot, contacts: list[mc.Contact]) -> bool:
    """Use the packages whose names are public."""
    q, v = robot.posture("half_sitting"), np.zeros(robot.nv)
    dynamics = mc.coordinates.Lagrangian(robot, mc.coordinates.ROTATION_MATRIX)
    tip: mc.kinematics.InverseKinematics = mc.kinematics.inverse_kinematics(robot, {"left_hand": np.eye(4)}, q)
    rows: mc.constraint.ContactRows = mc.constraint.contact_rows(robot, q, v, contacts)
    return tip.reached and dynamics.size > len(rows)


def motion(robot: mc.Robot, environment: mc.Environment, contacts: list[mc.Contact], home: Path) -> mc.Report:
    """Plan, simulate, verify, write."""
    scenario: mc.Scenario = mc.Scenario(robot, environment, start=contacts, goal=contacts)
    scenario = scenario.replace(name="other", simulation={"dt": 0.002})
    scenario.save(home / "other.yaml")
    plan: mc.Plan = mc.plan(scenario, seed=1, progress=True)
    mc.save_plan(plan, home / "other.plan.yaml")
    plan = mc.load_plan(home / "other.plan.yaml")
    stance: mc.Stance = plan.stances[0]
    print(stance.patches, plan.summary())
    log = Log()
    run: mc.Run = mc.simulate(plan, physics="contact", observers=[log], tasks=[Gaze(), mc.ComTask()], progress=True)
    run.save(home)
    files: list[Path] = mc.export_run(mc.load_run(home), "csv", home / "run.csv", rate=50.0)
    page: Path = mc.save_html(run, home / "run.html")
    mc.show(plan)
    print(files, page)
    return mc.verify(run)


def by_hand(plan: mc.Plan) -> mc.Run:
    """Carry a plan out step by step."""
    simulation = mc.Simulation(plan, physics="qp")
    while (sample := simulation.step()) is not None:
        tau: NDArray[np.float64] = sample.tau
        if not np.isfinite(tau).all():
            break
    return simulation.finish()


def many(home: Path) -> int:
    """Sweep an experiment."""
    experiment: mc.Experiment = mc.load_experiment({"mcplan": 1, "name": "walks", "scenarios": ["walk"]})
    results: mc.Results = mc.sweep(experiment, home, workers=1, progress=True)
    return len(results)


def wrong() -> str:
    """Meet an error."""
    try:
        mc.load_scenario("nothing")
    except mc.InputError as error:
        return error.problems[0].message
    except mc.PlanningFailed:
        return "no plan"
    return ""
