"""Kernels of linear and quadratic programs."""
