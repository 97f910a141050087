"""Scenarios: values, file schema, expressions, variants, reading and checking."""
