"""Colours that mean the same in the replay and in the plots."""

FORCE = (0.16, 0.62, 0.25, 1.0)
COM = (0.85, 0.25, 0.12, 1.0)
SUPPORT = (0.20, 0.55, 0.90, 0.35)
CONTACT = (0.98, 0.75, 0.10, 1.0)
SURFACE = (0.82, 0.82, 0.80, 1.0)
RAISED_SURFACE = (0.76, 0.64, 0.48, 1.0)
BAR = (0.45, 0.47, 0.52, 1.0)
OBSTACLE = (0.70, 0.45, 0.42, 1.0)
OBJECT = (0.62, 0.52, 0.70, 1.0)
ROBOT = (0.80, 0.81, 0.84, 1.0)
