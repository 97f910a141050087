"""Kernel that rasterises triangles for pictures."""
