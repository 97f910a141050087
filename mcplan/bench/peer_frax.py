"""frax benchmark of whole terms and of batches; runs in the interpreter in which frax is installed, without mcplan.

Reads one JSON job from standard input and prints one JSON result. JAX computes in double precision, on one thread.
"""

import json
import os
import sys
import time
from importlib.metadata import version

os.environ["JAX_ENABLE_X64"] = "1"
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import frax
import jax
import numpy as np


def microseconds(function, arguments, calls, repeats):
    """Return the median over ``repeats`` of the mean time of ``calls`` calls (µs), after two calls without timing."""
    for _ in range(2):
        jax.block_until_ready(function(*arguments))
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        for _ in range(calls):
            jax.block_until_ready(function(*arguments))
        times.append((time.perf_counter() - begin) / calls * 1e6)
    return float(np.median(times))


def main():
    """Run one job."""
    job = json.load(sys.stdin)
    robot = frax.Robot(job["urdf"], floating_base="quaternion")
    gravity = jax.numpy.array([0.0, 0.0, 9.81, 0.0, 0.0, 0.0])
    functions = {
        "mass_matrix": lambda q, v, a: robot.mass_matrix(q),
        "inverse_dynamics": lambda q, v, a: robot.rnea(q, v, a, gravity, None),
        "nonlinear_effects": lambda q, v, a: robot.nonlinear_bias(q, v),
        "forward_dynamics": lambda q, v, a: robot.forward_dynamics(q, v, a, None),
    }
    rng = np.random.default_rng(0)
    count = max(job["batch"], 1)
    Q = 0.3 * rng.standard_normal((count, robot.nv + 1))
    Q[:, 3:7] /= np.linalg.norm(Q[:, 3:7], axis=1, keepdims=True)
    V, A = rng.standard_normal((count, robot.nv)), rng.standard_normal((count, robot.nv))
    states = jax.device_put((Q, V, A))
    state = tuple(x[0] for x in states)

    def terms(q, v, a):
        """Return mass matrix, nonlinear effects, centre of mass and its Jacobian."""
        com = robot.center_of_mass(q), robot.center_of_mass_jacobian(q)
        return robot.mass_matrix(q), robot.nonlinear_bias(q, v), *com

    batches = {
        name: microseconds(jax.jit(jax.vmap(functions[name])), states, 1, job["batch_repeats"]) / count
        for name in job["batches"]
        if name in functions
    }
    result = {
        "peer": "frax", "version": version("frax"), "mass": float(robot.mass_matrix(state[0])[0, 0]),
        "kernels_us": {"all_terms": microseconds(jax.jit(terms), state, job["calls"], job["repeats"])},
        "batch_us": batches,
    }  # fmt: skip
    print(json.dumps(result))


if __name__ == "__main__":
    main()
