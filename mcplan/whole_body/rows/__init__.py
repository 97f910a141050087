"""The rows of the whole-body program, one file per block: declared, priced where they give way, checked, named."""
