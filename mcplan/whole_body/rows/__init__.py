"""Constraint rows of the whole-body program: declaration, prices of relaxation, gradients, names of conflicts."""
