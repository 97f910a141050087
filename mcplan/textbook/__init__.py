"""Robotics textbook material: coordinates, kinematics, constraints, controllers."""
