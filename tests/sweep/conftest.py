"""Experiment files of a test's own."""

import pytest

HEAD = "mcplan: 1\nname: trial\n"


@pytest.fixture
def experiment_file(tmp_path):
    """Write an experiment file below its first two lines; return its path."""

    def write(text, head=HEAD):
        file = tmp_path / "trial.yaml"
        file.write_text(head + text)
        return file

    return write
