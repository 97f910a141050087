"""Numba kernels: arrays in, arrays out. No classes, strings, input or output, exceptions."""
