"""The rules for kernels, kept by those of distances: nothing allocated, one signature, the same answers uncompiled."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

from mcplan.core.distance.many import fill_distance_rows, fill_distances, find_smallest
from mcplan.core.distance.pair import DISTANCE, PAIR_SIZE
from mcplan.core.distance.watch import new_watch, watch_distances
from mcplan.robot.link_solids import candidate_pairs, link_solids, new_scratch
from mcplan.robot.robot_file import load_robot
from mcplan.robot.solid import pack
from mcplan.util.arrays import read_only

KERNELS = {kernel.__name__: kernel for kernel in (fill_distances, find_smallest, fill_distance_rows, watch_distances)}


def call(name, posture="crawl"):
    """Kernel with its arguments on HRP-2, and its outputs."""
    robot = load_robot("hrp2")
    _, solids, bodies = link_solids(robot)
    pairs = read_only(candidate_pairs(robot))
    count = len(pairs)
    q = robot.posture(posture)
    q[7:] *= 1.3  # some links overlap
    space = new_scratch(robot, len(solids), count)
    outputs = [np.zeros(count, np.int64), np.zeros((count, PAIR_SIZE))]
    if name == "fill_distance_rows":
        outputs.append(np.zeros((count, robot.nv)))
    tree, shapes, margins, watch = robot.tree, pack(solids, bodies), (np.full(count, 0.1),), ()
    if name == "watch_distances":
        margins = 0.1, np.ones(count, np.int64)
        watch = (new_watch(robot.nq, len(tree.topology), len(solids), count),)
    arguments = (tree, shapes, pairs, *margins, q, space, *watch, *outputs)
    return KERNELS[name], arguments, outputs


def answers():
    result = {}
    for name in KERNELS:
        kernel, arguments, outputs = call(name)
        count = kernel(*arguments)
        result[name] = [out[:count].tolist() for out in outputs]
    return result


@pytest.mark.parametrize("name", KERNELS)
def test_nothing_is_allocated(name):
    kernel, arguments, _ = call(name)
    assert kernel(*arguments) > 0
    _nrt_python.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats()
        for _ in range(10):
            kernel(*arguments)
        after = rtsys.get_allocation_stats()
    finally:
        _nrt_python.memsys_disable_stats()
    assert after.alloc == before.alloc


def in_a_process_of_its_own(expression, **environment):
    code = f"import json; from tests.core import test_distance_kernels as t; print(json.dumps(t.{expression}))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def signatures():
    from mcplan.collision.model import CollisionModel

    robot = load_robot("hrp2")
    model = CollisionModel(robot)
    q = robot.posture("half_sitting")
    model.distances(q)
    model.smallest(q)
    model.constraint_rows(q, 0.1)
    kernel, arguments, _ = call("watch_distances")
    kernel(*arguments)
    return {name: len(kernel.signatures) for name, kernel in KERNELS.items()}


def test_every_kernel_is_compiled_once():
    assert in_a_process_of_its_own("signatures()") == dict.fromkeys(KERNELS, 1)


def test_uncompiled_kernels_give_the_same_answers():
    compiled, plain = answers(), in_a_process_of_its_own("answers()", NUMBA_DISABLE_JIT="1")
    for name, outputs in compiled.items():
        assert len(outputs[0]) > 0
        assert outputs[0] == plain[name][0]
        ours, theirs = np.array(outputs[1]), np.array(plain[name][1])
        np.testing.assert_allclose(ours[:, : DISTANCE + 1], theirs[:, : DISTANCE + 1], atol=1e-9, err_msg=name)
        np.testing.assert_allclose(ours[:, 1:4], theirs[:, 1:4], atol=1e-4, err_msg=name)
