"""Postures of stances: posture generator and inverse kinematics."""
