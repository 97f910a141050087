"""Kernels of the posture solver."""
