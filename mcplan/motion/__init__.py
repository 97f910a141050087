"""Curves in time: of vectors, rotations, postures and limbs."""
