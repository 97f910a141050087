"""Store of an experiment's results: one SQLite file, one row per case, each row written in one transaction.

A process may be killed at any moment: SQLite's journal leaves no partial row, and output files are complete
before their row is written. Rows are never removed, so that results can be compared with those of older code.
"""

import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from mcplan.errors import InputError
from mcplan.util.files import atomic_write
from mcplan.version import __version__

FILE = "results.sqlite"
"""Name of the store in the results directory."""

FORMAT = 1
"""Version of the tables of the store."""

DONE, FAILED = "done", "failed"
"""``done``: the case has a verdict, good or bad. ``failed``: it has none (killed, limit exceeded, invalid input)."""

_SCHEMA = """
create table if not exists about (key text primary key, value text not null) without rowid;
create table if not exists cases (
    id text primary key,            -- hash of configuration and code
    configuration text not null,    -- hash of the configuration alone
    code text not null,
    fields text not null,           -- inputs of the case, JSON
    status text not null check (status in ('done', 'failed')),
    result text not null,           -- result columns, JSON
    seconds real not null,          -- clock time, measured by the worker
    finished real not null          -- s since 1970
) without rowid;
create index if not exists by_configuration on cases (configuration, finished);
"""


@dataclass(frozen=True)
class CaseOutcome:
    """Outcome of a case.

    Parameters
    ----------
    status : ``DONE`` or ``FAILED``.
    result : columns by name.
    seconds : clock time.
    files : content of the output files by the end of their name (``plan.yaml``).
    """

    status: str
    result: dict[str, Any]
    seconds: float = 0.0
    files: dict[str, bytes] = field(default_factory=dict)


class Newest(NamedTuple):
    """The cases of the newest code version.

    rows : inputs, ``configuration`` (hash), results and ``status`` of each case.
    code : hash of the code.
    commit : git commit of the code; empty if unknown.
    finished : time when the last case was finished, s since 1970.
    """

    rows: tuple[dict[str, Any], ...]
    code: str
    commit: str
    finished: float


class Store:
    """Open the store of a directory; one process at a time may write to it.

    Raises
    ------
    InputError
        The file is not a store of this format, or another process writes to it.
    """

    def __init__(self, directory: str | os.PathLike[str], read_only: bool = False):
        self.directory = Path(directory)
        file = self.directory / FILE
        self._lock: sqlite3.Connection | None = None
        if read_only:
            if not file.is_file():
                raise InputError(f"{file}: there is no store of an experiment here")
        else:
            if self.directory.is_file():
                raise InputError(f"{self.directory}: is a file, not a directory")
            try:
                self.directory.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(f"{self.directory}: cannot be made: {error.strerror}") from error
            self._lock = _lock(self.directory / "lock.sqlite")
        try:
            self._db = sqlite3.connect(file, isolation_level=None)
            if not read_only:
                self._db.execute("pragma journal_mode = wal")
                self._db.execute("pragma synchronous = normal")
                self._db.executescript(_SCHEMA)
                self._db.execute("insert or ignore into about values ('format', ?)", (str(FORMAT),))
                self._db.execute("insert or replace into about values ('mcplan', ?)", (__version__,))
            found = self._db.execute("select value from about where key = 'format'").fetchone()
        except sqlite3.DatabaseError as error:
            self.close()
            raise InputError(f"{file}: not a store of results: {error}") from error
        if found is None or found[0] != str(FORMAT):
            self.close()
            raise InputError(f"{file}: a store of format {found and found[0]}, this version reads {FORMAT}")

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and release the lock."""
        if hasattr(self, "_db"):
            self._db.close()
        if self._lock is not None:
            self._lock.close()

    def note_code(self, code: str, commit: str) -> None:
        """Store the git commit of a code hash."""
        if commit:
            self._db.execute("insert or replace into about values (?, ?)", (f"commit {code}", commit))

    def newest(self) -> Newest:
        """Return the cases of the code version that ran last.

        Raises
        ------
        InputError
            The store is empty.
        """
        last = self._db.execute("select code from cases order by finished desc limit 1").fetchone()
        if last is None:
            raise InputError(f"{self.directory / FILE}: no case has been run")
        query = "select id, configuration, fields, status, result, finished from cases where code = ?"
        found = self._db.execute(query, last).fetchall()
        rows = [
            {"case": name, "configuration": configuration, **json.loads(fields), **json.loads(result), "status": status}
            for name, configuration, fields, status, result, _ in found
        ]
        stored_commit = self._db.execute("select value from about where key = ?", (f"commit {last[0]}",)).fetchone()
        return Newest(tuple(rows), last[0], stored_commit[0] if stored_commit else "", max(row[-1] for row in found))

    def statuses(self) -> dict[str, str]:
        """Return the status of every case in the store."""
        return dict(self._db.execute("select id, status from cases"))

    def configurations(self) -> set[str]:
        """Return the configurations that were run with any code version."""
        return {row[0] for row in self._db.execute("select distinct configuration from cases")}

    def put(self, case: Any, outcome: CaseOutcome, code: str) -> None:
        """Write the outcome of a case, files first."""
        for suffix, content in outcome.files.items():
            write_file(self.artefact(case.id, suffix), content)
        fields, result = json.dumps(case.fields), json.dumps(outcome.result, allow_nan=False)
        row = (case.id, case.configuration, code, fields, outcome.status, result, outcome.seconds, time.time())
        self._db.execute("insert or replace into cases values (?, ?, ?, ?, ?, ?, ?, ?)", row)

    @property
    def plans(self) -> Path:
        """Directory of the plans that cases share while a sweep runs."""
        return self.directory.resolve() / "plans"

    def artefact(self, case_id: str, suffix: str) -> Path:
        """Return the path of an output file of a case."""
        return self.folder(case_id) / f"{case_id}.{suffix}"

    def folder(self, case_id: str) -> Path:
        """Return the directory of the output files of a case."""
        return self.directory / "artefacts" / case_id[:2]

    def results(self, case_ids: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Return the result columns and the ``status`` of those cases that the store has."""
        wanted = set(case_ids)
        rows = self._db.execute("select id, status, result from cases")
        return {
            case_id: {**json.loads(result), "status": status} for case_id, status, result in rows if case_id in wanted
        }

    def latest(self, excluded_code: str | None = None) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield each configuration with its newest row (inputs and results).

        Parameters
        ----------
        excluded_code : hash of a code version whose rows are skipped; None: none is.
        """
        query = "select code, configuration, fields, status, result from cases order by finished"
        newest = {
            configuration: values for code, configuration, *values in self._db.execute(query) if code != excluded_code
        }
        for configuration, (fields, status, result) in newest.items():
            yield configuration, {**json.loads(fields), **json.loads(result), "status": status}

    def mean_seconds(self) -> tuple[float, int]:
        """Return the mean clock time of the cases in the store (s), and their number."""
        mean, count = self._db.execute("select avg(seconds), count(*) from cases").fetchone()
        return mean or 0.0, count


def write_file(path: Path, content: bytes) -> None:
    """Write a file atomically; create its directory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as partial:
        partial.write_bytes(content)


def _lock(path: Path) -> sqlite3.Connection:
    """Lock a directory by a transaction on a separate file; the operating system ends it with the process."""
    connection = None
    try:
        connection = sqlite3.connect(path, timeout=0.0, isolation_level=None)
        connection.execute("begin exclusive")
    except sqlite3.Error as error:
        if connection is not None:
            connection.close()
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
            text = "another sweep is writing there; wait for it, or choose another -o"
        else:
            text = f"cannot be written to ({error}); choose another -o"
        raise InputError(f"{path.parent}: {text}") from error
    return connection
