"""Every number of a run is in its exports, under the name that says what it is; no two of them are the same."""

import csv
import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from mcap.reader import make_reader

from mcplan.errors import InputError
from mcplan.export import foxglove
from mcplan.export.mcap_log import write as write_log
from mcplan.export.tables import POINTS, write_csv
from mcplan.record.run import BASE_Q, BASE_V, WRENCH, table
from tests.sim.waving_box import waving_run


@pytest.fixture(scope="module")
def run():
    """A run with two objects in which no two numbers are the same."""
    run = waving_run(samples=40, touch=25)
    rng = np.random.default_rng(0)
    names = ("q", "v", "vd", "tau", "tau_ext", "wrench", "com", "point_xyz", "point_normal", "point_force")
    changed = {name: rng.normal(size=getattr(run, name).shape) for name in names}
    objects = {"object_q": rng.normal(size=(len(run), 2, 7)), "object_v": rng.normal(size=(len(run), 2, 6))}
    link = run.point_link.copy()
    link[::3] = len(run.record.links) + 1  # points on the second object, of unplanned contacts
    patch = run.point_patch.copy()
    patch[::3] = -1
    record = run.record.model_copy(update={"objects": ["crate", "ball"]})
    live = SimpleNamespace(scenario=SimpleNamespace(name="box", robot=None))
    return replace(run, record=record, live_plan=live, point_link=link, point_patch=patch, **changed, **objects)


def expected(run):
    """Return every column by name, written by hand from the conventions."""
    joints, columns = ["shoulder", "elbow"], {"t": run.t, "qp_status": run.qp_status, "qp_slack": run.qp_slack}
    q = ["base.x", "base.y", "base.z", "base.qw", "base.qx", "base.qy", "base.qz", *joints]
    v = ["base.vx", "base.vy", "base.vz", "base.wx", "base.wy", "base.wz", *joints]
    f = ["base.fx", "base.fy", "base.fz", "base.mx", "base.my", "base.mz", *joints]
    for array, names in (("q", q), ("v", v), ("vd", v), ("tau_ext", f), ("tau", joints), ("com", "xyz")):
        for k, name in enumerate(names):
            columns[f"{array}.{name}"] = getattr(run, array)[:, k]
    for p, patch in enumerate(("sole", "tip")):
        columns[f"active.{patch}"] = run.active[:, p]
        for k, name in enumerate(("fx", "fy", "fz", "mx", "my", "mz")):
            columns[f"wrench.{patch}.{name}"] = run.wrench[:, p, k]
    for o, thing in enumerate(("crate", "ball")):
        for k, name in enumerate(("x", "y", "z", "qw", "qx", "qy", "qz")):
            columns[f"object_q.{thing}.{name}"] = run.object_q[:, o, k]
        for k, name in enumerate(("vx", "vy", "vz", "wx", "wy", "wz")):
            columns[f"object_v.{thing}.{name}"] = run.object_v[:, o, k]
    return columns


def test_each_column_is_what_its_name_says(run):
    columns = expected(run)
    found = table(run)
    assert set(found) == {*columns, "phase"}
    for name, values in columns.items():
        assert np.array_equal(found[name], values), name
    assert found["phase"].tolist() == [["wave", "touch"][k] for k in run.phase]
    assert len(BASE_Q) == 7
    assert len(BASE_V) == len(WRENCH) == 6


def test_each_contact_point_is_a_row_with_its_body_and_patch(run, tmp_path):
    rate = 250.0
    _, file = write_csv(run, tmp_path / "run.csv", rate)
    with open(file, newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert tuple(rows[0]) == POINTS
    k = 0
    assert {row["patch"] for row in rows} == {"sole", "tip", ""}
    for sample in run.every(rate):
        for i in range(run.point_start[sample], run.point_start[sample + 1]):
            row = rows[k]
            k += 1
            assert float(row["t"]) == run.t[sample]
            for names, values in (
                ("x y z", run.point_xyz), ("nx ny nz", run.point_normal), ("fx fy fz", run.point_force),
            ):  # fmt: skip
                assert [float(row[name]) for name in names.split()] == values[i].tolist()
            body = (*("box", "upper", "lower", "finger"), "crate", "ball")[run.point_link[i]]
            patch = "" if run.point_patch[i] < 0 else ("sole", "tip")[run.point_patch[i]]
            assert (row["link"], row["patch"]) == (body, patch)
    assert k == len(rows)


def test_a_rate_takes_the_samples_nearest_to_its_instants(run):
    assert run.every(None).tolist() == list(range(40))
    assert run.every(250.0).tolist() == [*range(0, 40, 4), 39]
    assert run.every(400.0).tolist() == [*np.unique(np.rint(np.arange(0, 0.039, 0.0025) / 0.001).astype(int)), 39]
    for rate in (1000.0, 1e9, np.inf):
        assert run.every(rate).tolist() == list(range(40))
    for rate in (0.0, -1.0, np.nan):
        with pytest.raises(InputError, match="expected a positive number of samples per second"):
            run.every(rate)


def test_each_message_of_the_log_holds_its_part_of_the_sample(run, tmp_path, monkeypatch):
    # what Foxglove draws needs a robot, which this run has not
    monkeypatch.setattr(foxglove, "scene", lambda run: ("/scene", "foxglove.SceneUpdate", {}))
    monkeypatch.setattr(foxglove, "frame", lambda run, k: ())
    (path,) = write_log(run, tmp_path / "run.mcap")
    found = {}
    with open(path, "rb") as stream:
        for _, channel, message in make_reader(stream).iter_messages():
            found.setdefault(channel.topic, []).append(
                (message.log_time, message.publish_time, json.loads(message.data))
            )
    topics = {"/joints", "/base/pose", "/base/twist", "/base/acceleration", "/external_forces", "/com", "/status"}
    topics |= {"/wrench/sole", "/wrench/tip", "/contact_points"}
    topics |= {f"/object/{name}/{part}" for name in ("crate", "ball") for part in ("pose", "twist")}
    assert len(found.pop("/scene")) == 1
    assert set(found) == topics
    for k in (0, 13, 30):
        at = {topic: messages[k][2] for topic, messages in found.items()}
        assert {messages[k][:2] for messages in found.values()} == {(round(run.t[k] * 1e9),) * 2}
        assert at["/joints"] == {
            "name": ["shoulder", "elbow"],
            "position": run.q[k, 7:].tolist(),
            "velocity": run.v[k, 6:].tolist(),
            "acceleration": run.vd[k, 6:].tolist(),
            "effort": run.tau[k].tolist(),
        }
        for topic, values in (
            ("/base", run.q[k]),
            ("/object/crate", run.object_q[k, 0]),
            ("/object/ball", run.object_q[k, 1]),
        ):
            pose = at[f"{topic}/pose"]
            assert [pose["position"][axis] for axis in "xyz"] == values[:3].tolist()
            assert [pose["orientation"][part] for part in "wxyz"] == values[3:7].tolist()
        for topic, values in (
            ("/base/twist", run.v[k]), ("/base/acceleration", run.vd[k]),
            ("/object/crate/twist", run.object_v[k, 0]), ("/object/ball/twist", run.object_v[k, 1]),
        ):  # fmt: skip
            assert [at[topic]["linear"][axis] for axis in "xyz"] == values[:3].tolist()
            assert [at[topic]["angular"][axis] for axis in "xyz"] == values[3:6].tolist()
        assert at["/external_forces"]["force"] == run.tau_ext[k].tolist()
        for p, patch in enumerate(("sole", "tip")):
            wrench = dict(zip(("fx", "fy", "fz", "mx", "my", "mz"), run.wrench[k, p].tolist(), strict=True))
            assert at[f"/wrench/{patch}"] == {**wrench, "active": bool(run.active[k, p])}
        assert at["/status"] == {"phase": ["wave", "touch"][run.phase[k]], "qp_status": 0}
        points = at["/contact_points"]["points"]
        assert len(points) == run.point_start[k + 1] - run.point_start[k]
        for i, point in enumerate(points, start=run.point_start[k]):
            for name, values in (("p", run.point_xyz), ("normal", run.point_normal), ("force", run.point_force)):
                assert [point[name][axis] for axis in "xyz"] == values[i].tolist()
            assert point["patch"] == ("sole", "tip", "")[run.point_patch[i]]
