"""Run files: what is written is read, equal runs are equal bytes, and damage is named and never believed."""

import io
import json
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from mcplan.certificate.verify import verify
from mcplan.cli.report import load_recorded_run
from mcplan.errors import InputError, RunError
from mcplan.record.run import load_run
from mcplan.record.run_file import load_timing
from mcplan.util.qp_status import NO_QP
from tests.sim.waving_box import waving_run


@pytest.fixture(scope="module")
def run():
    return waving_run(samples=60, touch=40)


@pytest.fixture
def members(run, tmp_path):
    with zipfile.ZipFile(run.save(tmp_path / "whole.npz")) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def npy(array):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array))
    return stream.getvalue()


def with_meta(members, **changes):
    meta = json.loads(str(np.load(io.BytesIO(members["meta.npy"]))))
    return {**members, "meta.npy": npy(json.dumps({**meta, **changes}))}


def with_phases(members, **changes):
    """Change the last phase of a run."""
    *others, last = json.loads(str(np.load(io.BytesIO(members["meta.npy"]))))["phases"]
    return with_meta(members, phases=[*others, {**last, **changes}])


def test_a_run_survives_its_file(run, tmp_path):
    run.save(tmp_path)
    again = load_run(tmp_path)
    assert again.record == run.record
    for name, array in run.arrays().items():
        assert again.arrays()[name].dtype == array.dtype
        np.testing.assert_array_equal(again.arrays()[name], array)


def test_a_file_of_another_kind_is_kept(run, tmp_path):
    plan = tmp_path / "own.plan.yaml"
    plan.write_text("kept")
    with pytest.raises(InputError, match=r"is a file; expected a name that ends in \.npz, or a directory"):
        run.save(plan)
    with pytest.raises(InputError, match=r"own\.plan\.yaml is a file, so nothing can be put into it"):
        run.save(plan / "run.npz")
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(InputError, match=r"folder\.npz: is a directory; expected the name of a file"):
        run.save(tmp_path / "folder.npz")
    assert plan.read_text() == "kept"


def test_numpy_alone_reads_it(run, tmp_path):
    with np.load(run.save(tmp_path), allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["q"], run.q)
        assert json.loads(str(archive["meta"]))["patches"] == ["sole", "tip"]


def test_equal_runs_are_equal_bytes(run, tmp_path):
    first = run.save(tmp_path / "a.npz").read_bytes()
    second = load_run(tmp_path / "a.npz").save(tmp_path / "b.npz").read_bytes()
    assert first == second == waving_run(samples=60, touch=40).save(tmp_path / "c.npz").read_bytes()


def test_a_run_of_an_earlier_version_says_nothing_of_slack(run, tmp_path):
    old = load_run(replace(run, qp_slack=None).save(tmp_path))
    assert old.qp_slack is None
    assert verify(old).success
    np.testing.assert_array_equal(load_run(run.save(tmp_path / "new")).qp_slack, np.zeros(60))


def test_clock_times_stay_out_of_the_run(run, tmp_path):
    timed = replace(run, timing={"qp": np.full(60, 1e-3)})
    assert timed.save(tmp_path / "a").read_bytes() == run.save(tmp_path / "b").read_bytes()
    np.testing.assert_array_equal(load_timing(tmp_path / "a")["qp"], np.full(60, 1e-3))
    assert load_timing(tmp_path / "b") == {}


def test_runs_of_one_directory_have_separate_clock_times(run, tmp_path):
    for name, seconds in (("a.npz", 1e-3), ("b.npz", 2e-3), ("run.npz", 3e-3)):
        replace(run, timing={"control": np.full(60, seconds)}).save(tmp_path / name)
    for name, seconds in (("a.npz", 1e-3), ("b.npz", 2e-3), ("run.npz", 3e-3), (".", 3e-3)):
        np.testing.assert_array_equal(load_timing(tmp_path / name)["control"], np.full(60, seconds))
        np.testing.assert_array_equal(load_recorded_run(tmp_path / name).timing["control"], np.full(60, seconds))
    run.save(tmp_path / "c.npz")
    assert load_recorded_run(tmp_path / "c.npz").timing == {}
    assert {file.name for file in tmp_path.iterdir()} == {
        "a.npz", "a.timing.npz", "b.npz", "b.timing.npz", "c.npz", "run.npz", "timing.npz",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("every", "times", "fits"),
    [
        (1, {"control": 60, "physics": 60}, True),
        (4, {"control": 15, "physics": 60}, True),  # the controller runs in every fourth step
        (0, {"control": 15, "physics": 60}, True),  # it has no program
        (1, {"control": 61, "physics": 61}, False),
        (1, {"control": 59, "physics": 60}, False),
        (4, {"control": 16, "physics": 60}, False),
        (0, {"control": 61}, False),
        (1, {"control": (60, 2)}, False),
    ],
)
def test_clock_times_of_another_run_are_left_out(run, tmp_path, every, times, fits):
    status = np.full(60, NO_QP, run.qp_status.dtype)
    if every:
        status[::every] = 0
    arrays = {name: np.full(size, 1e-3) for name, size in times.items()}
    replace(run, qp_status=status, timing=arrays).save(tmp_path)
    assert set(load_recorded_run(tmp_path).timing) == (set(times) if fits else set())


def test_a_failed_write_leaves_the_old_file(run, tmp_path, monkeypatch):
    path = run.save(tmp_path)
    before = path.read_bytes()
    monkeypatch.setattr(np.lib.format, "write_array", lambda *a, **k: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        run.save(tmp_path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["run.npz"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: {k: v for k, v in m.items() if k != "tau.npy"}, "tau: missing"),
        (lambda m: {k: v for k, v in m.items() if k != "meta.npy"}, "meta: missing: this is not a run"),
        (lambda m: {**m, "evil.npy": npy([1.0])}, "evil: not an array of a run"),
        (lambda m: {**m, "readme.txt": b"hello"}, "readme.txt: does not belong"),
        (lambda m: {**m, "tau.npy": npy(np.zeros((60, 3)))}, r"tau: has shape \(60, 3\), expected \(60, 2\)"),
        (lambda m: {**m, "v.npy": npy(np.zeros((60, 8), "f4"))}, "v: elements are <f4, expected <f8"),
        (
            lambda m: {**m, "q.npy": m["q.npy"].replace(b"(60, 9), }  ", b"(9999999, 9), }")[: len(m["q.npy"])]},
            "q: .*header|q: announces",
        ),
        (lambda m: {**m, "q.npy": m["q.npy"][:-8]}, "q: announces 4320 bytes of shape .*, contains 4312"),
        (lambda m: {**m, "q.npy": b"\x93NUMPY\x02\x00" + m["q.npy"][8:]}, "q: has no NumPy header"),
        (lambda m: {**m, "q.npy": npy(np.array([None] * 3, dtype=object).astype("S4"))}, "q: elements|q: has no"),
        (lambda m: {**m, "phase.npy": npy(np.full(60, 7))}, r"phase: entry 0 is 7, outside \[0, 2\)"),
        (lambda m: {**m, "phase.npy": npy(np.array([0, 1, 2] * 20))}, r"phase: entry 2 is 2, outside \[0, 2\)"),
        (lambda m: {**m, "active.npy": m["active.npy"][:-1] + b"\x05"}, "flags other than 0 and 1"),
        (lambda m: {**m, "meta.npy": npy("{")}, "meta: is not JSON"),
        (lambda m: {**m, "meta.npy": npy("[" * 100_000)}, "meta: is not JSON|meta: is nested"),
        (lambda m: {**m, "meta.npy": npy('{"mcplan_run": NaN}')}, "NaN is not a number of JSON"),
        (lambda m: {**m, "meta.npy": npy(1.0)}, "meta: is not a text"),
        (lambda m: with_meta(m, mcplan_run=2), "format 2; this mcplan reads format 1"),
        (lambda m: with_meta(m, dt=-1), "meta.dt: .*greater than 0"),
        (lambda m: with_meta(m, extra=1), "meta.extra: Extra inputs"),
        (lambda m: with_meta(m, joints=["shoulder"]), "joints are not those of the robot"),
        (lambda m: with_meta(m, patches=["sole"]), "stance 1: patch tip"),
        (lambda m: with_phases(m, stance=2), "phase touch leads to stance 2 of 2"),
        (lambda m: with_phases(m, stance=9), "phase touch leads to stance 9 of 2"),
    ],
)
def test_damage_is_named(members, tmp_path, change, message):
    path = write(tmp_path / "run.npz", change(members))
    with pytest.raises(RunError, match=message) as caught:
        load_run(path)
    assert caught.value.exit_status == 2
    assert str(path) in str(caught.value)


def test_a_small_file_that_announces_gigabytes_is_refused_unread(members, tmp_path, monkeypatch):
    monkeypatch.setattr("mcplan.record.run_file.MAX_BYTES", 20_000)
    with pytest.raises(RunError, match="announces"):
        load_run(write(tmp_path / "run.npz", members))


@pytest.mark.parametrize("rate", [7.0, 100.0, 333.0, 1000.0, 5000.0])
def test_fewer_samples_are_evenly_spread_and_end_where_the_run_ends(run, rate):
    kept = run.every(rate)
    assert (kept[0], kept[-1]) == (0, len(run) - 1)
    step = max(1.0, 1.0 / (rate * run.dt))
    assert np.abs(np.diff(kept[:-1]) - step).max(initial=0.0) < 1.0
    assert 0 < kept[-1] - kept[-2] <= np.ceil(step)


def test_a_missing_run_is_named(tmp_path):
    with pytest.raises(RunError, match=r"run\.npz: no such run"):
        load_run(tmp_path)


def test_damage_gives_an_error_or_the_same_run(run, tmp_path):
    """Flipped bytes and truncations anywhere, the directory of the archive included."""
    whole = run.save(tmp_path / "whole.npz").read_bytes()
    rng = np.random.default_rng(0)
    path = tmp_path / "damaged.npz"
    tail = len(whole) - 3000  # the directory is small, and where a flip does most
    refused = 0
    for trial in range(400):
        content = bytearray(whole)
        if trial % 4 == 0:
            del content[int(rng.integers(0, len(whole))) :]
        else:
            low = tail if trial % 4 == 1 else 0
            for place in rng.integers(low, len(whole), 1 + trial % 3):
                content[place] ^= int(rng.integers(1, 256))
        path.write_bytes(content)
        try:
            again = load_run(path)
        except RunError:
            refused += 1
        else:
            for name, array in run.arrays().items():
                np.testing.assert_array_equal(again.arrays()[name], array)
    assert refused > 300
