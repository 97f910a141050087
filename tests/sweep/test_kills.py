"""What is killed while an experiment runs is made up for: a few of the kills that ``kills.py`` makes by the dozen."""

import pytest

from tests.sweep.by_hand import sweep_process
from tests.sweep.kills import disturbed, table, write_experiment


@pytest.mark.slow
def test_killed_clients_workers_and_schedulers_leave_the_table_as_it_would_be(tmp_path):
    calm, rough = tmp_path / "calm", tmp_path / "rough"
    client = sweep_process(write_experiment(calm, 30), calm / "out", "quick")
    assert client.wait(timeout=120) == 0, (calm / "out.log").read_text()
    killed = disturbed(rough, 3, 30, seed=5)
    assert set(killed) == {"client", "worker", "scheduler"}
    (expected, _), (found, count) = table(calm), table(rough)
    assert count == 30
    assert found == expected
