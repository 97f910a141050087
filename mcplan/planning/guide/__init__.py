"""Guide path of the base: collision-free, near supports, towards the goal."""
