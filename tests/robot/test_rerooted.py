"""A robot with another link as its base is the same robot: S2's change of the base frame, and Pinocchio's numbers."""

import re

import numpy as np
import pytest

from mcplan.certificate.independent import Mechanism
from mcplan.collision.pairs import candidate_pairs, link_solids
from mcplan.errors import RobotError
from mcplan.record.recording import record_robot
from mcplan.robot.robot_file import load_robot
from mcplan.textbook.coordinates import configuration_in, equations_of_motion, to_frame
from mcplan.util.bundled import ROBOTS
from tests.robot.conftest import ARM, GRIPPER


def both(folder, text, base, joints=""):
    """The robot of a URDF with its own root and with another."""
    (folder / "robot.urdf").write_text(text)
    robots = []
    for name in (None, base):
        line = f"base: {name}\n" if name else ""
        (folder / f"{name}.yaml").write_text(f"mcplan: 1\nurdf: robot.urdf\n{line}{joints}")
        robots.append(load_robot(folder / f"{name}.yaml"))
    return robots


CASES = {
    "behind a fixed joint": (ARM, "pedestal", ""),
    "behind a hinge": (ARM, "hub", ""),
    "behind a slide": (ARM, "upper", ""),
    "at the end, behind all": (ARM, "tool", ""),
    "behind a locked joint": (ARM, "tool", "locked: {elbow: 0.4}\n"),
    "behind a joint that others follow": (GRIPPER, "tip_link", ""),
    "behind a joint that follows": (GRIPPER, "right_link", ""),
}


@pytest.fixture(scope="module", params=CASES, ids=list(CASES))
def pair(request, tmp_path_factory):
    text, base, options = CASES[request.param]
    return (*both(tmp_path_factory.mktemp("robots"), text, base, options), base)


@pytest.fixture(params=range(3))
def state(request, pair):
    """Configuration and velocity of both, and the order of the one's velocities in the other."""
    old, new, base = pair
    rng = np.random.default_rng(request.param)
    q, v = old.random_configuration(rng), rng.normal(size=old.nv)
    order = np.array([*range(6), *(6 + old.joint_names.index(name) for name in new.joint_names)])
    change = to_frame(old, q, v, base)
    q_new = configuration_in(old, q, base)
    q_new = np.concatenate([q_new[:7], q_new[order[6:] + 1]])
    return q, v, q_new, change.velocity(v)[order], order, change


def test_it_has_the_same_joints_and_links(pair):
    old, new, base = pair
    assert sorted(new.joint_names) == sorted(old.joint_names)
    assert set(old.link_names) <= set(new.link_names)
    assert new.link_names[0] == base
    assert new.mass == pytest.approx(old.mass)
    for i, name in enumerate(new.joint_names):
        k = old.joint_names.index(name)
        assert (new.limits.lower[i], new.limits.upper[i]) == (old.limits.lower[k], old.limits.upper[k])


def test_every_link_is_where_it_was(pair, state):
    old, new, _ = pair
    q, v, q_new, v_new, _, _ = state
    for link in old.link_names:
        np.testing.assert_allclose(new.frame_pose(q_new, link), old.frame_pose(q, link), atol=1e-12)
        np.testing.assert_allclose(new.frame_jacobian(q_new, link) @ v_new, old.frame_jacobian(q, link) @ v, atol=1e-11)


def test_its_equations_are_those_of_the_change_of_base(pair, state):
    """Theorem 2 (eq. 23), the two sides computed on two trees."""
    old, new, _ = pair
    q, v, q_new, v_new, order, change = state
    changed = change.equations(equations_of_motion(old, q, v))
    own = equations_of_motion(new, q_new, v_new)
    scale = max(1.0, np.abs(own.M).max())
    np.testing.assert_allclose(own.M, changed.M[np.ix_(order, order)], atol=1e-11 * scale)
    np.testing.assert_allclose(own.G, changed.G[order], atol=1e-10 * scale)
    np.testing.assert_allclose(own.C @ own.nu, (changed.C @ changed.nu)[order], atol=1e-10 * scale)


def test_the_record_of_it_is_the_same_mechanism(pair, state):
    """What certificates compute from the record, by a path that shares nothing with the kernels."""
    old, new, _ = pair
    q, _, q_new, _, _, _ = state
    record = record_robot(new)
    R, p = Mechanism(record).poses(q_new[None])
    for k, link in enumerate(record.links):
        if link.name in old.link_names:
            X = old.frame_pose(q, link.name)
            np.testing.assert_allclose(R[0, k], X[:3, :3], atol=1e-12)
            np.testing.assert_allclose(p[0, k], X[:3, 3], atol=1e-12)


@pytest.fixture(scope="module")
def humanoid(tmp_path_factory):
    """HRP-2 with its waist and with its right foot as the base."""
    text = (ROBOTS / "hrp2" / "robot.yaml").read_text()
    assert "base: BODY" in text
    folder = tmp_path_factory.mktemp("hrp2")
    text = re.sub(r"(?m)^urdf: (.*)$", lambda found: f"urdf: {ROBOTS / 'hrp2' / found[1]}", text)
    (folder / "robot.yaml").write_text(text.replace("base: BODY", "base: RLEG_LINK5"))
    return load_robot("hrp2"), load_robot(folder / "robot.yaml")


def test_neighbours_stay_neighbours(humanoid):
    """The link that stands between two others does not make them collide."""
    pairs = []
    for robot in humanoid:
        links, _, _ = link_solids(robot)
        pairs.append({frozenset((links[i], links[j])) for i, j in candidate_pairs(robot)})
    assert len(pairs[0]) > 100
    assert pairs[0] == pairs[1]


def test_patches_and_centre_of_mass_of_a_humanoid(humanoid):
    old, new = humanoid
    q = old.random_configuration(2)
    order = [7 + old.joint_names.index(name) for name in new.joint_names]
    q_new = np.concatenate([configuration_in(old, q, "RLEG_LINK5")[:7], q[order]])
    np.testing.assert_allclose(new.com(q_new), old.com(q), atol=1e-12)
    for patch in old.patches:
        np.testing.assert_allclose(new.frame_pose(q_new, patch), old.frame_pose(q, patch), atol=1e-12)
    np.testing.assert_allclose(new.mass_matrix(q_new)[:3, :3], old.mass * np.eye(3), atol=1e-10)


def test_a_base_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(RobotError, match="the URDF has no link 'tol'; did you mean `tool`"):
        both(tmp_path, ARM, "tol")
