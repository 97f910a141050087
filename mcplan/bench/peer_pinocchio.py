"""Pinocchio benchmark of the kernels; runs in the interpreter in which Pinocchio is installed, without mcplan.

Reads one JSON job from standard input and prints one JSON result.
"""

import json
import sys
import time

import numpy as np
import pinocchio as pin


def microseconds(function, calls, repeats):
    """Return the median over ``repeats`` of the mean time of ``calls`` calls (µs), after 50 calls without timing."""
    for _ in range(50):
        function()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        for _ in range(calls):
            function()
        times.append((time.perf_counter() - begin) / calls * 1e6)
    return float(np.median(times))


def algorithms(model, data, frame):
    """Return by name each algorithm as a function of (q, v, a), and the shape of its result."""
    nv, axes = model.nv, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    return {
        "mass_matrix": (lambda q, v, a: pin.crba(model, data, q), (nv, nv)),
        "inverse_dynamics": (lambda q, v, a: pin.rnea(model, data, q, v, a), (nv,)),
        "nonlinear_effects": (lambda q, v, a: pin.nonLinearEffects(model, data, q, v), (nv,)),
        "forward_dynamics": (lambda q, v, a: pin.aba(model, data, q, v, a), (nv,)),
        "kinematics_and_jacobians": (lambda q, v, a: pin.computeJointJacobians(model, data, q), (6, nv)),
        "frame_jacobian": (lambda q, v, a: pin.computeFrameJacobian(model, data, q, frame, axes), (6, nv)),
        "momentum_matrix": (lambda q, v, a: pin.ccrba(model, data, q, v), (6, nv)),
    }


def batch(function, shape, Q, V, A, repeats):
    """Return the time per configuration (µs) of a loop that stores every result."""
    out = np.empty((len(Q), *shape))

    def loop():
        for i in range(len(Q)):
            out[i] = function(Q[i], V[i], A[i])

    return microseconds_once(loop, repeats) / len(Q)


def microseconds_once(function, repeats):
    """Return the median time of single calls of a long function (µs), after one call without timing."""
    function()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return float(np.median(times)) * 1e6


def inverse_dynamics_time(path, calls, repeats):
    """Return the time of one call of inverse dynamics on the robot of a URDF (µs)."""
    model = pin.buildModelFromUrdf(path, pin.JointModelFreeFlyer())
    data = model.createData()
    q, v = pin.neutral(model), np.ones(model.nv)
    return microseconds(lambda: pin.rnea(model, data, q, v, v), calls, repeats)


def main():
    """Run one job."""
    job = json.load(sys.stdin)
    model = pin.buildModelFromUrdf(job["urdf"], pin.JointModelFreeFlyer())
    data = model.createData()
    rng = np.random.default_rng(0)
    count = max(job["batch"], 1)
    Q = np.array([pin.integrate(model, pin.neutral(model), 0.3 * rng.standard_normal(model.nv)) for _ in range(count)])
    V, A = rng.standard_normal((count, model.nv)), rng.standard_normal((count, model.nv))
    q, v, a = Q[0], V[0], A[0]
    functions = algorithms(model, data, model.getFrameId(job["frame"]))
    calls, repeats = job["calls"], job["repeats"]
    kernels = {name: microseconds(lambda f=f: f(q, v, a), calls, repeats) for name, (f, _) in functions.items()}
    kernels["all_terms"] = microseconds(lambda: pin.computeAllTerms(model, data, q, v), calls, repeats)
    batches = {name: batch(*functions[name], Q, V, A, job["batch_repeats"]) for name in job["batches"]}
    growth = {size: inverse_dynamics_time(path, calls, repeats) for size, path in job["chains"].items()}
    result = {
        "peer": "pinocchio", "version": pin.__version__, "nv": model.nv,
        "kernels_us": kernels, "batch_us": batches, "growth_us": growth,
    }  # fmt: skip
    print(json.dumps(result))


if __name__ == "__main__":
    main()
