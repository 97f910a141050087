"""The rows of the whole-body program, declared, priced for relaxation, checked, named."""
