"""Measurements: kernels, the reference tick, the closed loop, their growth; beside the peers when these are given.

Figures are medians of interleaved rounds on one machine; elsewhere only the ratios to a peer in the same run count.
"""
