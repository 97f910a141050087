"""Kernels that fill and check the whole-body program of a control tick."""
