"""The record of a run: its values, its file, and the plan that is rebuilt from it."""
