"""The record of a run: its values, its file, and what can be rebuilt from it."""
