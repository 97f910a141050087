"""Runs and plans that claim what is not so: how tests make them from ones that are right."""

from dataclasses import replace

import numpy as np

from mcplan.certificate.independent import quaternion_step
from mcplan.certificate.verify import verify
from mcplan.record.recording import digest
from mcplan.record.run_file import SHAPES


def broken(run, tolerances=None):
    """Names of the lines of the certificate that do not hold."""
    report = verify(run) if tolerances is None else verify(run, tolerances)
    assert report.success == (not report.failures)
    return {check.name for check in report.checks if not check.passed}


def line(run, name):
    """The line of the certificate of that name."""
    (found,) = (check for check in verify(run).checks if check.name == name)
    return found


def tampered(run, **edits):
    """Copy of the run; each edit is a function that changes one array in place."""
    arrays = {}
    for name, edit in edits.items():
        arrays[name] = getattr(run, name).copy()
        edit(arrays[name])
    return replace(run, **arrays)


def add(index, value):
    """Add to a part of an array."""

    def edit(array):
        array[index] += value

    return edit


def put(index, value):
    """Overwrite a part of an array."""

    def edit(array):
        array[index] = value

    return edit


def scale(factor):
    """Multiply an array."""

    def edit(array):
        array *= factor

    return edit


def with_record(run, **changes):
    """Copy of the run with parts of its record changed."""
    return replace(run, record=run.record.model_copy(update=changes))


def replaced(records, which, **changes):
    """The records with other fields of one of them."""
    return [record.model_copy(update=changes) if i == which else record for i, record in enumerate(records)]


def edited(plan, stance, **changes):
    """Copy of a plan's record with other fields of a stance."""
    return plan.model_copy(update={"stances": replaced(plan.stances, stance, **changes)})


def with_contact(run, stance, which, **changes):
    """Copy of the run whose record has another planned contact in a stance; its plan document stays."""
    plan = run.record.plan
    contacts = replaced(plan.stances[stance].contacts, which, **changes)
    return with_record(run, plan=edited(plan, stance, contacts=contacts))


def with_document(run, change, parts=("scenario", "plan"), rehash=True):
    """Copy of the run whose documents are changed by a function, with the right hashes or with the old ones."""
    records = {}
    for part in parts:
        record = getattr(run.record, part)
        document = change(dict(record.document))
        records[part] = record.model_copy(
            update={"document": document, "digest": digest(document) if rehash else record.digest}
        )
    return with_record(run, **records)


def asking(run, *items):
    """The run of a scenario with this goal: honest as long as it meets it."""
    return with_document(run, lambda document: document | {"goal": list(items)})


def in_physics(run, name, **simulation):
    """The run as if another back end had made it."""
    run = with_document(run, lambda document: document | {"simulation": simulation})
    return with_record(run, physics=name)


def samples(run, kept):
    """Copy of the run with some of its samples alone; their times stay."""
    kept = np.asarray(kept)
    points = np.concatenate([np.arange(run.point_start[k], run.point_start[k + 1]) for k in kept])
    arrays = {}
    for name, array in run.arrays().items():
        if name != "point_start":
            arrays[name] = array[points] if SHAPES[name][0] == "K" else array[kept]
    count = np.diff(run.point_start)[kept]
    return replace(run, point_start=np.concatenate([[0], np.cumsum(count)]).astype("<i8"), **arrays)


def turned(run, rotation, rows=slice(None)):
    """Copy of the run whose base is turned by a rotation vector (rad, world axes), or by one for each sample."""
    q = run.q.copy()
    vectors = np.broadcast_to(np.asarray(rotation, float), q[rows, :3].shape)
    q[rows, 3:7] = quaternion_step(q[rows, 3:7].T, vectors.T).T
    return replace(run, q=q)
