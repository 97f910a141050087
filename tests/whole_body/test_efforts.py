"""Tasks on contact forces and torques."""

import numpy as np
import pytest

from mcplan.errors import InputError
from mcplan.optimize.compiled import compile_problem
from mcplan.whole_body.contact import ContactConstraint
from mcplan.whole_body.pool import ProblemPool
from mcplan.whole_body.settings import QPSettings
from mcplan.whole_body.tasks.forces import ContactForceTask, TorqueTask
from mcplan.whole_body.whole_body import WholeBodyQP
from tests.whole_body.conftest import contact_at, random_state, standing_tasks

SOLES = ("left_sole", "right_sole")


def contacts_of(state, *more):
    kinds = {"left_grip": "grasp", "left_hand": "surface"}
    return [
        ContactConstraint(contact_at(state.robot, p, state.q, kinds.get(p, "surface"), max_force=300, max_moment=20))
        if p in kinds
        else ContactConstraint(contact_at(state.robot, p, state.q))
        for p in (*SOLES, *more)
    ]


def solved(state, contacts, tasks, **settings):
    qp = WholeBodyQP(state.robot, contacts, tasks, QPSettings(**settings))
    qp.update(state.terms, contacts, tasks)
    s = qp.solve()
    assert s.ok, s.message
    assert s.residuals.stationarity < 1e-8
    return s


def turned(w, R):
    return np.r_[R.T @ w[:3], R.T @ w[3:]]


def test_normal_force_is_reached(standing):
    """The lean of the weights decides how closely; with a heavy weight the force is the reference."""
    contacts = contacts_of(standing, "left_hand")
    task = ContactForceTask("left_hand", components=(2,), weight=1.0)
    task.wrench[2] = 20.0
    s = solved(standing, contacts, [*standing_tasks(standing), task])
    assert s.wrenches["left_hand"] @ np.r_[contacts[2].axes[:, 2], 0, 0, 0] == pytest.approx(20, abs=0.1)


@pytest.mark.parametrize("axes", ["world", "contact", "patch"])
@pytest.mark.parametrize("patch", ["left_hand", "left_grip"])
def test_wrench_in_its_axes(standing, axes, patch):
    """All six components of a grasp, the force of a surface contact, in each of the axes."""
    random_state(standing, 0.2)
    contacts = contacts_of(standing, patch)
    grasp = patch == "left_grip"
    R = {
        "world": np.eye(3),
        "contact": standing.terms.frame(patch).R if grasp else contacts[2].axes,
        "patch": standing.terms.frame(patch).R,
    }[axes]
    task = ContactForceTask(patch, range(6) if grasp else range(3), axes, weight=1e3)
    inside = np.r_[30 * contacts[2].axes[:, 2] + 5 * contacts[2].axes[:, 0], np.full(3, 0.5)]
    task.wrench[:] = turned(inside, R)
    s = solved(standing, contacts, [*standing_tasks(standing), task])
    np.testing.assert_allclose(turned(s.wrenches[patch], R)[task.components], task.wrench[task.components], atol=0.02)


def test_a_wish_outside_the_cone_is_cut_at_the_cone(standing):
    contacts = contacts_of(standing, "left_hand")
    task = ContactForceTask("left_hand", weight=10.0)
    task.wrench[2] = -50.0
    s = solved(standing, contacts, [*standing_tasks(standing), task])
    assert np.linalg.norm(s.wrenches["left_hand"]) < 0.05


def test_force_on_a_patch_without_contact_is_refused(standing):
    contacts, task = contacts_of(standing), ContactForceTask("left_hand")
    qp = WholeBodyQP(standing.robot, contacts, [task])
    with pytest.raises(InputError, match="left_hand, which is not in contact: left_sole, right_sole"):
        qp.update(standing.terms, contacts, [task])
    with pytest.raises(ValueError, match="one of world, contact, patch"):
        ContactForceTask("left_hand", axes="link")


def test_torques_of_an_unconstrained_choice_are_the_smallest(standing):
    """The less the torques cost, the more they are; the minimiser does what no nearby solution does better."""
    norms = []
    for weight in (0.0, 1e-3, 1.0):
        task = TorqueTask(standing.robot.n, weight)
        s = solved(standing, contacts_of(standing, "left_grip"), [*standing_tasks(standing), task])
        norms.append(np.linalg.norm(s.tau))
    assert norms[0] > norms[1] > norms[2]


def test_torque_task_is_its_cost(standing):
    """The objective contains sum w (tau - tau*)², and a feasible reference is reached where nothing else pulls."""
    n = standing.robot.n
    contacts = contacts_of(standing)
    rest = solved(standing, contacts, standing_tasks(standing))
    task = TorqueTask(n, weight=np.linspace(1.0, 2.0, n))
    task.torque[:] = rest.tau + 0.1
    settings = {"force_weight": 1e-9, "acceleration_weight": 1e-9}
    s = solved(standing, contacts, [task], **settings)
    cost = task.weight @ (s.tau - task.torque) ** 2 + 1e-9 * s.vd @ s.vd
    cost += 1e-9 * sum(f @ f for f in s.unknowns.values())
    assert s.objective == pytest.approx(cost, rel=1e-6, abs=1e-9)
    np.testing.assert_allclose(s.tau, task.torque, atol=0.05)


def test_they_compile_and_share_problems(standing):
    """One structure whatever the patch and the axes; the compiled form finds the same minimum."""
    contacts = contacts_of(standing, "left_hand")
    tasks = [*standing_tasks(standing), ContactForceTask("left_hand", (2,)), TorqueTask(standing.robot.n)]
    pool = ProblemPool(standing.robot)
    qp = pool.get(contacts, tasks)
    assert pool.get(contacts, [*standing_tasks(standing), TorqueTask(standing.robot.n), tasks[-2]]) is qp
    assert pool.get(contacts, tasks[:-1]) is not qp
    compiled = compile_problem(qp.problem)
    for size in (0.1, 0.5):
        random_state(standing, size)
        tasks[-2].wrench[2] = 100 * size
        qp.update(standing.terms, contacts, tasks)
        s = qp.solve()
        qp.write_back()
        compiled.load()
        assert compiled.solve() == "optimal"
        assert compiled.objective == pytest.approx(qp.problem.value, rel=1e-7, abs=1e-7)
        np.testing.assert_allclose(compiled.value(qp.tau), s.tau, atol=1e-4)


def test_the_rows_of_each_force_task_stand_below_those_of_the_one_before(standing):
    """Of three tasks: as many rows as they have together, each weighted by its root, none written over."""
    contacts = contacts_of(standing, "left_hand")
    tasks = [
        ContactForceTask(patch, components=range(count), weight=weight)
        for patch, count, weight in (("left_hand", 3, 4.0), ("left_sole", 2, 1.0), ("right_sole", 1, 9.0))
    ]
    for task in tasks:
        task.wrench[:] = standing.rng.normal(size=6)
    everything = [*standing_tasks(standing), *tasks]
    qp = WholeBodyQP(standing.robot, contacts, everything)
    qp.update(standing.terms, contacts, everything)
    places = dict(zip([contact.patch for contact in qp.contacts], qp.structure.slices(), strict=True))
    A, b, row = qp.data["force_task_matrix"], qp.data["force_task_target"], 0
    for task in tasks:
        contact = next(contact for contact in contacts if contact.patch == task.patch)
        own, target = task.rows(standing.terms, contact)
        block = slice(row, row + len(target))
        wanted = np.zeros((len(target), A.shape[1]))
        wanted[:, places[task.patch]] = np.sqrt(task.weight) * own
        np.testing.assert_allclose(A[block], wanted, atol=1e-12)
        np.testing.assert_allclose(b[block], np.sqrt(task.weight) * target, atol=1e-12)
        row += len(target)
    assert row == len(b) == 6
