"""Whole-body quadratic program of a control tick, in CVXPY and compiled."""
