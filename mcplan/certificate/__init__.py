"""Certificates of plans and runs: everything they claim, recomputed by another path and judged."""
