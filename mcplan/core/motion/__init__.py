"""Kernels of motion references."""
