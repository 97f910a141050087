"""Kernels of static equilibrium."""
