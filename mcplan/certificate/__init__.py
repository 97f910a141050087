"""Certificates: a run judged again by engines that nobody here wrote."""
