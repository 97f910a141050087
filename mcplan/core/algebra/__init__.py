"""Kernels of small dense algebra, rotations and polygons: what the other folders of kernels build on."""
