"""Benchmarks: kernels, reference tick, closed loop, scaling; optionally compared with Pinocchio and TSID (peers).

Figures are medians of interleaved rounds on one machine; elsewhere only the ratios to a peer in the same run count.
"""
