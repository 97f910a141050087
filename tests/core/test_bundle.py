"""Arrays in one bundle are the arrays that went in."""

import numpy as np
import pytest

from mcplan.core import bundle as kernels
from mcplan.core.bundle import bundle
from mcplan.core.contact import bundle as contact_bundle
from mcplan.core.contact.bundle import flat, pack_constants, pack_variables, unpack_constants, unpack_variables
from mcplan.core.contact.model import contact_table, exchange, scratch
from mcplan.core.jit import jit
from mcplan.robot.robot_file import load_robot
from mcplan.scene.environment import Bar, Environment
from mcplan.settings.simulation import SimulationSettings
from mcplan.sim.contact.contact_physics import law_array
from mcplan.sim.contact.pack import pack_scene
from tests.sim.contact.worlds import plane, solid


def plain(kernel):
    return getattr(kernel, "py_func", kernel)


def arrays(rng):
    return [
        rng.normal(size=(3, 4)), rng.integers(9, size=5), rng.normal(size=7), rng.normal(size=(2, 3, 4)),
        np.zeros((0, 3)), rng.integers(9, size=(2, 3)),
    ]  # fmt: skip


def test_each_array_comes_out_as_it_went_in_and_shares_its_memory():
    given = arrays(np.random.default_rng(0))
    packed, views = bundle(given)
    openers = (kernels.axes2, kernels.axes1, kernels.axes1, kernels.axes3, kernels.axes2, kernels.axes2)
    for k, (opener, array) in enumerate(zip(openers, given, strict=True)):
        buffer = packed.real if array.dtype == float else packed.integer
        np.testing.assert_array_equal(opener(buffer, packed.layout, k), array)
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


@jit
def entries(packed):
    """Last entry of array 3, and of array 5 after its first one has been overwritten."""
    whole = kernels.axes2(packed.integer, packed.layout, 5)
    whole[0, 0] = 77
    return kernels.axes3(packed.real, packed.layout, 3)[1, 2, 3], whole[1, 2]


def test_in_a_kernel_arrays_come_out_the_same():
    given = arrays(np.random.default_rng(0))
    packed, views = bundle(given)
    assert entries(packed) == (given[3][1, 2, 3], given[5][1, 2])
    assert views[5][0, 0] == 77


def test_all_that_a_step_reads_and_writes_opens_field_by_field(monkeypatch):
    """The order of fields in the bundles is that of the tuples."""
    robot = load_robot("hrp2")
    bar = Bar("bar", np.array([[0, -0.5, 1.0], [0, 0.5, 1.0]]), 0.02)
    environment = Environment(surfaces=(plane(),), bars=(bar,), objects=(solid(),))
    scene = pack_scene(robot, environment, ["left_sole"], SimulationSettings(), robot.posture("half_sitting"))
    fixed = (robot.tree, scene, np.arange(9.0))
    moving = (exchange(robot.tree, 1, 1), scratch(scene, robot.nv), contact_table(scene))
    for k, array in enumerate(flat(moving)):
        array.flat[:] = k
    for name in ("unpack_scene", "unpack_scratch", "unpack_contacts"):  # compiled kernels give no arrays to Python
        monkeypatch.setattr(contact_bundle, name, plain(getattr(contact_bundle, name)))
    cases = [(unpack_constants, pack_constants(*fixed), fixed), (unpack_variables, pack_variables(*moving)[0], moving)]
    for opener, packed, given in cases:
        opened = flat(plain(opener)(packed))
        for mine, theirs in zip(opened, flat(given), strict=True):
            assert mine.dtype == theirs.dtype
            np.testing.assert_array_equal(mine, theirs)


def test_what_no_step_changes_is_read_only_as_kernels_know_it_from_planning():
    """Else they would be compiled for both."""
    robot, settings = load_robot("hrp2"), SimulationSettings()
    environment = Environment(surfaces=(plane(),), objects=(solid(),))
    scene = pack_scene(robot, environment, ["left_sole"], settings, robot.posture("half_sitting"))
    packed = pack_constants(robot.tree, scene, law_array(settings.contact))
    assert not any(buffer.flags.writeable for buffer in packed)


def test_what_the_caller_keeps_of_a_bundle_is_in_it():
    robot = load_robot("hrp2")
    environment = Environment(surfaces=(plane(),))
    scene = pack_scene(robot, environment, ["left_sole"], SimulationSettings(), robot.posture("half_sitting"))
    packed, moving, table = pack_variables(exchange(robot.tree, 1, 0), scratch(scene, robot.nv), contact_table(scene))
    moving.tau[:], table.report[:] = 3.0, 4.0
    assert np.sum(packed.real == 3.0) == robot.n
    assert np.sum(packed.real == 4.0) == table.report.size
