"""Parts of the kernels of usual ticks."""

from dataclasses import replace

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.core.whole_body.tick import move_towards, turn_axes
from tests import shared


def test_planned_forces_approach_their_targets():
    forces, target = np.array([0.0, 100.0, -3.0]), np.array([40.0, 0.0, -3.0])
    move_towards(forces, target, 0.25)
    np.testing.assert_allclose(forces, [10.0, 75.0, -3.0])


def test_axes_of_a_rolling_patch_turn_with_it():
    contact = replace(shared.soles()[0], R=Rotation.from_rotvec([0.2, -0.4, 0.1]).as_matrix())
    R, axes = Rotation.from_rotvec([0.5, 0.3, -0.8]).as_matrix(), np.empty(9)
    turn_axes(R.ravel(), np.ascontiguousarray(contact.R.T @ contact.axes), axes)
    np.testing.assert_allclose(axes.reshape(3, 3), R @ contact.R.T @ contact.axes, atol=1e-14)
