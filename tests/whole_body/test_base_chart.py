"""S0's forms of the program have the optimum of the one in mixed velocities."""

import numpy as np
import pytest

from mcplan.errors import InputError, SimulationFailed
from mcplan.robot.system import FreeBody, System
from mcplan.whole_body.contact import ContactConstraint
from mcplan.whole_body.settings import FORMS, QPSettings
from mcplan.whole_body.whole_body import WholeBodyQP
from tests.whole_body.conftest import contact_at, random_state, standing_tasks

CHARTS = FORMS[1:]


def both(state, form, patches, push=None, **settings):
    """Solutions of the mixed form and of another at one state."""
    contacts = [ContactConstraint(contact_at(state.robot, p, state.q)) for p in patches]
    tasks = standing_tasks(state, (0.02, 0.04, -0.01))
    found = []
    for name in ("mixed", form):
        qp = WholeBodyQP(state.robot, contacts, tasks, QPSettings(form=name, compiled=False, **settings))
        qp.update(state.terms, contacts, tasks, tau_ext=push)
        found.append(qp.solve())
    return found


@pytest.mark.parametrize("form", CHARTS)
@pytest.mark.parametrize("patches", [(), ("left_sole",), ("left_sole", "right_sole", "right_hand")])
def test_every_form_has_the_same_optimum(standing, form, patches):
    standing.rng = np.random.default_rng(len(patches))
    random_state(standing, 1.0)
    push = standing.rng.normal(size=standing.robot.nv)
    mixed, other = both(standing, form, patches, push)
    assert mixed.ok, mixed.message
    assert other.ok, other.message
    assert other.objective == pytest.approx(mixed.objective, rel=1e-9)
    np.testing.assert_allclose(other.vd, mixed.vd, atol=1e-8)
    np.testing.assert_allclose(other.tau, mixed.tau, atol=1e-6)


def test_a_push_changes_the_optimum(standing):
    push = np.r_[0.0, 40.0, np.zeros(standing.robot.nv - 2)]
    calm, pushed = (both(standing, "projected", ("left_sole",), tau_ext)[1] for tau_ext in (None, push))
    assert np.max(np.abs(calm.tau - pushed.tau)) > 1.0


@pytest.mark.parametrize("form", CHARTS)
def test_a_failure_is_explained_in_every_form(standing, form):
    """800 N upwards on a robot that must not move: the foot has to pull."""
    contacts = [ContactConstraint(contact_at(standing.robot, "left_sole", standing.q))]
    tasks = standing_tasks(standing)
    lift = standing.terms.frame("BODY").J.T @ np.r_[0, 0, 800.0, 0, 0, 0]
    qp = WholeBodyQP(standing.robot, contacts, tasks, QPSettings(form=form), lambda qp: ([], [qp.vd == 0]))
    qp.update(standing.terms, contacts, tasks, lift)
    answer = qp.solve()
    assert answer.status == 1
    assert any(c.name.startswith("unilateral force at") for c in answer.conflicts), answer.message


def test_roll_pitch_and_yaw_end_at_a_steep_pitch_and_the_quaternion_does_not(standing):
    q = standing.q.copy()
    q[3:7] = np.cos(0.25 * np.pi), 0.0, np.sin(0.25 * np.pi), 0.0
    standing.q = q
    standing.terms.update(q, standing.v)
    assert both(standing, "projected", ())[1].ok
    with pytest.raises(SimulationFailed, match=r"pitch = 1\.5708, .* rad from a singularity"):
        both(standing, "minimal", ())


def test_an_unknown_form_is_refused():
    with pytest.raises(InputError, match="form 'euler': one of mixed, minimal, projected, multiplier, matrix"):
        QPSettings(form="euler")


def test_a_system_with_free_objects_is_refused(standing):
    tasks = standing_tasks(standing)
    system = System(standing.robot, (FreeBody("box", 1.0, np.zeros(3), np.eye(3)),))
    with pytest.raises(InputError, match="does not support free objects; use 'mixed'"):
        WholeBodyQP(system, [], tasks, QPSettings(form="projected"))
