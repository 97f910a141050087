import errno
import os

import pytest

from mcplan.util.files import atomic_write, write_text


def test_a_file_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with atomic_write(path) as partial:
        partial.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_what_was_there(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "old")

    def fail():
        with atomic_write(path) as partial:
            partial.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("named", [False, True])
def test_a_full_disk_is_told_of_the_file_itself(named, tmp_path):
    """A write says no name at all, and what opens the file that of the part."""
    path = tmp_path / "a.txt"
    with pytest.raises(OSError, match=f"No space left on device: '{path}'"), atomic_write(path) as partial:
        raise OSError(errno.ENOSPC, "No space left on device", *([str(partial)] if named else []))
    assert list(tmp_path.iterdir()) == []


def test_who_writes_the_same_file_meanwhile_does_not_meddle(tmp_path):
    path = tmp_path / "a.txt"
    with atomic_write(path) as slow:
        slow.write_text("half")
        with atomic_write(path) as quick:
            assert quick != slow
            assert quick.parent == slow.parent == tmp_path, "else it could not take the place of the file at once"
            quick.write_text("quick")
        assert path.read_text() == "quick"
        with slow.open("a") as stream:
            stream.write(" and half")
    assert path.read_text() == "half and half"
    assert list(tmp_path.iterdir()) == [path]


def test_another_process_has_another_name(tmp_path):
    names = []
    for _ in range(2):
        with atomic_write(tmp_path / "a.txt") as partial:
            partial.touch()
            names.append(partial.name)
    assert len(set(names)) == 2
    assert all(f".{os.getpid()}-" in name for name in names)
