"""Time parameterisation of motions: bounds, dynamics along a path, retiming."""
