"""Quadratic programs: tasks and constraints, the whole-body problem in CVXPY, and the dense solver."""
