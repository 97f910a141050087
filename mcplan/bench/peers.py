"""Peers (Pinocchio, TSID, dynibo, frax) as subprocesses with their own interpreters: JSON job in, JSON result out.

Also a comparison of the first tick's results, which shows whether two programs solved the same problem.
"""

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcplan.errors import InputError, JobFailed
from mcplan.robot.pose import rotation_from_quat

SCRIPTS = Path(__file__).parent
"""Folder of the scripts that run in the peers' interpreters."""

OTHERS = ("dynibo", "frax")
"""Packages that are measured where ``DIR/NAME/bin/python`` exists."""

TIMEOUT = 600.0
"""s: maximum time for one job."""


@dataclass(frozen=True)
class Peers:
    """Interpreters of the peers.

    Parameters
    ----------
    tsid, pinocchio : paths of Python interpreters that can import them.
    others : the same of further packages, by their name in `OTHERS`.
    """

    tsid: Path
    pinocchio: Path
    others: Mapping[str, Path] = field(default_factory=dict)

    @classmethod
    def find(cls, directory: str | Path) -> "Peers":
        """Return the interpreters ``DIR/tsid/bin/python`` and ``DIR/pin/bin/python``, and those of `OTHERS` that exist.

        Raises
        ------
        InputError
            One of them does not exist.
        """
        paths = {name: Path(directory) / name / "bin" / "python" for name in ("tsid", "pin", *OTHERS)}
        # unresolved: the symbolic link identifies the environment
        present = {name: path.absolute() for name, path in paths.items() if path.is_file()}
        for name in ("tsid", "pin"):
            if name not in present:
                missing = f"{paths[name]} does not exist; expected one environment per peer"
                raise InputError(f"--peers {directory}: {missing}")
        return cls(present.pop("tsid"), present.pop("pin"), present)

    def reference_tick(self, job: dict[str, Any]) -> dict[str, Any]:
        """Run the reference tick in TSID."""
        return run_job(self.tsid, SCRIPTS / "peer_tsid.py", job)

    def kernels(self, job: dict[str, Any]) -> dict[str, Any]:
        """Measure the algorithms of Pinocchio."""
        return run_job(self.pinocchio, SCRIPTS / "peer_pinocchio.py", job)

    def others_us(self, job: dict[str, Any]) -> dict[str, Any]:
        """Measure whole terms and batches of the other packages; return their results by name."""
        return {name: run_job(python, SCRIPTS / f"peer_{name}.py", job) for name, python in self.others.items()}


def run_job(python: Path, script: Path, job: dict[str, Any], timeout: float = TIMEOUT) -> dict[str, Any]:
    """Run a script in another interpreter with a job on its standard input; return its result.

    Raises
    ------
    JobFailed
        The script fails, exceeds the timeout, or prints something else than JSON.
    """
    threads = {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    try:
        completed = subprocess.run(
            [python, "-I", script],  # isolated: without the paths of this interpreter
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
    if completed.returncode:
        last = "\n".join(completed.stderr.strip().splitlines()[-3:]) or "no message"
        raise JobFailed(f"{script.stem}: exit status {completed.returncode}: {last}")
    try:
        return json.loads(completed.stdout)
    except json.JSONDecodeError:
        raise JobFailed(f"{script.stem}: the answer is not JSON: {completed.stdout[:200]!r}") from None


TOLERANCE = 1e-4
"""Largest relative difference of accelerations between programs that solve the same problem."""


@dataclass(frozen=True)
class Agreement:
    """Largest difference of accelerations and of torques from a peer's, relative to the peer's largest entry."""

    acceleration: float
    torque: float

    @property
    def holds(self) -> bool:
        """Whether the accelerations agree (a NaN does not)."""
        return bool(self.acceleration <= TOLERANCE)


def compare(
    joint_names: tuple[str, ...],
    q: NDArray[np.float64],
    v: NDArray[np.float64],
    vd: NDArray[np.float64],
    tau: NDArray[np.float64],
    peer: Mapping[str, Any],
) -> Agreement:
    """Compare with a peer's result at the same state.

    Parameters
    ----------
    joint_names : of ``vd[6:]`` and ``tau``.
    q, v : the state.
    vd, tau : accelerations and torques of mcplan.
    peer : ``base_local`` (6,): derivative of the base twist in base axes; ``joints``, ``tau``: by name of the joint.
    """
    theirs = np.array([*world_acceleration(q, v, peer["base_local"]), *(peer["joints"][n] for n in joint_names)])
    torques = np.array([peer["tau"][name] for name in joint_names])
    return Agreement(_relative(vd, theirs), _relative(tau, torques))


def world_acceleration(q: NDArray[np.float64], v: NDArray[np.float64], local: Any) -> NDArray[np.float64]:
    """Convert the derivative of the base twist in base axes, (a, alpha), to ``vd`` of the base.

    The result is ``(R a + w x v, R alpha)`` with the orientation R and the velocity (v, w) of the base.
    """
    R, local = rotation_from_quat(q[3:7]), np.asarray(local, dtype=float)
    return np.concatenate([R @ local[:3] + np.cross(v[3:6], v[:3]), R @ local[3:]])


def _relative(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> float:
    return float(np.max(np.abs(ours - theirs)) / np.max(np.abs(theirs)))
