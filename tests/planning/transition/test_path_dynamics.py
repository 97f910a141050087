"""What forces allow along a path: the pairs of (u, x) for which HiGHS finds forces, and no others."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

from mcplan.planning.timing.path_dynamics import PathDynamics, RetimingError, with_pace_margins
from mcplan.planning.timing.retiming import Retimer
from mcplan.settings.margins import with_control_margins

POINTS = (1, 17, 24, 40)


def forces_along(step, retimer, case):
    """The forces along the shift of the step, one of its feet held by a grip, or joints of the arms weak."""
    segment = step.segments[0]
    contacts = list(segment.contacts)
    if case == "grip":
        contacts[0] = replace(contacts[0], kind="grasp", max_force=1500.0, max_moment=60.0)
    path, _ = PathDynamics.pair(retimer.robot, replace(segment, contacts=tuple(contacts)))
    forces = retimer.forces(path, 1.0)
    if case == "weak":
        joints = 6 + forces.limited
        arms = ~forces.G[:, joints].any(axis=(0, 2))
        assert 10 < np.count_nonzero(arms) < len(arms)
        forces.limit[arms] = 1.001 * np.abs(forces.hold[:, joints[arms]]).max(axis=0) + 1e-3
    return path, forces


def most(program, i, of_u, of_x, ways, bounds):
    """The most that ``of z`` is, z (2,) within bounds and ``hold + ways z`` given by contacts and joints at a point."""
    A, b, C, d = program.forces_at(i, program.hold[i])
    joints, unit = 6 + program.limited, 500.0
    k = len(program.faces)
    A = np.hstack([np.vstack([np.zeros((k, 2)), ways[joints], -ways[joints]]), unit * A])
    C = np.hstack([np.vstack([-ways[:6], np.zeros((len(program.equal), 2))]), unit * C])
    free = [(None, None)] * program.forces.shape[2]
    found = linprog(np.append([-of_u, -of_x], np.zeros(len(free))), A, b, C, d, [*bounds, *free], method="highs")
    assert found.status == 0
    return -found.fun


@pytest.mark.parametrize("case", ["feet", "grip", "weak"])
def test_polygons_reach_as_far_as_forces_do(step, retimer, case):
    path, forces = forces_along(step, retimer, case)
    wide = {"acceleration": np.inf, "rise": np.inf, "start": np.full(len(path.q), np.inf)}
    program = replace(retimer.program_at(path, forces), **wide)
    rows, counts = forces.polygons(program)
    for i in POINTS:
        U, X = program.u_max[i], program.x_max[i]
        ways = np.column_stack([program.of_u[i], program.of_x[i]])
        for angle in np.linspace(0.0, 2.0 * np.pi, 12, endpoint=False):
            a, b = np.cos(angle) / U, np.sin(angle) / X
            polygon = rows[i, : counts[i]]
            inside = linprog([-a, -b], polygon[:, :2], polygon[:, 2], bounds=(None, None), method="highs")
            assert -inside.fun == pytest.approx(most(program, i, a, b, ways, [(-U, U), (0.0, X)]), abs=1e-5)


@pytest.mark.parametrize("case", ["feet", "grip", "weak"])
def test_the_part_of_a_motion_that_forces_allow(step, retimer, case):
    path, forces = forces_along(step, retimer, case)
    program = retimer.program_at(path, forces)
    rng = np.random.default_rng(7)
    x = program.x_max * rng.uniform(0.0, 3.0, len(path.q))
    u = program.u_max * rng.uniform(-3.0, 3.0, len(path.q))
    part = forces.reach(x, u)
    assert np.count_nonzero(part < 1.0) > 10
    for i in POINTS:
        ways = np.column_stack([program.of_u[i] * u[i] + program.of_x[i] * x[i], np.zeros(len(program.of_u[i]))])
        assert part[i] == pytest.approx(most(program, i, 1.0, 0.0, ways, [(0.0, 1.0), (0.0, 0.0)]), abs=1e-7)


@pytest.mark.parametrize("faces", [4, 16])
def test_pyramids_have_as_many_faces_as_the_controller_has(step, faces):
    settings = step.scenario.replace(control={"contact": {"friction_faces": faces}}).transition_settings
    path, _ = PathDynamics.pair(step.scenario.robot, step.segments[0])
    contacts = Retimer(step.scenario.robot, settings).forces(path, 1.0).of_contacts
    points = sum(len(block.contact.points) for block in contacts.blocks)
    rows, _ = contacts.face_rows()
    across = np.delete(rows, np.s_[2::3], axis=1)
    assert np.count_nonzero(np.abs(across).max(axis=1) > 1e-9) == points * faces


def test_a_retiming_failure_names_reason_and_place(step, retimer):
    path, forces = forces_along(step, retimer, "feet")
    program = retimer.program_at(path, forces)
    forces.limit[:] = 1e-3
    with pytest.raises(RetimingError, match=r"^\d+ % along it, no forces within the margins move the robot$"):
        forces.polygons(program)
    with pytest.raises(RetimingError, match=r"^\d+ % along it, no forces within the margins move the robot$"):
        forces.reach(program.x_max, program.u_max)
    _, forces = forces_along(step, retimer, "weak")
    still = np.abs(forces.hold[30, 6 + forces.limited])
    forces.limit[:] = np.where(forces.G[:, 6 + forces.limited].any(axis=(0, 2)), forces.limit, 0.9 * still)
    with pytest.raises(
        RetimingError, match=r"^\d+ % along it, standing still takes all that contacts and joints have$"
    ):
        forces.polygons(retimer.program_at(path, forces))


def test_a_motion_loads_contacts_by_what_is_counted_on_less_the_reserve_that_it_keeps(step, retimer):
    """Without a reserve by all of that, with all of it by the part of the pace, and halfway in between."""
    settings, pace = retimer.settings, retimer.pace
    contact = replace(step.stances[0].contacts[0], max_force=1500.0, max_moment=60.0)
    none, half, full = (with_pace_margins(contact, pace, settings, kept) for kept in (0.0, 0.5, 1.0))
    counted = with_control_margins(contact, settings)
    paced = {"friction": pace.friction, "max_force": pace.force, "max_moment": pace.force}
    for name, part in paced.items():
        assert getattr(none, name) == pytest.approx(getattr(counted, name))
        assert getattr(full, name) == pytest.approx(part * getattr(contact, name))
        assert getattr(half, name) == pytest.approx((getattr(none, name) + getattr(full, name)) / 2)
        assert getattr(full, name) < getattr(counted, name)
    np.testing.assert_allclose(none.points, counted.points, atol=1e-12)
    np.testing.assert_allclose(half.points, (none.points + full.points) / 2, atol=1e-12)
    sides = [np.abs(each.points - contact.points)[:, :2].max(axis=0) for each in (none, full)]
    np.testing.assert_allclose(
        sides, np.tile([[settings.contact.pressure_margin], [pace.pressure]], (1, 2)), atol=1e-12
    )
