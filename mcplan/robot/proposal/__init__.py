"""Automatic proposal of a robot.yaml for a URDF."""
