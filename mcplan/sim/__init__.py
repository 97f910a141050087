"""Simulation: physics back ends, the record of a run, and its independent verification."""
