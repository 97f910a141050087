"""Peers (Pinocchio, TSID) as subprocesses with their own interpreters: JSON job in, JSON result out.

Whether two programs were given the same problem: the first tick's accelerations, side by side.
"""

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcplan.errors import InputError, JobFailed
from mcplan.robot.pose import rotation_from_quat

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
        """Run the reference tick in TSID."""
        return ask(self.tsid, SCRIPTS / "peer_tsid.py", job)

    def kernels(self, job: dict[str, Any]) -> dict[str, Any]:
        """Run the algorithms of Pinocchio."""
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


TOLERANCE = 1e-4
"""Largest relative difference of the accelerations."""


@dataclass(frozen=True)
class Agreement:
    """Largest difference of accelerations and of torques, relative to the largest entry of the peer's."""

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
    vd, tau : accelerations and torques.
    peer : ``base_local`` (6,): derivative of the base twist in base axes; ``joints``, ``tau``: by name of the joint.
    """
    theirs = np.array([*world_acceleration(q, v, peer["base_local"]), *(peer["joints"][n] for n in joint_names)])
    torques = np.array([peer["tau"][name] for name in joint_names])
    return Agreement(_relative(vd, theirs), _relative(tau, torques))


def world_acceleration(q: NDArray[np.float64], v: NDArray[np.float64], local: Any) -> NDArray[np.float64]:
    """Return ``(R a + w x v, R alpha)``: from the derivative of the base twist in base axes to ``vd`` of the base."""
    R, local = rotation_from_quat(q[3:7]), np.asarray(local, dtype=float)
    return np.concatenate([R @ local[:3] + np.cross(v[3:6], v[:3]), R @ local[3:]])


def _relative(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> float:
    return float(np.max(np.abs(ours - theirs)) / np.max(np.abs(theirs)))
