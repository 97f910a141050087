"""Kernels of distances between convex shapes."""
