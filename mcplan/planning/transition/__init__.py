"""Transitions: motions between stances."""
