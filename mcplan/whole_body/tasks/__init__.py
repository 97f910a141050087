"""Tasks of the whole-body program."""
