"""The declared program: its rows say what their names do."""

import numpy as np
import pytest

from mcplan.whole_body.declaration import Declaration
from mcplan.whole_body.problem_data import Structure
from mcplan.whole_body.settings import QPSettings


@pytest.mark.parametrize("bounded", [(0, 1, 2, 3, 4), (1, 3), (4,)])
def test_bounds_of_accelerations_are_on_the_joints_that_have_them(bounded):
    """a_min <= vd_j <= a_max, j counted behind the base: the rows tell how far each joint is beyond."""
    joints = 5
    declared = Declaration(Structure(6 + joints, (), 0, (np.inf,) * joints, bounded, QPSettings()))
    rng = np.random.default_rng(0)
    vd, low, high = rng.normal(size=6 + joints), rng.normal(size=len(bounded)), rng.normal(size=len(bounded))
    declared.vd.value = vd
    declared.parameters["acceleration_min"].value = low
    declared.parameters["acceleration_max"].value = high
    rows = {rows.name: rows.expression.value for rows in declared.rows if rows.name.startswith("acceleration")}
    of_joints = vd[6:][list(bounded)]
    np.testing.assert_allclose(rows["acceleration_min"], low - of_joints)
    np.testing.assert_allclose(rows["acceleration_max"], of_joints - high)
