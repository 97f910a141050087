"""YAML files with line numbers: reading, overriding, writing."""
