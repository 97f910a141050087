"""The peers as subprocesses: their own interpreters, one JSON job in, one JSON answer out."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcplan.errors import InputError, JobFailed

SCRIPTS = Path(__file__).parent
TIMEOUT = 600.0
"""s, for one job."""


@dataclass(frozen=True)
class Peers:
    """Interpreters of the peers.

    Parameters
    ----------
    tsid, pinocchio : paths of Python interpreters that can import them.
    """

    tsid: Path
    pinocchio: Path

    @classmethod
    def find(cls, directory: str | Path) -> "Peers":
        """Return the interpreters ``DIR/tsid/bin/python`` and ``DIR/pin/bin/python``.

        Raises
        ------
        InputError
            When one of them is not there.
        """
        found = [Path(directory) / name / "bin" / "python" for name in ("tsid", "pin")]
        for path in found:
            if not path.is_file():
                raise InputError(f"--peers {directory}: {path} does not exist; expected one environment per peer")
        return cls(*(path.absolute() for path in found))  # not resolved: the link is what marks the environment

    def reference_tick(self, job: dict[str, Any]) -> dict[str, Any]:
        """Let TSID run the reference tick."""
        return ask(self.tsid, SCRIPTS / "peer_tsid.py", job)

    def kernels(self, job: dict[str, Any]) -> dict[str, Any]:
        """Let Pinocchio run its algorithms."""
        return ask(self.pinocchio, SCRIPTS / "peer_pinocchio.py", job)


def ask(python: Path, script: Path, job: dict[str, Any], timeout: float = TIMEOUT) -> dict[str, Any]:
    """Run a script under another interpreter with a job on its standard input; return its answer.

    Raises
    ------
    JobFailed
        When it ends with an error, takes too long, or answers with something else than JSON.
    """
    threads = {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    try:
        done = subprocess.run(
            [python, "-I", script],  # isolated: this interpreter's paths are not the peer's
            input=json.dumps(job),
            capture_output=True,
            text=True,
            timeout=timeout,
            env=os.environ | threads,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise JobFailed(f"{script.stem}: no answer after {timeout:g} s") from None
    except OSError as error:
        raise JobFailed(f"{script.stem}: {python} cannot be run: {error.strerror}") from error
    if done.returncode:
        last = "\n".join(done.stderr.strip().splitlines()[-3:]) or "no message"
        raise JobFailed(f"{script.stem}: exit status {done.returncode}: {last}")
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError:
        raise JobFailed(f"{script.stem}: the answer is not JSON: {done.stdout[:200]!r}") from None
