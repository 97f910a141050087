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

import sys
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mcplan.version import __version__

if TYPE_CHECKING:
    from mcplan import constraint as constraint, coordinates as coordinates, kinematics as kinematics
    from mcplan.certificate.report import Check as Check, Report as Report
    from mcplan.certificate.verify import verify as verify
    from mcplan.constraint.contact_rows import contact_rows as contact_rows
    from mcplan.constraint.dynamics import ConstrainedDynamics as ConstrainedDynamics
    from mcplan.constraint.equations_of_motion import equations_of_motion as equations_of_motion
    from mcplan.constraint.rank import stance_rank as stance_rank
    from mcplan.constraint.support_kinematics import support_inverse_kinematics as support_inverse_kinematics
    from mcplan.control.classical import (
        GravityCompensation as GravityCompensation,
        ImpedanceControl as ImpedanceControl,
        InverseDynamicsControl as InverseDynamicsControl,
        OperationalSpaceControl as OperationalSpaceControl,
        SupportedInverseDynamics as SupportedInverseDynamics,
        TaskHierarchy as TaskHierarchy,
        VirtualModelControl as VirtualModelControl,
    )
    from mcplan.control.controller import WholeBodyController as WholeBodyController
    from mcplan.errors import (
        InputError as InputError,
        JobFailed as JobFailed,
        PlanningFailed as PlanningFailed,
        ScenarioWarning as ScenarioWarning,
        SimulationFailed as SimulationFailed,
    )
    from mcplan.export import export_run as export_run
    from mcplan.imported import (
        ImportedStance as ImportedStance,
        read_pymanoid_stance as read_pymanoid_stance,
        read_step_list as read_step_list,
    )
    from mcplan.jobs import plan as plan, simulate as simulate, sweep as sweep
    from mcplan.kinematics.inverse_kinematics import (
        InverseKinematics as InverseKinematics,
        inverse_kinematics as inverse_kinematics,
    )
    from mcplan.model.geometry import (
        Box as Box,
        Capsule as Capsule,
        Cylinder as Cylinder,
        MeshShape as MeshShape,
        Sphere as Sphere,
    )
    from mcplan.model.robot import Robot as Robot
    from mcplan.model.robot_file import load_robot as load_robot
    from mcplan.model.terms import Terms as Terms
    from mcplan.planning.plan import Plan as Plan, PlannedStance as PlannedStance
    from mcplan.planning.plan_file import read_plan
    from mcplan.planning.posture.result import PostureResult as PostureResult
    from mcplan.planning.posture.solve import solve_posture as solve_posture
    from mcplan.planning.posture.task import BaseTarget as BaseTarget
    from mcplan.planning.transition.transition import Segment as Segment, Transition as Transition
    from mcplan.progress import ProgressBar as ProgressBar
    from mcplan.run_directory import save_html as save_html, save_report as save_report
    from mcplan.scene.contact import Contact as Contact
    from mcplan.scene.environment import (
        Bar as Bar,
        Environment as Environment,
        FreeObject as FreeObject,
        Obstacle as Obstacle,
        Surface as Surface,
    )
    from mcplan.scene.load import load_scenario as load_scenario
    from mcplan.scene.place import contact as contact
    from mcplan.scene.scenario import Scenario as Scenario
    from mcplan.scene.settings import (
        ControlSettings as ControlSettings,
        PlannerSettings as PlannerSettings,
        SimulationSettings as SimulationSettings,
    )
    from mcplan.sim.observer import Observer as Observer, StepSample as StepSample
    from mcplan.sim.run import Run as Run
    from mcplan.sim.run_file import load_run as load_run
    from mcplan.sim.simulate import Simulation as Simulation, make_physics as make_physics
    from mcplan.statics.com_polyhedron import com_polyhedron as com_polyhedron
    from mcplan.statics.equilibrium import Equilibrium as Equilibrium, balance as balance
    from mcplan.statics.shortfall import shortfall as shortfall
    from mcplan.statics.support_region import SupportRegion as SupportRegion, region_at
    from mcplan.statics.wrench_set import WrenchSet as WrenchSet, wrench_set
    from mcplan.statics.zmp_area import zmp_area as zmp_area
    from mcplan.sweep.experiment import Experiment as Experiment, load_experiment as load_experiment
    from mcplan.sweep.results import Results as Results
    from mcplan.view.live import LiveView as LiveView
    from mcplan.view.plots import save_plots as save_plots
    from mcplan.view.show import show as show
    from mcplan.whole_body.tasks import (
        AngularMomentumTask as AngularMomentumTask,
        ComTask as ComTask,
        ContactForceTask as ContactForceTask,
        LinkPoseTask as LinkPoseTask,
        LookAtTask as LookAtTask,
        PostureTask as PostureTask,
        RelativePoseTask as RelativePoseTask,
        Task as Task,
        TorqueTask as TorqueTask,
    )

    # names that are others inside: a checker with all its rules takes them for exported so
    load_plan, support_region, wrench_cone = read_plan, region_at, wrench_set
    Stance = PlannedStance

_HOME = {
    "mcplan.certificate.report": "Check Report",
    "mcplan.certificate.verify": "verify",
    "mcplan.constraint.contact_rows": "contact_rows",
    "mcplan.constraint.dynamics": "ConstrainedDynamics",
    "mcplan.constraint.equations_of_motion": "equations_of_motion",
    "mcplan.constraint.rank": "stance_rank",
    "mcplan.constraint.support_kinematics": "support_inverse_kinematics",
    "mcplan.control.classical": (
        "GravityCompensation ImpedanceControl InverseDynamicsControl OperationalSpaceControl SupportedInverseDynamics "
        "TaskHierarchy VirtualModelControl"
    ),
    "mcplan.control.controller": "WholeBodyController",
    "mcplan.errors": "InputError JobFailed PlanningFailed ScenarioWarning SimulationFailed",
    "mcplan.export": "export_run",
    "mcplan.imported": "ImportedStance read_pymanoid_stance read_step_list",
    "mcplan.jobs": "plan simulate sweep",
    "mcplan.kinematics.inverse_kinematics": "InverseKinematics inverse_kinematics",
    "mcplan.model.geometry": "Box Capsule Cylinder MeshShape Sphere",
    "mcplan.model.robot": "Robot",
    "mcplan.model.robot_file": "load_robot",
    "mcplan.model.terms": "Terms",
    "mcplan.planning.plan": "Plan PlannedStance Stance=PlannedStance",
    "mcplan.planning.plan_file": "load_plan=read_plan",
    "mcplan.planning.posture.result": "PostureResult",
    "mcplan.planning.posture.solve": "solve_posture",
    "mcplan.planning.posture.task": "BaseTarget",
    "mcplan.planning.transition.transition": "Segment Transition",
    "mcplan.run_directory": "save_html save_report",
    "mcplan.scene.contact": "Contact",
    "mcplan.scene.environment": "Bar Environment FreeObject Obstacle Surface",
    "mcplan.scene.load": "load_scenario",
    "mcplan.scene.place": "contact",
    "mcplan.scene.scenario": "Scenario",
    "mcplan.scene.settings": "ControlSettings PlannerSettings SimulationSettings",
    "mcplan.progress": "ProgressBar",
    "mcplan.sim.observer": "Observer StepSample",
    "mcplan.sim.run": "Run",
    "mcplan.sim.run_file": "load_run",
    "mcplan.sim.simulate": "Simulation make_physics",
    "mcplan.statics.com_polyhedron": "com_polyhedron",
    "mcplan.statics.equilibrium": "Equilibrium balance",
    "mcplan.statics.shortfall": "shortfall",
    "mcplan.statics.support_region": "SupportRegion support_region=region_at",
    "mcplan.statics.wrench_set": "WrenchSet wrench_cone=wrench_set",
    "mcplan.statics.zmp_area": "zmp_area",
    "mcplan.sweep.experiment": "Experiment load_experiment",
    "mcplan.sweep.results": "Results",
    "mcplan.view.live": "LiveView",
    "mcplan.view.plots": "save_plots",
    "mcplan.view.show": "show",
    "mcplan.whole_body.tasks": (
        "AngularMomentumTask ComTask ContactForceTask LinkPoseTask LookAtTask PostureTask RelativePoseTask Task "
        "TorqueTask"
    ),
}
"""Public names by the module that defines them; ``public=private`` where they differ."""

_NAMES = {
    public: (module, private or public)
    for module, names in _HOME.items()
    for public, _, private in (name.partition("=") for name in names.split())
}

_PACKAGES = ("constraint", "coordinates", "kinematics")
"""Packages whose own names are public."""

__all__ = ["__version__", *_NAMES, *_PACKAGES]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        module, private = _NAMES[name]
        found = getattr(import_module(module), private)
        if "mcplan.core.jit" in sys.modules:
            import_module("mcplan.compiling").WATCH.watch()
        return found
    if name in _PACKAGES:
        return import_module(f"mcplan.{name}")
    near = [] if name.startswith("__") else get_close_matches(name, _NAMES, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise AttributeError(f"module 'mcplan' has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
