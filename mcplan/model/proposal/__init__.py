"""Proposals of robot files."""
