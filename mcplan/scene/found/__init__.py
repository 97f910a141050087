"""Surfaces, bars and obstacles found in triangles: a scene from what people have."""

from mcplan.scene.find_settings import FindSettings
from mcplan.scene.found.find import Found, find
from mcplan.scene.found.triangles import Triangles

__all__ = ["FindSettings", "Found", "Triangles", "find"]
