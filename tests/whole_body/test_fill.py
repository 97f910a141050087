"""The kernels fill in and check what the tasks' and contacts' own rows say."""

from dataclasses import replace
from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest

from mcplan.core.algebra import joint_bounds, rotation as rotation_error
from mcplan.core.whole_body import check as qp_answer, contacts as qp_contacts, fill as qp_fill, tasks as qp_tasks
from mcplan.scene.contact import ball_selection
from mcplan.whole_body import tables as fast_form
from mcplan.whole_body.contact import ContactConstraint
from mcplan.whole_body.settings import QPSettings
from mcplan.whole_body.solution import Solution
from mcplan.whole_body.tasks.com import ComTask
from mcplan.whole_body.tasks.pose import LinkPoseTask
from mcplan.whole_body.tasks.posture import PostureTask
from mcplan.whole_body.whole_body import WholeBodyQP
from tests.whole_body import reference
from tests.whole_body.conftest import contact_at, random_state, standing_tasks

SOLES = ("left_sole", "right_sole")
SLIDE = np.delete(np.eye(6), 0, axis=0)
KERNELS = (
    qp_fill.fill, qp_tasks.fill_task, qp_contacts.fill_contact, qp_answer.check_solution, rotation_error.rotation_error,
    rotation_error.rotation_error_rate,
    joint_bounds.viable_acceleration,
)  # fmt: skip


def contacts_of(state, kinds):
    """Soles, a sliding sole, a point, a ball, a grasp with a free direction, at places a little off those of now."""
    hand = contact_at(state.robot, "right_hand", state.q, "point", friction=0.4)
    made = {
        "ball": [replace(hand, radius=0.03, selection=ball_selection(0.03), points=np.array([[0, 0, 0.03]]))],
        "soles": [contact_at(state.robot, patch, state.q) for patch in SOLES],
        "slide": [contact_at(state.robot, "left_sole", state.q, selection=SLIDE)],
        "point": [hand],
        "grasp": [
            contact_at(state.robot, "left_grip", state.q, "grasp", selection=SLIDE, max_force=300.0, max_moment=20.0)
        ],
    }
    contacts = [ContactConstraint(c, faces=4 if kind == "slide" else 8) for kind in kinds for c in made[kind]]
    for c in contacts:
        c.kp, c.kd = 100 * state.rng.uniform(size=6), 20 * state.rng.uniform(size=6)
        c.p += 0.01 * state.rng.normal(size=3)
        c.R = state.robot.frame_pose(state.robot.integrate(state.q, 0.1 * state.v, 1.0), c.patch)[:3, :3]
        c.min_force, c.max_force = 20.0 * (not c.shape.grasp), 500.0 * state.rng.uniform()
    return contacts


def tasks_of(state):
    """One task of each kind, all of its numbers at random."""
    swing, upright = LinkPoseTask("right_hand"), LinkPoseTask("BODY", position=False)
    tasks = [*standing_tasks(state), swing, upright, LinkPoseTask("left_hand", orientation=False), ComTask(axes=(2, 0))]
    for task in tasks:
        task.values[:] = state.rng.uniform(size=task.values.shape)
        if isinstance(task, LinkPoseTask):
            task.R = state.terms.frame("left_grip").R
    return tasks


KINDS = [(), ("soles",), ("slide", "point"), ("slide", "ball"), ("soles", "grasp"), ("grasp",)]


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("compiled", [True, False])
def test_parameters_are_those_of_the_rows(standing, kinds, compiled):
    standing.rng = np.random.default_rng(len(kinds))
    random_state(standing)
    contacts, tasks = contacts_of(standing, kinds), tasks_of(standing)
    for contact in contacts:
        contact.preload = standing.rng.uniform(0.0, 20.0)
    settings = QPSettings(
        compiled=compiled, force_weight=0.2, force_rate_weight=0.3, wrench_weight=(1, 2, 3, 4, 5, 6),
        wrench_frame={"left_sole": "BODY", "left_grip": "left_hand"}, position_limits=compiled,
    )  # fmt: skip
    qp = WholeBodyQP(standing.robot, contacts, tasks, settings)
    push = standing.rng.normal(size=standing.robot.nv)
    previous = {c.patch: standing.rng.normal(size=c.shape.unknowns) for c in contacts[1:]}
    planned = {c.patch: standing.rng.normal(size=c.shape.unknowns) for c in contacts[:-1]}
    qp.update(standing.terms, contacts, tasks, push, previous, planned=planned)
    expected = reference.parameters(qp, standing.terms, tasks, push, previous, planned)
    assert expected.keys() == qp.data.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(qp.data[name], value, rtol=1e-11, atol=1e-11, err_msg=name)
        assert np.shares_memory(qp.parameters[name].value, qp.data[name])


def test_the_check_finds_what_the_rows_say(standing):
    """At points that solve nothing, row by row in force."""
    random_state(standing)
    contacts, tasks = contacts_of(standing, ("soles", "grasp", "point")), standing_tasks(standing)
    contacts[0] = contacts_of(standing, ("slide",))[0]
    qp = WholeBodyQP(standing.robot, contacts, tasks)
    qp.update(standing.terms, contacts, tasks)
    rng, d = standing.rng, qp.declaration
    for size in (0.0, 1.0, 100.0):
        for _ in range(20):
            vd, tau, f = (size * rng.normal(size=n) for n in (d.structure.nv, d.structure.n, d.unknowns))
            answer = Solution.checked(qp._tables, vd, tau, f, 0.0)
            expected = reference.residuals(d, qp.data, vd, tau, f)
            np.testing.assert_allclose((answer.motion, answer.contact, answer.inequality), expected, rtol=1e-10)
            forces, wrenches, unknowns = answer.forces, answer.wrenches, answer.unknowns
            for c in contacts:
                mine = unknowns[c.patch]
                np.testing.assert_allclose(wrenches[c.patch], c.wrench_map(standing.terms) @ mine, atol=1e-10)
                np.testing.assert_allclose(forces[c.patch], c.point_forces(standing.terms, mine), atol=1e-10)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_check_finds_a_torque_beyond_its_limit_on_either_side(standing, sign):
    """Where nothing else is missed by more: no force, no acceleration."""
    contacts, tasks = contacts_of(standing, ("soles",)), standing_tasks(standing)
    qp = WholeBodyQP(standing.robot, contacts, tasks)
    qp.update(standing.terms, contacts, tasks)
    structure, tau = qp.declaration.structure, np.zeros(standing.robot.n)
    tau[3] = sign * (standing.robot.limits.torque[3] + 70.0)
    answer = Solution.checked(qp._tables, np.zeros(structure.nv), tau, np.zeros(qp.declaration.unknowns), 0.0)
    assert answer.inequality == pytest.approx(70.0, abs=1e-3)


def test_a_point_that_is_not_a_number_is_wrong(standing):
    contacts, tasks = contacts_of(standing, ("soles",)), standing_tasks(standing)
    qp = WholeBodyQP(standing.robot, contacts, tasks)
    qp.update(standing.terms, contacts, tasks)
    s = qp.solve()
    f = np.concatenate([s.unknowns[c.patch] for c in qp.contacts])
    for part in (s.vd, s.tau, f):
        assert not Solution.checked(qp._tables, s.vd, s.tau, f, 0.0).is_wrong(1e-6)
        kept, part[-1] = part[-1], np.nan
        assert Solution.checked(qp._tables, s.vd, s.tau, f, 0.0).is_wrong(1e-6)
        part[-1] = kept


@pytest.mark.parametrize("kinds", [("soles",), ("soles", "grasp"), ("slide", "point")])
def test_compiled_and_plain_are_the_same(standing, kinds):
    contacts, tasks = contacts_of(standing, kinds), standing_tasks(standing, (0.01, 0.02, 0))
    forms = [WholeBodyQP(standing.robot, contacts, tasks, QPSettings(compiled=c)) for c in (True, False)]
    answers = []
    for c in contacts:
        c.min_force, c.max_force = 0.0, np.inf
    for _ in range(5):
        random_state(standing, 0.4)
        for c in contacts:
            frame = standing.terms.frame(c.patch)
            c.R, c.p = frame.R, frame.p
        answers = []
        for qp in forms:
            qp.update(standing.terms, contacts, tasks)
            answers.append(qp.solve())
        one, other = answers
        assert one.status == other.status
        if one.ok:
            assert one.objective == pytest.approx(other.objective, rel=1e-8)
            np.testing.assert_allclose(one.vd, other.vd, atol=1e-8 * max(1.0, np.max(np.abs(one.vd))))
            np.testing.assert_allclose(one.tau, other.tau, atol=1e-6)
            assert one.residuals.stationarity < 1e-8


def test_a_users_task_needs_nothing_but_its_rows(standing):
    """Classes that only have the members of the protocol give what the library's tasks give."""
    random_state(standing)
    contacts, own = contacts_of(standing, ("soles",)), standing_tasks(standing, (0.02, 0, 0))
    theirs = [
        SimpleNamespace(
            weight=task.weight.copy(), dimension=task.dimension, key=task.key, diagonal=task.diagonal,
            frames=task.frames, rows=task.rows,
        )
        for task in own
    ]  # fmt: skip
    answers = []
    for tasks in (own, theirs, [*theirs[:2], *own[2:]]):
        qp = WholeBodyQP(standing.robot, contacts, tasks)
        for _ in range(2):
            qp.update(standing.terms, contacts, tasks)
            answers.append(qp.solve())
    for s in answers:
        assert s.status == answers[0].status
        assert s.objective == pytest.approx(answers[0].objective, rel=1e-9)
        np.testing.assert_allclose(s.vd, answers[0].vd, atol=1e-8)


def test_tables_follow_other_contacts_and_tasks_of_the_same_structure(standing):
    left, right = contacts_of(standing, ("soles",))
    tasks = standing_tasks(standing)
    qp = WholeBodyQP(standing.robot, [left], tasks)
    for contact, posture in ((left, 0.0), (right, 0.0), (right, 0.3), (left, 0.0)):
        present = [tasks[0], PostureTask(standing.q[7:] + posture), *tasks[2:]]
        qp.update(standing.terms, [contact], present)
        expected = reference.parameters(qp, standing.terms, present)
        for name, value in expected.items():
            np.testing.assert_allclose(qp.data[name], value, rtol=1e-11, atol=1e-11, err_msg=name)


def test_slots_take_assignments_in_place_or_whole(standing):
    task = ComTask(weight=3.0, kp=16.0)
    values = task.values
    task.position, task.weight = [1.0, 2.0, 3.0], (4, 5, 6)
    task.velocity[1] = 7.0
    assert task.values is values
    np.testing.assert_array_equal(values, [16] * 3 + [8] * 3 + [1, 2, 3] + [0, 7, 0] + [0] * 3 + [4, 5, 6])
    contact = contacts_of(standing, ("soles",))[0]
    contact.max_force = 12.0
    assert type(contact.max_force) is float
    assert contact.limit == 12.0
    with pytest.raises(ValueError, match="broadcast"):
        task.position = np.zeros(4)


def test_what_cannot_be_compiled_says_so_and_is_solved_by_cvxpy(standing, monkeypatch):
    contacts, tasks = contacts_of(standing, ("soles",)), standing_tasks(standing)

    def refuse(_):
        raise fast_form.CannotCompile("of a test")

    monkeypatch.setattr(fast_form, "compile_problem", refuse)
    with pytest.warns(RuntimeWarning, match="cannot be compiled: of a test"):
        qp = WholeBodyQP(standing.robot, contacts, tasks)
    assert qp.fast is None
    qp.update(standing.terms, contacts, tasks)
    s = qp.solve()
    assert qp.problem.value == pytest.approx(s.objective - qp._constant)


def test_users_parameters_in_reduced_form_reach_the_compiled_program(standing):
    """A symmetric parameter is stored otherwise by CVXPY; its value counts at each solve."""
    contacts, tasks = contacts_of(standing, ("soles",)), standing_tasks(standing)
    S = cp.Parameter((2, 2), symmetric=True, value=np.zeros((2, 2)))

    def extra(qp):
        return [], [qp.tau[:2] + S @ qp.vd[6:8] == 1.0]

    qp = WholeBodyQP(standing.robot, contacts, tasks, extra=extra)
    qp.update(standing.terms, contacts, tasks)
    for value in (np.zeros((2, 2)), np.array([[1.0, 0.3], [0.3, 2.0]])):
        S.value = value
        s = qp.solve()
        assert s.ok, s.message
        assert qp.fast.compiled.fallbacks == 0
        np.testing.assert_allclose(s.tau[:2] + value @ s.vd[6:8], 1.0, atol=1e-9)


def test_one_signature_per_kernel(standing):
    for kinds in (("soles",), ("slide", "grasp")):
        contacts, tasks = contacts_of(standing, kinds), tasks_of(standing)
        qp = WholeBodyQP(standing.robot, contacts, tasks)
        qp.update(standing.terms, contacts, tasks)
        qp.solve()
    for kernel in KERNELS:
        assert len(getattr(kernel, "signatures", [None])) <= 1, kernel
