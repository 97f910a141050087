"""Scenarios: file schema, expressions, variants, reading, checking and writing."""
