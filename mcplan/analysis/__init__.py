"""Derived quantities of scenes, plans and runs for commands and pages."""
