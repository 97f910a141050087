"""Benchmarks: kernels, reference tick, closed loop, scaling; optionally compared with Pinocchio and TSID (peers).

Results are medians over rounds in which mcplan and the peers are measured in turn. Between machines only the ratios to
a peer are comparable.
"""
