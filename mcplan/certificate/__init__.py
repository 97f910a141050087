"""Certificates (verification) of plans and runs: independent recomputation and checks."""
