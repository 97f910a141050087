"""Settings of planner, controller and simulation: the sections of a scenario file."""
