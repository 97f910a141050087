"""The world and the task: surfaces, bars, obstacles, contacts, stances, scenarios."""

from mcplan.scene.assemble import Start
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Bar, Environment, FreeObject, Obstacle, Surface
from mcplan.scene.load import bundled_scenarios, check_file, find_scenario, load_scenario
from mcplan.scene.place import make_contact
from mcplan.scene.scenario import Scenario
from mcplan.scene.schema import GoalItem, PostureSpec, StanceItem
from mcplan.scene.settings import ControlSettings, PlannerSettings, SimulationSettings
from mcplan.scene.spec import ContactSpec, PoseSpec

__all__ = [
    "Bar",
    "Contact",
    "ContactSpec",
    "ControlSettings",
    "Environment",
    "FreeObject",
    "GoalItem",
    "Obstacle",
    "PlannerSettings",
    "PoseSpec",
    "PostureSpec",
    "Scenario",
    "SimulationSettings",
    "StanceItem",
    "Start",
    "Surface",
    "bundled_scenarios",
    "check_file",
    "find_scenario",
    "load_scenario",
    "make_contact",
]  # fmt: skip
