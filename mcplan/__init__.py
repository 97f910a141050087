"""mcplan: multi-contact motion planning, whole-body control and simulation for humanoids.

    import mcplan as mc
    scenario = mc.load_scenario("table_hand")
    run = mc.simulate(mc.plan(scenario), progress=True)
    print(mc.verify(run))
    mc.save_html(run, "replay.html")

or without a file::

    robot, floor = mc.load_robot("hrp2"), mc.Surface("floor", size=(6, 4))
    soles = [mc.contact(robot, side + "_sole", floor, x=0, y=y) for side, y in (("left", 0.095), ("right", -0.095))]
    goal = [mc.contact(robot, side + "_sole", floor, x=1, y=y) for side, y in (("left", 0.095), ("right", -0.095))]
    plan = mc.plan(mc.Scenario(robot, mc.Environment([floor]), start=soles, goal=goal))

Names are imported when they are first used, so that ``import mcplan`` and ``mcplan --help`` start at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mcplan.version import __version__

if TYPE_CHECKING:
    from mcplan.api import (
        save_html as save_html,
        save_report as save_report,
        simulate as simulate,
        sweep as sweep,
    )
    from mcplan.certificate.report import Check as Check, Report as Report
    from mcplan.certificate.verify import verify as verify
    from mcplan.contrib.pymanoid_stance import (
        ImportedStance as ImportedStance,
        read_pymanoid_stance as read_pymanoid_stance,
    )
    from mcplan.contrib.step_list import read_step_list as read_step_list
    from mcplan.control.controller import WholeBodyController as WholeBodyController
    from mcplan.control.textbook import (
        GravityCompensation as GravityCompensation,
        ImpedanceControl as ImpedanceControl,
        InverseDynamicsControl as InverseDynamicsControl,
        OperationalSpaceControl as OperationalSpaceControl,
        SupportedInverseDynamics as SupportedInverseDynamics,
        TaskHierarchy as TaskHierarchy,
        VirtualModelControl as VirtualModelControl,
    )
    from mcplan.errors import (
        InputError as InputError,
        JobFailed as JobFailed,
        PlanningFailed as PlanningFailed,
        ScenarioWarning as ScenarioWarning,
        SimulationFailed as SimulationFailed,
    )
    from mcplan.export import export_run as export_run
    from mcplan.planning.plan import Plan as Plan, PlannedStance as PlannedStance
    from mcplan.planning.plan_file import load_plan as load_plan, save_plan as save_plan
    from mcplan.planning.planner import plan as plan
    from mcplan.planning.posture.generator import solve_posture as solve_posture
    from mcplan.planning.posture.result import PostureResult as PostureResult
    from mcplan.planning.posture.task import BaseTarget as BaseTarget
    from mcplan.planning.transition.transition import Segment as Segment, Transition as Transition
    from mcplan.record.run import Run as Run, load_run as load_run
    from mcplan.robot.description import (
        Box as Box,
        Capsule as Capsule,
        Cylinder as Cylinder,
        MeshShape as MeshShape,
        Sphere as Sphere,
    )
    from mcplan.robot.robot import Robot as Robot
    from mcplan.robot.robot_file import load_robot as load_robot
    from mcplan.robot.terms import Terms as Terms
    from mcplan.scenario.load import load_scenario as load_scenario
    from mcplan.scenario.scenario import Scenario as Scenario
    from mcplan.scene.contact import Contact as Contact
    from mcplan.scene.environment import (
        Bar as Bar,
        Environment as Environment,
        FreeObject as FreeObject,
        Obstacle as Obstacle,
        Surface as Surface,
    )
    from mcplan.scene.placement import contact as contact
    from mcplan.settings.control import ControlSettings as ControlSettings
    from mcplan.settings.planner import PlannerSettings as PlannerSettings
    from mcplan.settings.simulation import SimulationSettings as SimulationSettings
    from mcplan.sim.observer import Observer as Observer, StepSample as StepSample
    from mcplan.sim.progress_bar import ProgressBar as ProgressBar
    from mcplan.sim.simulate import Simulation as Simulation, make_physics as make_physics
    from mcplan.statics.com_region import com_polyhedron as com_polyhedron
    from mcplan.statics.equilibrium import Equilibrium as Equilibrium, balance as balance
    from mcplan.statics.feasibility import shortfall as shortfall
    from mcplan.statics.support_region import (
        SupportRegion as SupportRegion,
        posture_support_region,
        zmp_area as zmp_area,
    )
    from mcplan.statics.wrench_set import WrenchSet as WrenchSet, wrench_set
    from mcplan.sweep.experiment import Experiment as Experiment, load_experiment as load_experiment
    from mcplan.sweep.results import Results as Results
    from mcplan.textbook import constraint as constraint, coordinates as coordinates, kinematics as kinematics
    from mcplan.textbook.constraint.contact_rows import contact_rows as contact_rows, stance_rank as stance_rank
    from mcplan.textbook.constraint.dynamics import ConstrainedDynamics as ConstrainedDynamics
    from mcplan.textbook.constraint.support_kinematics import support_inverse_kinematics as support_inverse_kinematics
    from mcplan.textbook.coordinates.equations import derive_equation_of_motion
    from mcplan.textbook.kinematics.inverse_kinematics import (
        InverseKinematics as InverseKinematics,
        inverse_kinematics as inverse_kinematics,
    )
    from mcplan.view.live import LiveView as LiveView
    from mcplan.view.plots import save_plots as save_plots
    from mcplan.view.plots.contact import plot_region
    from mcplan.view.show import show as show
    from mcplan.whole_body.tasks.com import AngularMomentumTask as AngularMomentumTask, ComTask as ComTask
    from mcplan.whole_body.tasks.forces import ContactForceTask as ContactForceTask, TorqueTask as TorqueTask
    from mcplan.whole_body.tasks.look_at import LookAtTask as LookAtTask
    from mcplan.whole_body.tasks.pose import LinkPoseTask as LinkPoseTask, RelativePoseTask as RelativePoseTask
    from mcplan.whole_body.tasks.posture import PostureTask as PostureTask
    from mcplan.whole_body.tasks.task import Task as Task

    # names that are others inside: a checker with all its rules takes them for exported so
    plot, support_region, wrench_cone = plot_region, posture_support_region, wrench_set
    equations_of_motion = derive_equation_of_motion
    Stance = PlannedStance

_HOME = {
    "mcplan.api": "simulate sweep save_html save_report",
    "mcplan.certificate.report": "Check Report",
    "mcplan.certificate.verify": "verify",
    "mcplan.contrib.pymanoid_stance": "ImportedStance read_pymanoid_stance",
    "mcplan.contrib.step_list": "read_step_list",
    "mcplan.control.controller": "WholeBodyController",
    "mcplan.errors": "InputError JobFailed PlanningFailed ScenarioWarning SimulationFailed",
    "mcplan.export": "export_run",
    "mcplan.planning.plan": "Plan PlannedStance Stance=PlannedStance",
    "mcplan.planning.plan_file": "load_plan save_plan",
    "mcplan.planning.planner": "plan",
    "mcplan.planning.posture.generator": "solve_posture",
    "mcplan.planning.posture.result": "PostureResult",
    "mcplan.planning.posture.task": "BaseTarget",
    "mcplan.planning.transition.transition": "Segment Transition",
    "mcplan.record.run": "Run load_run",
    "mcplan.robot.description": "Box Capsule Cylinder MeshShape Sphere",
    "mcplan.robot.robot": "Robot",
    "mcplan.robot.robot_file": "load_robot",
    "mcplan.robot.terms": "Terms",
    "mcplan.scenario.load": "load_scenario",
    "mcplan.scenario.scenario": "Scenario",
    "mcplan.scene.contact": "Contact",
    "mcplan.scene.environment": "Bar Environment FreeObject Obstacle Surface",
    "mcplan.scene.placement": "contact",
    "mcplan.settings.control": "ControlSettings",
    "mcplan.settings.planner": "PlannerSettings",
    "mcplan.settings.simulation": "SimulationSettings",
    "mcplan.sim.observer": "Observer StepSample",
    "mcplan.sim.progress_bar": "ProgressBar",
    "mcplan.sim.simulate": "Simulation make_physics",
    "mcplan.statics.com_region": "com_polyhedron",
    "mcplan.statics.equilibrium": "Equilibrium balance",
    "mcplan.statics.feasibility": "shortfall",
    "mcplan.statics.support_region": "SupportRegion support_region=posture_support_region zmp_area",
    "mcplan.statics.wrench_set": "WrenchSet wrench_cone=wrench_set",
    "mcplan.sweep.experiment": "Experiment load_experiment",
    "mcplan.sweep.results": "Results",
    "mcplan.textbook.constraint.contact_rows": "contact_rows stance_rank",
    "mcplan.textbook.constraint.dynamics": "ConstrainedDynamics",
    "mcplan.textbook.coordinates.equations": "equations_of_motion=derive_equation_of_motion",
    "mcplan.textbook.constraint.support_kinematics": "support_inverse_kinematics",
    "mcplan.control.textbook.hierarchy": "TaskHierarchy",
    "mcplan.control.textbook.joint_space": "GravityCompensation ImpedanceControl InverseDynamicsControl",
    "mcplan.control.textbook.operational_space": "OperationalSpaceControl",
    "mcplan.control.textbook.redistribution": "SupportedInverseDynamics",
    "mcplan.control.textbook.virtual_model": "VirtualModelControl",
    "mcplan.textbook.kinematics.inverse_kinematics": "InverseKinematics inverse_kinematics",
    "mcplan.view.live": "LiveView",
    "mcplan.view.plots": "save_plots",
    "mcplan.view.plots.contact": "plot=plot_region",
    "mcplan.view.show": "show",
    "mcplan.whole_body.tasks.com": "AngularMomentumTask ComTask",
    "mcplan.whole_body.tasks.forces": "ContactForceTask TorqueTask",
    "mcplan.whole_body.tasks.look_at": "LookAtTask",
    "mcplan.whole_body.tasks.pose": "LinkPoseTask RelativePoseTask",
    "mcplan.whole_body.tasks.posture": "PostureTask",
    "mcplan.whole_body.tasks.task": "Task",
}
"""Public names by the module that defines them; ``public=private`` where they differ."""

_NAMES = {
    public: (module, private or public)
    for module, names in _HOME.items()
    for public, _, private in (name.partition("=") for name in names.split())
}

_PACKAGES = {name: f"mcplan.textbook.{name}" for name in ("constraint", "coordinates", "kinematics")}
"""Packages whose own names are public."""

__all__ = ["__version__", *_NAMES, *_PACKAGES]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        module, private = _NAMES[name]
        return getattr(import_module(module), private)
    if name in _PACKAGES:
        return import_module(_PACKAGES[name])
    from mcplan.util.spelling import did_you_mean

    hint = "" if name.startswith("__") else did_you_mean(name, _NAMES)
    raise AttributeError(f"module 'mcplan' has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
