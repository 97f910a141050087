"""Settings of planner, controller and simulation."""
