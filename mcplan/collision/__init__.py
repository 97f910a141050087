"""Distances between a robot's links and what is around them."""
