"""Simulation: physics back ends, simulation loop, recorder, observers."""
