"""Kernels of small dense algebra, rotations and polygons, used by the other kernels."""
