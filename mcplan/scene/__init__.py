"""The world and the task: surfaces, bars, obstacles, contacts, stances, scenarios."""

from mcplan.scene.contact import Contact, Stance
from mcplan.scene.environment import Bar, Environment, Obstacle, SceneObject, Surface

__all__ = ["Bar", "Contact", "Environment", "Obstacle", "SceneObject", "Stance", "Surface"]
