"""MuJoCo as an independent judge: same robot, same forces, same motion."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.certificate.object_checks import _balance
from mcplan.certificate.tolerances import EXACT
from mcplan.errors import InputError
from mcplan.record.records import BodyRecord
from mcplan.record.world import closing_grasp
from mcplan.robot.description import Box, Capsule, Cylinder, MeshShape, Sphere
from mcplan.robot.robot_file import load_robot
from mcplan.scene.environment import Bar, Environment, FreeObject, Obstacle, Surface
from mcplan.scene.placement import make_contact
from mcplan.settings.simulation import SimulationSettings
from mcplan.sim.contact.pack import pack_scene
from mcplan.sim.mujoco.physics import MujocoPhysics
from mcplan.sim.mujoco.shapes import RECESS_M, recede, slab
from mcplan.sim.physics import Action

ROBOT = load_robot("hrp2")
SOLES = ("left_sole", "right_sole")
SQUARE = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
FLOOR = Surface("floor", np.eye(3), np.zeros(3), SQUARE, friction=0.7)
DT = 0.001


def action(tau=None, active=()):
    return Action(np.zeros(ROBOT.n) if tau is None else tau, np.zeros(ROBOT.nv), {}, {}, tuple(active))


def servo(physics, q, active=SOLES, stiffness=500.0, damping=20.0):
    tau = stiffness * (q[7:] - physics.q[7:]) - damping * physics.v[6:]
    return action(np.clip(tau, -ROBOT.limits.torque, ROBOT.limits.torque), active)


def residual(q, v, outcome, tau):
    """``M vd + h - S' tau - sum J' w - tau_ext``."""
    left = ROBOT.mass_matrix(q) @ outcome.vd + ROBOT.nonlinear_effects(q, v) - outcome.tau_ext
    left[6:] -= tau
    for patch, wrench in outcome.wrenches.items():
        left -= ROBOT.frame_jacobian(q, patch).T @ wrench
    return np.abs(left).max()


def finger(name, y, more=""):
    return f"""<joint name="{name}" type="revolute"><origin xyz="0.05 {y} 0.1" rpy="0.1 0.2 {y}"/><axis xyz="1 0 0"/>
      <parent link="palm"/><child link="{name}_link"/>{more}
      <limit lower="-1" upper="1" velocity="4" effort="5"/></joint>
      <link name="{name}_link"><inertial><origin xyz="0 0.01 0.03"/><mass value="0.2"/>
      <inertia ixx="4e-4" iyy="3e-4" izz="2e-4" ixy="0" ixz="0" iyz="2e-5"/></inertial></link>"""


GRIPPER = (
    '<robot name="gripper"><link name="palm"><inertial><mass value="1"/>'
    '<inertia ixx="0.004" iyy="0.003" izz="0.002" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    # the second finger comes before the one that it follows
    + finger("right", -0.04, '<mimic joint="left" multiplier="-1.5" offset="0.2"/>')
    + finger("left", 0.04)
    + finger("thumb", 0.0)
    + "</robot>"
)


def moving_state(seed=0):
    rng = np.random.default_rng(seed)
    q = ROBOT.random_configuration(rng)
    q[7:] = ROBOT.posture("half_sitting")[7:] + 0.1 * rng.normal(size=ROBOT.n)
    q[2] = 5.0
    return q, rng.normal(size=ROBOT.nv)


def test_in_the_air_it_moves_as_forward_dynamics_say():
    q, v = moving_state()
    physics = MujocoPhysics(ROBOT, Environment(), q, v)
    tau = np.random.default_rng(1).uniform(-5, 5, ROBOT.n)
    outcome = physics.step(action(tau), DT)
    force = np.concatenate([np.zeros(6), tau])
    np.testing.assert_allclose(outcome.vd, ROBOT.forward_dynamics(q, v, force), rtol=1e-9, atol=1e-8)
    assert not outcome.active
    assert len(outcome.forces.link) == 0


def test_equation_of_motion_and_integration_hold_through_a_hard_landing():
    q0 = ROBOT.posture("half_sitting")
    q0[2] += 0.02
    physics = MujocoPhysics(ROBOT, Environment((FLOOR,)), q0, patches=SOLES)
    worst, carried = 0.0, 0.0
    for _ in range(400):
        q, v = physics.q, physics.v
        command = servo(physics, q0)
        outcome = physics.step(command, DT)
        worst = max(worst, residual(q, v, outcome, command.tau))
        np.testing.assert_allclose(physics.v, v + DT * outcome.vd, atol=1e-12)
        np.testing.assert_allclose(physics.q, ROBOT.integrate(q, physics.v, DT), atol=1e-12)
        carried = sum(w[2] for w in outcome.wrenches.values())
    assert worst < 1e-8
    assert set(outcome.active) == set(SOLES)
    assert carried == pytest.approx(ROBOT.mass * 9.81, rel=0.02)


def test_forces_are_at_the_soles_corners_inside_the_cone_and_add_up_to_the_wrenches():
    q0 = ROBOT.posture("half_sitting")
    physics = MujocoPhysics(ROBOT, Environment((FLOOR,)), q0, patches=SOLES)
    for _ in range(50):
        q = physics.q
        outcome = physics.step(servo(physics, q0), DT)
    points = outcome.forces
    for index, patch in enumerate(SOLES):
        X, mine = ROBOT.frame_pose(q, patch), points.patch == index
        local = (points.xyz[mine] - X[:3, 3]) @ X[:3, :3]
        corners = ROBOT.patches[patch].points
        assert max(np.linalg.norm(corners - x, axis=1).min() for x in local) < 1e-3
        force, arm = points.force[mine], points.xyz[mine] - X[:3, 3]
        wrench = np.concatenate([force.sum(axis=0), np.cross(arm, force).sum(axis=0)])
        np.testing.assert_allclose(outcome.wrenches[patch], wrench, atol=1e-9)
        assert {ROBOT.link_names[i] for i in points.link[mine]} == {ROBOT.patches[patch].link}
    np.testing.assert_allclose(points.normal, np.tile([0, 0, 1.0], (len(points.link), 1)), atol=1e-3)
    fn = np.sum(points.force * points.normal, axis=1)
    ft = np.linalg.norm(points.force - fn[:, None] * points.normal, axis=1)
    assert np.all(ft <= 0.7 * fn + 1e-9)


def test_what_no_patch_touches_is_unplanned_and_counted_outside():
    post = Obstacle("post", Box((0.2, 2.0, 2.0)), np.eye(3), np.array([0.3, 0.0, 1.0]))
    q0 = ROBOT.posture("half_sitting")
    v = np.zeros(ROBOT.nv)
    v[0] = 0.5
    physics = MujocoPhysics(ROBOT, Environment((FLOOR,), obstacles=(post,)), q0, v, SOLES)
    strays, worst = 0, 0.0
    for _ in range(300):
        q, v = physics.q, physics.v
        command = servo(physics, q0)
        outcome = physics.step(command, DT)
        strays += np.count_nonzero(outcome.forces.patch < 0)
        worst = max(worst, residual(q, v, outcome, command.tau))
    assert strays
    assert worst < 1e-7


def test_a_robot_without_patches_touches_all_the_same():
    physics = MujocoPhysics(ROBOT, Environment((FLOOR,)), ROBOT.posture("half_sitting"))
    for _ in range(20):
        outcome = physics.step(action(), DT)
    assert len(outcome.forces.patch) > 0
    assert np.all(outcome.forces.patch == -1)
    assert not outcome.wrenches
    assert outcome.tau_ext[2] > 0.0


def test_a_joint_driven_into_its_limit_is_stopped_by_a_force_from_outside():
    q0 = ROBOT.neutral()
    q0[2] = 5.0
    physics, worst, tau = MujocoPhysics(ROBOT, Environment(), q0), 0.0, np.zeros(ROBOT.n)
    knee = ROBOT.joint_names.index("RLEG_JOINT3")
    tau[knee] = -60.0
    for _ in range(400):
        q, v = physics.q, physics.v
        outcome = physics.step(action(tau), DT)
        worst = max(worst, residual(q, v, outcome, tau))
    assert physics.q[7 + knee] > ROBOT.limits.lower[knee] - 0.02
    assert outcome.tau_ext[6 + knee] > 10.0
    assert worst < 1e-8


def test_a_torque_beyond_the_motor_is_cut():
    q0 = ROBOT.neutral()
    q0[2] = 5.0
    big, full = (MujocoPhysics(ROBOT, Environment(), q0) for _ in range(2))
    limit = ROBOT.limits.torque
    cut, given = big.step(action(3 * limit), DT), full.step(action(limit), DT)
    np.testing.assert_array_equal(cut.vd, given.vd)
    np.testing.assert_allclose(cut.tau_ext - given.tau_ext, np.r_[np.zeros(6), -2 * limit], atol=1e-9)
    assert residual(q0, np.zeros(ROBOT.nv), cut, 3 * limit) < 1e-8


def test_the_same_torques_give_the_same_motion_to_the_bit():
    q0 = ROBOT.posture("half_sitting")
    first, second = (MujocoPhysics(ROBOT, Environment((FLOOR,)), q0, patches=SOLES) for _ in range(2))
    for _ in range(100):
        a, b = first.step(servo(first, q0), DT), second.step(servo(second, q0), DT)
    np.testing.assert_array_equal(first.q, second.q)
    np.testing.assert_array_equal(a.forces.force, b.forces.force)


def at_a_bar():
    q0 = ROBOT.posture("half_sitting")
    X = ROBOT.frame_pose(q0, "right_grip")
    bar = Bar("bar", X[:3, 3] + 0.06 * np.outer([-1.0, 1.0], X[:3, 1]), 0.015)
    return q0, X, bar


def test_a_grip_at_a_bar_holds_and_says_with_what():
    q0, X, bar = at_a_bar()
    patches = (*SOLES, "right_grip")
    physics = MujocoPhysics(ROBOT, Environment((FLOOR,), (bar,)), q0, patches=patches)
    worst = 0.0
    for _ in range(20):
        q, v = physics.q, physics.v
        command = servo(physics, q0, patches)
        outcome = physics.step(command, DT)
        worst = max(worst, residual(q, v, outcome, command.tau))
    assert worst < 1e-8
    assert set(outcome.active) == set(patches)
    # the legs, held by soft servos, yield under the weight: the bar carries some of it
    assert outcome.wrenches["right_grip"][2] > 50.0
    mine = outcome.forces.patch == patches.index("right_grip")
    np.testing.assert_allclose(outcome.forces.force[mine], outcome.wrenches["right_grip"][None, :3])
    np.testing.assert_allclose(outcome.forces.xyz[mine], X[None, :3, 3], atol=1e-3)
    np.testing.assert_allclose(ROBOT.frame_pose(physics.q, "right_grip"), X, atol=1e-3)
    assert "right_grip" not in physics.step(servo(physics, q0, SOLES), DT).wrenches


def hanging(*held):
    """What a grip does that holds these directions while its arm is driven: turn (3,), force and moment, patch axes."""
    q0, X, bar = at_a_bar()
    patches = (*SOLES, "right_grip")
    near = X[:3, :3], X[:3, 3]
    contact = make_contact(ROBOT, Environment(bars=(bar,)), {"patch": "right_grip", "surface": "bar"}, near)
    contact = replace(contact, selection=np.eye(6)[list(held)])
    physics = MujocoPhysics(ROBOT, Environment((FLOOR,), (bar,)), q0, None, patches, (contact,))
    worst, twist = 0.0, np.zeros(ROBOT.n)
    twist[[name.startswith("RARM") for name in ROBOT.joint_names]] = 2.0
    for _ in range(25):
        q, v = physics.q, physics.v
        command = servo(physics, q0, patches)
        outcome = physics.step(command._replace(tau=command.tau + twist), DT)
        worst = max(worst, residual(q, v, outcome, command.tau + twist))
    assert worst < 1e-8
    Y, wrench = ROBOT.frame_pose(physics.q, "right_grip"), outcome.wrenches["right_grip"]
    np.testing.assert_allclose(Y[:3, 3], X[:3, 3], atol=1e-3)
    turn = Rotation.from_matrix(X[:3, :3].T @ Y[:3, :3]).as_rotvec()
    return turn, Y[:3, :3].T @ wrench[:3], Y[:3, :3].T @ wrench[3:]


def test_a_grip_turns_about_the_axes_that_its_contact_leaves_free():
    fixed, _, moment = hanging(0, 1, 2, 3, 4, 5)
    assert np.abs(moment).min() > 0.1
    hinged, _, moment = hanging(0, 1, 2, 3, 5)
    assert abs(moment[1]) < 0.02 * np.linalg.norm(moment)
    assert abs(hinged[1]) > 3 * abs(fixed[1])
    loose, force, moment = hanging(0, 1, 2)
    assert np.linalg.norm(moment) < 1e-3 * np.linalg.norm(force)
    assert np.linalg.norm(loose) > np.linalg.norm(hinged)


def test_a_grip_that_slides_is_refused():
    q0, X, bar = at_a_bar()
    contact = make_contact(
        ROBOT, Environment(bars=(bar,)), {"patch": "right_grip", "surface": "bar"}, (X[:3, :3], X[:3, 3])
    )
    contact = replace(contact, selection=np.eye(6)[[0, 2, 3, 4, 5]])
    with pytest.raises(InputError, match="right_grip on bar slides"):
        MujocoPhysics(ROBOT, Environment(bars=(bar,)), q0, contacts=(contact,))


def test_a_contact_may_have_another_friction_than_its_support():
    floor = Environment(surfaces=(Surface("floor", size=(2, 2), friction=0.7),))
    places = (("left_sole", 0.1), ("right_sole", -0.1))
    soles = [make_contact(ROBOT, floor, {"patch": n, "surface": "floor", "x": 0, "y": y, "yaw": 0}) for n, y in places]
    own = replace(soles[0], friction=0.2, options={**soles[0].options, "friction": 0.2})
    model = MujocoPhysics(ROBOT, floor, ROBOT.posture("half_sitting"), contacts=(own, soles[1])).model
    assert model.npair == 1
    assert {model.geom(int(i)).name for i in (model.pair_geom1[0], model.pair_geom2[0])} == {
        "world:floor", f"patch:{own.patch}",
    }  # fmt: skip
    np.testing.assert_allclose(model.pair_friction[0, :2], 0.2)


@pytest.mark.parametrize("order", [(0.2, None, 0.4), (0.4, 0.2, None), (None, 0.4, 0.2)])
def test_of_several_contacts_of_a_patch_on_a_support_the_least_friction_counts_in_both(order):
    floor = Environment(surfaces=(Surface("floor", size=(2, 2), friction=0.7),))
    place = {"patch": "left_sole", "surface": "floor", "x": 0, "y": 0.1, "yaw": 0}
    options = [{} if friction is None else {"friction": friction} for friction in order]
    contacts = [make_contact(ROBOT, floor, place | own) for own in options]
    q = ROBOT.posture("half_sitting")
    np.testing.assert_allclose(MujocoPhysics(ROBOT, floor, q, contacts=contacts).model.pair_friction[:, 0], [0.2])
    scene = pack_scene(ROBOT, floor, SOLES, SimulationSettings(), q, contacts)
    np.testing.assert_array_equal(scene.friction[:, 0], [0.2, 0.7])


def test_a_grip_closes_in_the_nearest_of_its_contacts_and_there_in_the_weakest():
    _, X, bar = at_a_bar()
    contact = make_contact(
        ROBOT, Environment(bars=(bar,)), {"patch": "right_grip", "surface": "bar"}, (X[:3, :3], X[:3, 3])
    )
    weak, far = replace(contact, max_force=10.0), replace(contact, max_force=1.0, p=contact.p + 0.1)
    assert closing_grasp([contact, weak, far], contact.p) is closing_grasp([far, weak, contact], contact.p) is weak
    assert closing_grasp([], contact.p) is None


def hold_of(*contacts):
    """Whether a grip from which the whole robot hangs still holds, step by step."""
    q0, _, bar = at_a_bar()
    physics = MujocoPhysics(ROBOT, Environment(bars=(bar,)), q0, None, ("right_grip",), contacts)
    return [bool(physics.step(servo(physics, q0, ("right_grip",)), DT).wrenches) for _ in range(200)]


def test_a_grip_lets_go_when_the_pull_is_beyond_what_it_can_hold():
    held = hold_of()
    assert held[0]
    assert not held[-1]


def test_a_grip_holds_as_much_as_its_contact_says_and_not_as_much_as_others_of_its_patch():
    _, X, bar = at_a_bar()
    contact = make_contact(
        ROBOT, Environment(bars=(bar,)), {"patch": "right_grip", "surface": "bar"}, (X[:3, :3], X[:3, 3])
    )
    strong = replace(contact, max_force=1e5, max_moment=1e5)
    weak_elsewhere = replace(contact, p=contact.p + np.array([0.0, 0.3, 0.0]), max_force=1.0)
    assert all(hold_of(weak_elsewhere, strong))
    assert not hold_of(replace(strong, max_force=1.0))[-1]
    assert not hold_of(replace(strong, max_moment=0.1))[-1]


def test_a_jerk_of_a_step_does_not_open_a_grip_and_a_pull_does():
    """The mean over an impact counts, as it does for the certificate."""
    q0, X, bar = at_a_bar()
    patches = (*SOLES, "right_grip")
    contact = make_contact(
        ROBOT, Environment(bars=(bar,)), {"patch": "right_grip", "surface": "bar"}, (X[:3, :3], X[:3, 3])
    )
    contact = replace(contact, max_force=300.0, max_moment=1e3)

    def pulled(steps, force=1500.0):
        physics = MujocoPhysics(ROBOT, Environment((FLOOR,), (bar,)), q0, None, patches, (contact,))
        most = 0.0
        for step in range(60):
            act = servo(physics, q0, patches)
            if 20 <= step < 20 + steps:
                pull = ROBOT.frame_jacobian(physics.q, "right_grip")[:3].T @ [0.0, 0.0, -force]
                act = act._replace(external=pull)
            wrenches = physics.step(act, DT).wrenches
            most = max(most, float(np.linalg.norm(wrenches.get("right_grip", np.zeros(6))[:3])))
        return most, "right_grip" in wrenches

    most, holds = pulled(1)
    assert most > 600.0
    assert holds
    assert not pulled(10)[1]


def test_a_grip_closes_again_after_a_reset():
    q0, _, bar = at_a_bar()
    patches = (*SOLES, "right_grip")
    physics = MujocoPhysics(ROBOT, Environment((FLOOR,), (bar,)), q0, patches=patches)
    first = physics.step(servo(physics, q0, patches), DT)
    physics.reset(q0)
    again = physics.step(servo(physics, q0, patches), DT)
    assert np.linalg.norm(first.wrenches["right_grip"]) > 1.0
    np.testing.assert_allclose(again.wrenches["right_grip"], first.wrenches["right_grip"], rtol=1e-6)


def test_a_grip_that_was_lost_holds_again_after_a_reset():
    q0, _, bar = at_a_bar()
    physics = MujocoPhysics(ROBOT, Environment(bars=(bar,)), q0, None, ("right_grip",))
    held = [physics.step(servo(physics, q0, ("right_grip",)), DT).wrenches for _ in range(200)]
    assert not held[-1]
    physics.reset(q0)
    assert physics.step(servo(physics, q0, ("right_grip",)), DT).wrenches


def test_a_grip_without_a_bar_holds_nothing():
    q0 = ROBOT.posture("half_sitting")
    physics = MujocoPhysics(ROBOT, Environment((FLOOR,)), q0, patches=(*SOLES, "right_grip"))
    outcome = physics.step(servo(physics, q0, (*SOLES, "right_grip")), DT)
    assert "right_grip" not in outcome.wrenches


def test_an_object_falls_and_rests_on_the_floor():
    crate = FreeObject("crate", Box((0.2, 0.2, 0.2)), np.eye(3), np.array([0.7, 0, 0.12]), 5.0, 0.4)
    q0 = ROBOT.posture("half_sitting")
    physics = MujocoPhysics(ROBOT, Environment((FLOOR,), objects=(crate,)), q0, patches=SOLES)
    for _ in range(400):
        outcome = physics.step(servo(physics, q0), DT)
    place = physics.data.body("object:crate").xpos
    np.testing.assert_allclose(place, [0.7, 0, 0.1], atol=1e-3)
    mine = outcome.forces.link == len(ROBOT.link_names)
    assert outcome.forces.force[mine, 2].sum() == pytest.approx(5.0 * 9.81, rel=0.01)


def sliding_box(push):
    """Let a force (N), given the box's speed, act on a box of 20 kg at 0.3 m above its middle; heights and speeds."""
    crate = FreeObject("crate", Box((0.8, 0.6, 1.0)), np.eye(3), np.array([0.0, 3.0, 0.5]), 20.0, 0.4, ())
    wide = Surface("floor", np.eye(3), np.zeros(3), 10 * SQUARE, friction=0.7)
    q0 = ROBOT.posture("half_sitting")
    q0[2] = 20.0
    physics = MujocoPhysics(ROBOT, Environment((wide,), objects=(crate,)), q0)
    heights, speeds = [], []
    for k in range(900):
        (x,) = physics.object_v[:, 0]
        force = push(x) if k > 200 else 0.0
        physics.data.xfrc_applied[physics.model.body("object:crate").id] = [force, 0, 0, 0, 0.3 * force, 0]
        physics.advance(np.zeros(ROBOT.n), DT)
        heights.append(physics.object_q[0, 2])
        speeds.append(physics.object_v[0, 0])
    return np.array(heights[300:]), np.array(speeds[300:])


def test_a_box_that_is_pushed_slides_without_hopping():
    heights, speeds = sliding_box(lambda speed: 0.4 * 20 * 9.81 + 100.0 * (0.2 - speed))
    np.testing.assert_allclose(speeds[-100:], 0.2, atol=0.02)
    assert np.ptp(heights) < 5e-5  # with the 5 ms of other contacts it would hop by two tenths of a millimetre


def test_a_box_that_is_held_by_friction_does_not_creep():
    _, speeds = sliding_box(lambda speed: 0.5 * 0.4 * 20 * 9.81)
    assert 0.0 <= speeds[-1] < 2e-4


def test_an_object_weighs_what_its_shape_does_wherever_its_faces_step_back():
    turned = np.array([[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    near = Surface("near", turned, np.array([0.6, 0.0, 0.5]), 0.2 * SQUARE, friction=0.7, thickness=0.0)
    crate = FreeObject("crate", Box((0.8, 0.6, 1.0)), np.eye(3), np.array([1.0, 0, 0.5]), 20.0, 0.4, (near,))
    built = MujocoPhysics(ROBOT, Environment((FLOOR,), objects=(crate,)), ROBOT.posture("half_sitting")).model
    body = built.body("object:crate")
    assert built.geom("object:crate").pos[0] == pytest.approx(1e-3)
    np.testing.assert_array_equal(body.ipos, 0.0)
    np.testing.assert_allclose(body.inertia, 20 / 12 * np.array([1.36, 1.64, 1.0]))


def test_a_tumbling_object_keeps_the_law_of_euler_wherever_in_the_step_its_gyroscopic_moment_is_taken():
    crate = FreeObject("crate", Box((0.8, 0.6, 1.0)), np.eye(3), np.array([0.0, 3.0, 5.0]), 20.0, 0.4, ())
    q0 = ROBOT.posture("half_sitting")
    physics = MujocoPhysics(ROBOT, Environment((FLOOR,), objects=(crate,)), q0)
    physics.data.qvel[physics.model.joint("object:crate").dofadr[0] + np.arange(3, 6)] = [1.0, -0.5, 0.7]
    q, v = [], []
    for _ in range(100):
        q.append(physics.object_q)
        v.append(physics.object_v)
        physics.advance(np.zeros(ROBOT.n), DT)
    inertia = np.diag(20 / 12 * np.array([1.36, 1.64, 1.0])).tolist()
    body = BodyRecord(name="crate", mass=20.0, com=[0, 0, 0], inertia=inertia, friction=0.4)
    assert euler(np.array(q), np.array(v), body) < 1e-6
    v[50] = v[50] * 1.001
    assert euler(np.array(q), np.array(v), body) > 0.1


def euler(q, v, body):
    """Return what the certificate finds of an object that nothing touches."""
    run = Samples(
        t=DT * np.arange(len(q)), dt=DT, point_link=np.zeros(0, int), point_force=np.zeros((0, 3)),
        point_xyz=np.zeros((0, 3)),
    )  # fmt: skip
    record = SimpleNamespace(physics="mujoco", links=[])
    evidence = SimpleNamespace(run=run, record=record, tolerances=EXACT, point_sample=np.zeros(0, int), time=str)
    return _balance(evidence, [(0, body)], q, v).value


class Samples(SimpleNamespace):
    def __len__(self):
        return len(self.t)


def test_a_face_behind_a_patch_steps_back_and_the_others_stay():
    box, p = recede(Box((0.2, 0.1, 0.04)), np.eye(3), np.zeros(3), [(np.array([0, 0, -1.0]), np.array([0, 0, -0.02]))])
    assert box.size == pytest.approx((0.2, 0.1, 0.038))
    np.testing.assert_allclose(p, [0, 0, 0.001])
    same, p = recede(Box((0.2, 0.1, 0.04)), np.eye(3), np.zeros(3), [(np.array([0, 0, -1.0]), np.array([0, 0, -0.03]))])
    assert same.size == (0.2, 0.1, 0.04)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["sphere", "capsule", "cylinder", "box", "mesh"])
def test_whatever_ends_in_a_patchs_plane_ends_behind_it_and_what_stands_out_stays(kind, seed):
    random = np.random.default_rng(seed)
    cloud = random.uniform(-0.1, 0.1, (40, 3))
    shapes = {"sphere": Sphere(0.03), "capsule": Capsule(0.02, 0.1), "cylinder": Cylinder(0.05, 0.08)}
    shapes |= {"box": Box((0.2, 0.1, 0.05)), "mesh": MeshShape(cloud, np.array([[0, 1, 2]]))}
    shape, R, p = shapes[kind], Rotation.random(rng=random).as_matrix(), random.uniform(-1, 1, 3)
    normal = Rotation.random(rng=random).as_matrix()[:, 0]
    # the support of a hull in a direction, from an independent distance
    top = reach(shape, R, p, normal)
    for out, stays in ((0.0, False), (0.003, False), (-0.0015, False), (0.006, True), (-0.003, True)):
        moved, place = recede(shape, R, p, [(normal, (top - out) * normal)])
        after = reach(moved, R, place, normal) - top
        assert after == pytest.approx(0.0 if stays else -RECESS_M - out, abs=1e-9)


def reach(shape, R, p, normal):
    """Greatest coordinate along the normal, by the vertices of a fine mesh of the shape."""
    points = {
        Sphere: lambda: R.T @ normal * shape.radius,
        Box: lambda: np.sign(R.T @ normal) * np.array(shape.size) / 2,
        MeshShape: lambda: shape.vertices[np.argmax(shape.vertices @ R.T @ normal)],
        Capsule: lambda: R.T @ normal * shape.radius + [0, 0, np.sign((R.T @ normal)[2]) * shape.length / 2],
        Cylinder: lambda: rim(R.T @ normal, shape),
    }[type(shape)]()
    return float((R @ points + p) @ normal)


def rim(direction, shape):
    flat = direction * [1, 1, 0]
    return shape.radius * flat / np.linalg.norm(flat) + [0, 0, np.sign(direction[2]) * shape.length / 2]


def test_joints_that_mimic_others_follow_them_and_the_equation_of_motion_holds_in_the_robots_own_coordinates(tmp_path):
    (tmp_path / "gripper.urdf").write_text(GRIPPER)
    robot = load_robot(tmp_path / "gripper.urdf")
    random = np.random.default_rng(0)
    q, v = robot.random_configuration(random), random.normal(size=robot.nv)
    q[:3], q[7:] = [0, 0, 3], 0.1
    physics = MujocoPhysics(robot, Environment(), q, v)
    data, model = physics.data, physics.model
    for _ in range(50):
        tau, q, v = random.normal(size=robot.n), physics.q, physics.v
        outcome = physics.step(Action(tau, np.zeros(robot.nv), {}, {}, ()), 1e-3)
        held = (
            robot.mass_matrix(q) @ outcome.vd + robot.nonlinear_effects(q, v) - [*np.zeros(6), *tau] - outcome.tau_ext
        )
        assert np.abs(held).max() < 1e-9
        left = data.qpos[model.joint("joint:left").qposadr[0]]
        assert data.qpos[model.joint("joint:right").qposadr[0]] == pytest.approx(-1.5 * left + 0.2, abs=1e-12)
        assert np.abs(outcome.tau_ext).max() < 1e-12


def test_a_slab_lies_below_its_polygon():
    box, p = slab(SQUARE, 0.05)
    assert box.size == (2.0, 2.0, 0.05)
    np.testing.assert_allclose(p, [0, 0, -0.025])
    mesh, _ = slab(np.array([[0, 0], [1, 0], [0, 1.0]]), 0.05)
    triangles = mesh.vertices[mesh.faces]
    volume = np.einsum("ki,ki->k", triangles[:, 0], np.cross(triangles[:, 1], triangles[:, 2])).sum() / 6
    assert volume == pytest.approx(0.5 * 0.05)


@pytest.mark.parametrize("length", [0.06, 0.8])
def test_a_bar_reaches_to_its_ends_and_no_farther(length):
    """Round ends are within it; along any direction its surface is where that of its axis with the radius is."""
    direction = np.array([0.6, -0.48, 0.64])
    bar = Bar("rail", np.array([[1.0, 0.3, 0.9], [1.0, 0.3, 0.9] + length * direction]), 0.02)
    model = MujocoPhysics(ROBOT, Environment(bars=(bar,)), ROBOT.posture("half_sitting")).model
    geom = model.geom("world:rail")
    shape = Capsule(geom.size[0], 2.0 * geom.size[1])
    R = Rotation.from_quat(geom.quat, scalar_first=True).as_matrix()
    for end, outward in zip(bar.ends, (-direction, direction), strict=True):
        assert reach(shape, R, geom.pos, outward) == pytest.approx(end @ outward)
    across = np.cross(direction, [0.0, 0.0, 1.0]) / np.linalg.norm(np.cross(direction, [0.0, 0.0, 1.0]))
    assert reach(shape, R, geom.pos, across) == pytest.approx(bar.ends[0] @ across + bar.radius)
