"""Kernels of the contact physics: detection, law, solver, step."""
