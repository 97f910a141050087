"""Quantities of scenes, plans and runs that commands and pages show."""
