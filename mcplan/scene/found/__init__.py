"""Surfaces, bars and obstacles found in triangles and in the world files of other programs."""
