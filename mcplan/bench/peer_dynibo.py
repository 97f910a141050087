"""dynibo benchmark of whole terms and of loops; runs in the interpreter in which dynibo is installed, without mcplan.

Reads one JSON job from standard input and prints one JSON result.
"""

import json
import sys
import time
from importlib.metadata import version

import dynibo
import numpy as np


def microseconds(function, calls, repeats):
    """Return the median over ``repeats`` of the mean time of ``calls`` calls (µs), after 50 calls without timing."""
    for _ in range(min(50, calls)):
        function()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        for _ in range(calls):
            function()
        times.append((time.perf_counter() - begin) / calls * 1e6)
    return float(np.median(times))


def main():
    """Run one job."""
    job = json.load(sys.stdin)
    robot = dynibo.FloatingRobot.from_urdf(job["urdf"])
    n, nv = robot.joint_count, robot.generalized_count
    rng = np.random.default_rng(0)
    count = max(job["batch"], 1)
    Q, V = 0.3 * rng.standard_normal((count, n)), rng.standard_normal((count, n))
    A = rng.standard_normal((count, n))
    forces = np.hstack([np.zeros((count, nv - n)), A])
    base = dynibo.BaseState()
    M, h, g = np.empty(nv * nv), np.empty(nv), np.empty(nv)
    functions = {
        "mass_matrix": (lambda i, out: robot.mass_matrix(base, Q[i], out), nv * nv),
        "inverse_dynamics": (lambda i, out: robot.inverse_dynamics(base, Q[i], V[i], A[i], None, out), nv),
        "forward_dynamics": (lambda i, out: robot.forward_dynamics(base, Q[i], V[i], forces[i], None, out), nv),
    }

    def terms():
        """Compute mass matrix, Coriolis, centrifugal and gravity forces."""
        robot.mass_matrix(base, Q[0], M)
        robot.velocity_product_forces(base, Q[0], V[0], h)
        robot.gravity(base, Q[0], None, g)

    def loop(function, size):
        """Return the time per configuration (µs) of a loop that stores every result."""
        out = np.empty((count, size))

        def run():
            for i in range(count):
                function(i, out[i])

        return microseconds(run, 1, job["batch_repeats"]) / count

    result = {
        "peer": "dynibo", "version": version("dynibo"),
        "mass": float(robot.mass_matrix(base, Q[0])[3 * nv + 3]),
        "kernels_us": {"all_terms": microseconds(terms, job["calls"], job["repeats"])},
        "batch_us": {name: loop(*functions[name]) for name in job["batches"] if name in functions},
    }  # fmt: skip
    print(json.dumps(result))


if __name__ == "__main__":
    main()
