"""Trajectories of vectors, rotations, postures and limbs, and time parameterization of paths."""
