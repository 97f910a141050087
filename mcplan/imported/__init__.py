"""Contacts and sequences that other programs have written: pymanoid stances, step lists of MultiContactController."""

from mcplan.imported.pymanoid_stance import ImportedStance, read_pymanoid_stance
from mcplan.imported.step_list import read_step_list

__all__ = ["ImportedStance", "read_pymanoid_stance", "read_step_list"]
