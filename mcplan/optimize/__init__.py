"""Optimization, independent of robots: dense quadratic programs, polytopes, compiled CVXPY problems."""
