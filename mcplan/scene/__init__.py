"""The world and the task: surfaces, bars, obstacles, contacts, stances, scenarios."""
