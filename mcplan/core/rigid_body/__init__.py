"""Kernels of rigid-body kinematics and dynamics over a tree."""
