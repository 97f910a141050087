"""Robotics textbook material: coordinates, kinematics, constraints.

S0 to S4 are the sources listed in `docs/sources.md`; numbers of equations and sections are theirs.
"""
