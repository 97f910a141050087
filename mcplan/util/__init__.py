"""Helpers without robots: text for people, atomic files, progress, arguments."""
