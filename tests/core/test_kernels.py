"""The rules for kernels: nothing allocated, one signature each, read-only model, and the same answers uncompiled."""

import importlib
import json
import os
import pkgutil
import subprocess
import sys

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher
from numba.core.runtime import _nrt_python, rtsys

import mcplan.core
from mcplan.core.rigid_body.com import centroidal_momentum_bias, centroidal_momentum_matrix, com, com_jacobian
from mcplan.core.rigid_body.forward_dynamics import forward_dynamics
from mcplan.core.rigid_body.frame import frame_bias_acceleration, frame_jacobian, frame_motion, frame_pose
from mcplan.core.rigid_body.inverse_dynamics import inverse_dynamics, nonlinear_effects
from mcplan.core.rigid_body.manifold import difference, integrate
from mcplan.core.rigid_body.mass_matrix import mass_matrix
from mcplan.core.rigid_body.terms import FRAME_SIZE, SUMMARY_SIZE, fill_terms
from mcplan.core.rigid_body.tree import workspace
from mcplan.robot.robot_file import load_robot
from mcplan.robot.terms import Terms
from tests.core.random_trees import build_tree, random_bodies, random_state


def calls(mimic=0.0, joints=12):
    """Name and ready call of every kernel that runs per tick, with its outputs."""
    rng = np.random.default_rng(21)
    tree = build_tree(random_bodies(rng, joints, mimic))
    nv, bodies, work = len(tree.armature), len(tree.topology), workspace(tree)
    q, v, vd = random_state(rng, nv)
    offset = np.r_[np.eye(3).ravel(), 0.1, 0.2, 0.3]
    offset.flags.writeable = False  # as a Robot's are
    body, offsets = np.array([3, bodies - 1]), np.array([offset, offset])
    table = {
        mass_matrix: ((tree, q, work), [(nv, nv)]),
        nonlinear_effects: ((tree, q, v, work), [nv]),
        inverse_dynamics: ((tree, q, v, vd, work), [nv]),
        forward_dynamics: ((tree, q, v, vd, work), [(nv, nv), nv]),
        com: ((tree, q, work), [3]),
        com_jacobian: ((tree, q, work), [3, (3, nv)]),
        centroidal_momentum_matrix: ((tree, q, work), [(6, nv)]),
        centroidal_momentum_bias: ((tree, q, v, work), [6]),
        frame_pose: ((tree, q, 3, offset, work), [(4, 4)]),
        frame_jacobian: ((tree, q, 3, offset, work), [(6, nv)]),
        frame_bias_acceleration: ((tree, q, v, 3, offset, work), [6]),
        frame_motion: ((tree, q, v, vd, 3, offset, work), [24]),
        integrate: ((q, v, 0.01), [nv + 1]),
        difference: ((q, np.roll(q, 1)), [nv]),
        fill_terms: (
            (*tree, q, v, body, offsets, work),
            [(nv, nv), nv, (9, nv), SUMMARY_SIZE, (2, 6, nv), (2, FRAME_SIZE)],
        ),
    }
    out = {}
    for kernel, (inputs, shapes) in table.items():
        outputs = [np.zeros(shape) for shape in shapes]
        out[kernel.__name__] = (kernel, (*inputs, *outputs), outputs)
    return out


def answers():
    result = {}
    for mimic in (0.0, 0.5):
        for name, (kernel, arguments, outputs) in calls(mimic, joints=6).items():
            kernel(*arguments)
            result[f"{name} {mimic}"] = [out.tolist() for out in outputs]
    return result


@pytest.fixture
def counted():
    """Count the allocations of Numba's runtime while a test runs."""
    _nrt_python.memsys_enable_stats()
    yield
    _nrt_python.memsys_disable_stats()


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize("mimic", [0.0, 0.5])
@pytest.mark.parametrize("name", list(calls()))
def test_nothing_is_allocated(name, mimic):
    kernel, arguments, _ = calls(mimic)[name]
    kernel(*arguments)
    before = rtsys.get_allocation_stats()
    for _ in range(10):
        kernel(*arguments)
    after = rtsys.get_allocation_stats()
    assert after.alloc == before.alloc


def in_a_process_of_its_own(expression, **environment):
    """Value of an expression over this module where nobody else has called a kernel."""
    code = f"import json; from tests.core import test_kernels; print(json.dumps(test_kernels.{expression}))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def signatures():
    """Signatures of every kernel after calls from here and from a Robot, one and many at a time."""
    kernels = calls()
    for kernel, arguments, _ in kernels.values():
        kernel(*arguments)
    robot = load_robot("hrp2")
    q0, v0, link = robot.neutral(), np.zeros(robot.nv), robot.link_names[-1]
    Terms(robot, [link]).update(q0, v0)
    for q, v in ((q0, v0), (np.array([q0, q0]), np.array([v0, v0]))):
        robot.mass_matrix(q)
        robot.nonlinear_effects(q, v)
        robot.inverse_dynamics(q, v, v)
        robot.forward_dynamics(q, v, v)
        robot.com(q)
        robot.com_jacobian(q)
        robot.centroidal_momentum_matrix(q)
        robot.frame_pose(q, link)
        robot.frame_jacobian(q, link)
        robot.frame_bias_acceleration(q, v, link)
        robot.difference(robot.integrate(q, v, 0.1), q)
    return {name: [str(s) for s in kernel.signatures] for name, (kernel, _, _) in kernels.items()}


def test_every_kernel_is_compiled_once():
    for name, compiled in in_a_process_of_its_own("signatures()").items():
        assert len(compiled) == 1, f"{name}: {compiled}"


def test_a_kernel_cannot_write_to_the_model():
    tree = calls()["mass_matrix"][1][0]
    for array in tree:
        assert not array.flags.writeable
    mass_matrix(*calls()["mass_matrix"][1])
    for signature in mass_matrix.signatures:
        assert not any(array.mutable for array in signature[0].types)


def test_uncompiled_kernels_give_the_same_answers():
    plain, compiled = in_a_process_of_its_own("answers()", NUMBA_DISABLE_JIT="1"), answers()
    assert plain.keys() == compiled.keys()
    for name, outputs in compiled.items():
        for ours, theirs in zip(outputs, plain[name], strict=True):
            scale = max(1.0, np.max(np.abs(theirs)))
            np.testing.assert_allclose(ours, theirs, atol=1e-11 * scale, err_msg=name)


def test_every_jitted_function_is_cached_under_the_hash_of_the_package():
    from mcplan.core.jit import CACHE_DIRECTORY

    for info in pkgutil.walk_packages(mcplan.core.__path__, "mcplan.core."):
        module = importlib.import_module(info.name)
        for value in vars(module).values():
            if isinstance(value, Dispatcher):
                assert value.stats.cache_path.startswith(CACHE_DIRECTORY)
