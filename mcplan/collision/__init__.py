"""Collision checking: distances between the links of a robot and its environment."""
