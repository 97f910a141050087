"""The list of faults stays one: each applies to one place, leaves Python behind, and changes what it does."""

from tests.mutation.catalogue import check, load


def test_every_fault_applies_once_and_there_are_enough():
    faults = load()
    assert len(faults) >= 200
    wrong = check(faults)
    assert not wrong, "\n".join(wrong)
