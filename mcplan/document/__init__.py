"""YAML files with line numbers: reading, overrides, validation, writing."""
