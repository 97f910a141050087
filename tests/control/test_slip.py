"""Sliding contacts are counted on for the friction that they show."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.control.command import LoadedContact, Ramp
from mcplan.control.contact_detectors import MAX_FRICTION_FACTOR, MIN_FRICTION_FACTOR, SlipDetector
from mcplan.core.motion.balance import sliding_speeds
from mcplan.core.rigid_body.terms import FRAME_P, FRAME_R, FRAME_SIZE, FRAME_VELOCITY
from mcplan.scene.contact import Contact
from mcplan.settings.control import ControlSettings

SETTINGS = ControlSettings().under("mujoco")
DT = 1e-3


FACING = np.eye(3)


class Watched:
    """A flat contact on a floor, of which velocity and wrench are given."""

    def __init__(self, friction=0.8, selection=None, kind="surface", R=FACING, middle=(0.0, 0.0, 0.0)):
        contact = Contact(
            patch="sole", support="floor", kind=kind, R=np.diag([1.0, -1.0, -1.0]), p=np.zeros(3),
            points=np.tile(middle, (4, 1)), axes=np.eye(3), friction=friction, max_force=np.inf, max_moment=np.inf,
            selection=np.eye(6) if selection is None else selection,
        )  # fmt: skip
        self.contacts, self.closed = {"sole": LoadedContact(contact, Ramp(0.0, 500.0, 0.0, 0.0), 500.0)}, (contact,)
        self.frames = np.zeros((1, FRAME_SIZE))
        self.notices, self.R = [], R
        self.watch, self.t = SlipDetector(SETTINGS), 0.0

    def note(self, t, text, bodies):
        self.notices.append((text, bodies))

    def run(self, seconds, velocity, force):
        frame = SimpleNamespace(R=self.R, p=np.array([self.t, 0.0, 0.0]), velocity=np.array(velocity, float))
        self.frames[0, FRAME_R:FRAME_P], self.frames[0, FRAME_VELOCITY : FRAME_VELOCITY + 6] = self.R.ravel(), velocity
        terms = SimpleNamespace(frame=lambda name: frame, frame_names=("sole",), arrays=(self.frames,))
        for _ in range(round(seconds / DT)):
            self.watch.update(self.t, terms, self, {"sole": np.r_[force, 0.0, 0.0, 0.0]})
            self.t += DT
        return self.contacts["sole"]


def test_a_slide_shows_the_friction_and_where_the_patch_is_held_from_then_on():
    watched = Watched()
    watched.run(0.1, np.zeros(6), (100.0, 0.0, 200.0))
    loaded = watched.run(SETTINGS.recovery.slip_time + 2 * DT, [0.1, 0.0, 0.0, 0.0, 0.0, 0.0], (0.0, -100.0, 200.0))
    assert loaded.friction == pytest.approx(0.5)
    assert loaded.place[1][0] == pytest.approx(0.1)
    ((text, bodies),) = watched.notices
    assert "sole slides" in text
    assert bodies == ("sole",)


def test_a_slide_below_the_friction_believed_in_takes_a_part_of_it_and_never_all():
    watched = Watched()
    loaded = watched.run(SETTINGS.recovery.slip_time + 2 * DT, [0.1, 0.0, 0.0, 0.0, 0.0, 0.0], (160.0, 0.0, 200.0))
    assert loaded.friction == pytest.approx(MAX_FRICTION_FACTOR * 0.8)
    loaded = watched.run(1.0, [0.1, 0.0, 0.0, 0.0, 0.0, 0.0], (0.0, 0.0, 200.0))
    assert loaded.friction == pytest.approx(MIN_FRICTION_FACTOR * 0.8)


def test_the_normal_of_a_contact_on_an_object_turns_with_it():
    turn = Rotation.from_euler("y", 60, degrees=True).as_matrix()
    flat = Watched()
    watched = Watched(R=turn @ flat.contacts["sole"].contact.R)
    loaded = watched.contacts["sole"]
    watched.contacts["sole"] = replace(loaded, contact=replace(loaded.contact, carrier="box"))
    velocity = np.append(turn @ [0.1, 0.0, 0.0], np.zeros(3))
    slid = watched.run(SETTINGS.recovery.slip_time + 2 * DT, velocity, turn @ [0.0, -100.0, 200.0])
    assert slid.friction == pytest.approx(0.5)


def test_the_time_of_a_slide_restarts_when_a_contact_has_been_open():
    watched, sliding, force = Watched(), [0.1, 0.0, 0.0, 0.0, 0.0, 0.0], (0.0, -100.0, 200.0)
    loaded = watched.run(3 * DT, sliding, force)
    del watched.contacts["sole"]
    watched.t += 0.4
    watched.watch.update(watched.t, None, watched, {})
    watched.contacts["sole"] = loaded
    assert watched.run(DT, sliding, force) is loaded
    assert watched.notices == []


@pytest.mark.parametrize(
    ("velocity", "force", "options"),
    [
        ([0.0, 0.0, 0.2, 0.0, 0.0, 0.0], (0.0, 0.0, 200.0), {}),  # it gives along the normal
        ([0.02, 0.0, 0.0, 0.0, 0.0, 0.0], (100.0, 0.0, 200.0), {}),  # it creeps
        ([0.2, 0.0, 0.0, 0.0, 0.0, 0.0], (0.0, 0.0, 10.0), {}),  # it barely touches
        ([0.2, 0.0, 0.0, 0.0, 0.0, 0.0], (0.0, 0.0, 200.0), {"selection": np.eye(6)[1:]}),  # it is free to
        ([0.2, 0.0, 0.0, 0.0, 0.0, 0.0], (0.0, 0.0, 200.0), {"kind": "grasp"}),
    ],
)
def test_other_motions_are_not_slides(velocity, force, options):
    watched = Watched(**options)
    before = watched.contacts["sole"]
    assert watched.run(0.1, velocity, force) is before
    assert watched.notices == []


@pytest.mark.parametrize("yaw", [0.0, 0.7, -2.0])
def test_a_patch_slides_or_turns_about_its_centre_at_any_yaw(yaw):
    """Its points are 0.1 m ahead of its frame: what turns about them moves the frame, and does not slide."""
    R = Rotation.from_euler("z", yaw).as_matrix()
    ahead, aside = R[:, 0], R[:, 1]
    force, spin = (100.0, 0.0, 200.0), 0.6
    for velocity, slides in ((-0.1 * spin * aside, False), (np.zeros(3), True), (0.2 * ahead, True)):
        watched = Watched(R=R, middle=(0.1, 0.0, 0.0))
        watched.run(SETTINGS.recovery.slip_time + 2 * DT, [*velocity, 0.0, 0.0, spin], force)
        assert bool(watched.notices) is slides
    for direction, slides in ((ahead, False), (aside, True)):  # free to slide along its own x
        watched = Watched(R=R, selection=np.eye(6)[1:])
        watched.run(SETTINGS.recovery.slip_time + 2 * DT, [*(0.2 * direction), 0.0, 0.0, 0.0], force)
        assert bool(watched.notices) is slides


@pytest.mark.parametrize("turns", [(False, False), (False, True), (True, False), (True, True)])
def test_the_speed_along_a_support_is_that_of_the_contacts_centre(turns):
    rng = np.random.default_rng(8)
    R, B, normal, velocity = Rotation.random(rng=rng).as_matrix(), *(rng.standard_normal(n) for n in ((3, 6), 3, 6))
    normal /= np.linalg.norm(normal)
    frames, speed = np.zeros((2, FRAME_SIZE)), np.zeros(1)
    frames[1, FRAME_R:FRAME_P], frames[1, FRAME_VELOCITY : FRAME_VELOCITY + 6] = R.ravel(), velocity
    largest = sliding_speeds(frames, np.array([1]), B[None], normal[None], np.array([turns], np.int64), speed)
    axes, axes_of_normal = (R if turn else np.eye(3) for turn in turns)
    centre, n = axes @ B @ np.concatenate([axes.T @ velocity[:3], axes.T @ velocity[3:]]), axes_of_normal @ normal
    assert speed[0] == largest == pytest.approx(np.linalg.norm(centre - (centre @ n) * n), rel=1e-12)


def test_a_slide_that_does_not_last_is_left_alone():
    watched = Watched()
    before = watched.contacts["sole"]
    for _ in range(20):
        watched.run(SETTINGS.recovery.slip_time / 2, [0.2, 0.0, 0.0, 0.0, 0.0, 0.0], (100.0, 0.0, 200.0))
        assert watched.run(2 * DT, np.zeros(6), (100.0, 0.0, 200.0)) is before
