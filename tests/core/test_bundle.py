"""Arrays in one bundle are the arrays that went in."""

import numpy as np
import pytest

from mcplan.core import bundle as kernels
from mcplan.core.bundle import bundle
from mcplan.core.contact_bundle import (
    close_scene,
    close_scratch,
    close_touch,
    flat,
    open_scene,
    open_scratch,
    open_touch,
)
from mcplan.core.contact_model import scratch, touch
from mcplan.model.robot_file import load_robot
from mcplan.scene.environment import Bar, Environment
from mcplan.scene.settings import SimulationSettings
from mcplan.sim.contact.pack import pack_scene
from tests.sim.contact.worlds import plane, solid


def arrays(rng):
    return [
        rng.normal(size=(3, 4)), rng.integers(9, size=5), rng.normal(size=7), rng.normal(size=(2, 3, 4)),
        np.zeros((0, 3)), rng.integers(9, size=(2, 3)),
    ]  # fmt: skip


def test_each_array_comes_out_as_it_went_in_and_shares_its_memory():
    given = arrays(np.random.default_rng(0))
    packed, views = bundle(given)
    openers = (kernels.real2, kernels.whole1, kernels.real1, kernels.real3, kernels.real2, kernels.whole2)
    for k, (opener, array) in enumerate(zip(openers, given, strict=True)):
        np.testing.assert_array_equal(getattr(opener, "py_func", opener)(packed, k), array)
    for view, array in zip(views, given, strict=True):
        np.testing.assert_array_equal(view, array)
    views[2][3] = 5.0
    assert packed.real[given[0].size + 3] == 5.0


def test_a_bundle_of_read_only_arrays_is_read_only():
    given = arrays(np.random.default_rng(0))
    for array in given:
        array.flags.writeable = False
    packed, _ = bundle(given)
    with pytest.raises(ValueError, match="read-only"):
        packed.real[0] = 1.0


@pytest.fixture(scope="module")
def scene():
    robot = load_robot("hrp2")
    bar = Bar("bar", np.array([[0, -0.5, 1.0], [0, 0.5, 1.0]]), 0.02)
    environment = Environment(surfaces=(plane(),), bars=(bar,), objects=(solid(),))
    return pack_scene(robot, environment, ["left_sole"], SimulationSettings(), robot.posture("half_sitting"))


def test_scene_scratch_and_table_open_field_by_field(scene):
    """The order of fields in the bundles is that of the tuples."""
    space, table = scratch(scene, 34), touch(scene)
    for k, array in enumerate(flat(space)):
        array.flat[:] = k
    cases = [
        (open_scene, close_scene(scene), scene),
        (open_scratch, close_scratch(space), space),
        (open_touch, close_touch(table)[0], table),
    ]
    for opener, packed, given in cases:
        opened = getattr(opener, "py_func", opener)(packed)
        for mine, theirs in zip(flat(opened), flat(given), strict=True):
            assert mine.dtype == theirs.dtype
            np.testing.assert_array_equal(mine, theirs)
