import pytest

from tests.statics.agreement import run


@pytest.mark.slow
def test_random_contacts_agree_with_programs_solved_by_others():
    found, balanced = run(count=200, cones=6)
    assert found == []
    assert 50 < balanced < 150
