"""Readers of stances and sequences written by other programs."""
