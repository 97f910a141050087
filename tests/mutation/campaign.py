"""Make every deliberate fault in a copy of the tree, and see which test notices it.

``python -m tests.mutation.campaign --help`` lists the options.
"""

import argparse
import json
import re
import shlex
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from queue import Empty, Queue
from threading import Lock, Thread
from typing import Any, NamedTuple

from mcplan.sweep.case import commit
from tests.mutation.catalogue import Fault, check, load
from tests.mutation.copies import Copy, digest

COLD, UNCOMPILED = 900.0, 300.0
"""Time for the tests of a file in the clean tree, where kernels may have to be compiled, and where they are not (s)."""

OUT = Path(__file__).parent / "results.jsonl"

UNNOTICED = ("survived", "not judged")


class Clean(NamedTuple):
    """How tests end in the clean tree: how long they take (s), which fail, and why they cannot be asked at all."""

    seconds: float
    failing: list[str]
    wrong: str


class Results:
    """Outcomes in a file, a line each; those of the same tree and the same fault need not be found again."""

    def __init__(self, path: Path, tree: str, commit: str):
        self._path, self._tree, self._commit, self._lock = path, tree, commit, Lock()
        lines = path.read_text().splitlines() if path.exists() else []
        rows = [row for row in map(json.loads, lines) if row["tree"] == tree]
        self.rows = {(row["id"], row["fault"]): row for row in rows if "id" in row}
        self.clean = {(row["clean"], row["compiled"]): Clean(*row["found"]) for row in rows if "clean" in row}

    def find(self, fault: Fault) -> dict[str, Any] | None:
        """Return the outcome of a fault, if it is known."""
        return self.rows.get((fault.id, fault.digest))

    def add(self, fault: Fault, outcome: dict[str, Any]) -> dict[str, Any]:
        """Keep an outcome."""
        about = {"tree": self._tree, "commit": self._commit, "area": fault.area}
        row = {**about, "id": fault.id, "fault": fault.digest, **outcome}
        self.rows[fault.id, fault.digest] = row
        self._write(row)
        return row

    def add_clean(self, test: str, compiled: bool, found: Clean) -> None:
        """Keep how tests end in the clean tree."""
        self.clean[test, compiled] = found
        self._write({"tree": self._tree, "clean": test, "compiled": compiled, "found": found})

    def _write(self, row: dict[str, Any]) -> None:
        with self._lock, self._path.open("a") as file:
            file.write(json.dumps(row) + "\n")


class Worker:
    """Judges faults in a copy of its own.

    Parameters
    ----------
    number : of the copy.
    timeout : for the tests of a file (s); three times as long as in the clean tree if that is more.
    results : where it is written how tests end in the clean tree.
    """

    def __init__(self, number: int, timeout: float, results: Results):
        self._copy, self._timeout, self._results = Copy(number), timeout, results
        self._known = set(results.clean) if self._copy.warm else set()

    def judge(self, fault: Fault) -> dict[str, Any]:
        """Return the outcome of a fault: caught by which test, or that none noticed it."""
        begun, notes, outcome = time.monotonic(), [], {"outcome": "not judged"}
        tests = list(fault.tests)
        while tests:
            group, arguments, time_allowed = self._group(tests, fault.compiled, notes)
            if not group:
                continue
            with self._copy.fault(fault):
                code, text = self._copy.pytest([*arguments, "-x"], fault.compiled, time_allowed, keep=False)
            outcome = {"outcome": "survived"}
            if code not in (0, 5):
                outcome = {"outcome": _outcome(code), "by": (_failed(text) or group)[0]}
                break
        return outcome | {"seconds": round(time.monotonic() - begun, 1), "notes": notes}

    def _group(self, tests: list[str], compiled: bool, notes: list[str]) -> tuple[list[str], list[str], float]:
        """Take tests for one process off a list: these, the arguments of pytest, and the time that they may take.

        What selects by words needs a process of its own, and what is new to the clean tree is not asked beforehand.
        """
        group: list[str] = []
        arguments: list[str] = []
        left_out: list[str] = []
        allowed = 0.0
        while tests and (not group or ((tests[0], compiled) in self._known and " -" not in group[0] + tests[0])):
            test = tests.pop(0)
            clean = self._clean(test, compiled)
            if clean.wrong:
                notes.append(f"{test}: {clean.wrong}")
                continue
            if clean.failing:
                notes.append(f"{test}: left out, since they fail: {', '.join(clean.failing)}")
            group.append(test)
            arguments += shlex.split(test)
            left_out += [f"--deselect={name}" for name in clean.failing]
            allowed += max(self._timeout, 3 * clean.seconds)
        return group, arguments + left_out, allowed

    def _clean(self, test: str, compiled: bool) -> Clean:
        """Return how tests end in the clean tree; what a new copy lacks, kernels among it, is compiled on the way."""
        if (test, compiled) not in self._known:
            begun = time.monotonic()
            code, text = self._copy.pytest(shlex.split(test), compiled, COLD if compiled else UNCOMPILED, keep=True)
            wrong = {0: "", 1: "", None: "no end", 5: "no test"}.get(code, "pytest fails")
            found = Clean(round(time.monotonic() - begun, 1), _failed(text) if code == 1 else [], wrong)
            print(f"  clean{'' if compiled else ', uncompiled'}: {test}: {found.seconds} s {wrong}", *found.failing)
            self._results.add_clean(test, compiled, found)
            self._known.add((test, compiled))
        return self._results.clean[test, compiled]


def _outcome(code: int | None) -> str:
    if code is None:
        return "timeout"
    return "caught" if code == 1 else "broken import" if code in (2, 3, 4) else "crash"


def _failed(text: str) -> list[str]:
    """Return the tests that pytest says have failed."""
    return [match[1] for match in re.finditer(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", text, re.MULTILINE)]


def run(faults: list[Fault], results: Results, workers: int, timeout: float) -> None:
    """Judge faults whose outcome is not known."""
    queue: Queue[Fault] = Queue()
    for fault in faults:
        if results.find(fault) is None:
            queue.put(fault)
    print(f"{len(faults)} faults, {queue.qsize()} of them to be judged", flush=True)

    def work(number: int) -> None:
        worker = Worker(number, timeout, results)
        while True:
            try:
                fault = queue.get_nowait()
            except Empty:
                return
            row = results.add(fault, worker.judge(fault))
            print(f"{fault.id}: {row['outcome']} {row.get('by', '')} ({row['seconds']} s)", flush=True)

    threads = [Thread(target=work, args=(k,), daemon=True) for k in range(min(workers, queue.qsize()))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def table(faults: Iterable[Fault], results: Results) -> str:
    """Return how many faults of each area were caught, and which were not."""
    areas: dict[str, list[tuple[Fault, dict[str, Any]]]] = {}
    for fault in faults:
        areas.setdefault(fault.area, []).append((fault, results.find(fault) or {"outcome": "not run"}))
    lines, sums = [f"{'area':<14} caught  of"], [0, 0]
    for area, found in areas.items():
        caught = sum(row["outcome"] not in (*UNNOTICED, "not run") for _, row in found)
        sums = [sums[0] + caught, sums[1] + len(found)]
        lines.append(f"{area:<14} {caught:>6} {len(found):>3}")
    lines.append(f"{'all':<14} {sums[0]:>6} {sums[1]:>3}")
    everything = [item for found in areas.values() for item in found]
    for outcome in (*UNNOTICED, "timeout", "not run"):
        of_it = [(fault, row) for fault, row in everything if row["outcome"] == outcome]
        if of_it and outcome == "not run":
            lines.append(f"not run: {len(of_it)}")
        elif of_it:
            lines += [f"{outcome}:", *(f"  {fault.id} ({fault.file}): {fault.why}" for fault, _ in of_it)]
    notes = sorted({note for _, row in everything for note in row.get("notes", ())})
    return "\n".join(lines + ["in the clean tree:"] * bool(notes) + [f"  {note}" for note in notes])


def main(arguments: list[str] | None = None) -> int:
    """Run the campaign; the exit code says whether every fault was caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation.campaign", description=__doc__)
    parser.add_argument("--only", action="append", default=[], help="an area or the id of a fault; may be repeated")
    parser.add_argument("--survivors", action="store_true", help="judge only what nobody noticed, once more")
    parser.add_argument("--also", nargs="+", default=[], help="tests to ask beside those that the list names")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=OUT, help="where outcomes are kept and taken up")
    parser.add_argument("--timeout", type=float, default=120.0, help="for the tests of a file (s)")
    parser.add_argument("--check", action="store_true", help="only list the faults that do not apply to this tree")
    parser.add_argument("--table", action="store_true", help="only print what is known of this tree")
    options = parser.parse_args(arguments)
    faults = load()
    unknown = set(options.only) - {fault.area for fault in faults} - {fault.id for fault in faults}
    if unknown:
        parser.error(f"no area and no fault: {', '.join(sorted(unknown))}")
    order = {name: k for k, name in enumerate(options.only)}
    faults = [fault for fault in faults if not order or {fault.area, fault.id} & set(order)]
    faults.sort(key=lambda fault: order.get(fault.id, order.get(fault.area, 0)))
    wrong = check(faults)
    if options.check:
        print("\n".join(wrong) or f"all {len(faults)} faults apply")
        return bool(wrong)
    faults = [fault for fault in faults if not any(fault.problems())]
    results = Results(options.out, digest(), commit())
    if options.survivors:
        faults = [fault for fault in faults if (results.find(fault) or {}).get("outcome") in UNNOTICED]
        for fault in faults:
            del results.rows[fault.id, fault.digest]
    if not options.table:
        asked = [replace(fault, tests=(*fault.tests, *options.also)) for fault in faults]
        run(asked, results, options.workers, options.timeout)
    print(table(faults, results))
    if wrong:
        print("does not apply:", *wrong, sep="\n  ")
    return bool(wrong) or any(
        (results.find(fault) or {"outcome": "not run"})["outcome"] in (*UNNOTICED, "not run") for fault in faults
    )


if __name__ == "__main__":
    sys.exit(main())
