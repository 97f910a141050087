"""Stances that HRP-2 is known to be able to take, scenario by scenario, and some that nobody can.

Each case names the environment, the contacts, those that carry load, and a guide posture that is near but not on them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.planning.posture.freedom import Freedom
from mcplan.robot.description import Box
from mcplan.robot.robot_file import load_robot
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Bar, Environment, Obstacle, Surface
from mcplan.scene.placement import make_contact

ROBOT = load_robot("hrp2")
CORNERS = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])
SPIN = {"left_hand": Freedom(yaw=np.inf), "right_hand": Freedom(yaw=np.inf)}
KNEELING = Freedom(x=0.02, y=0.03, yaw=0.2)
FEET = ("left_sole", "right_sole")


@dataclass
class Case:
    name: str
    environment: Environment
    contacts: tuple[Contact, ...]
    loaded: tuple[str, ...]
    guide: np.ndarray
    free: dict[str, Freedom] = field(default_factory=dict)

    def __post_init__(self):
        names = [contact.patch for contact in self.contacts]
        self.free = {patch: freedom for patch, freedom in self.free.items() if patch in names}


def plane(name, p, size, rpy=(0.0, 0.0, 0.0), friction=0.7, thickness=0.05):
    R = Rotation.from_euler("xyz", rpy).as_matrix()
    return Surface(name, R, np.array(p, dtype=float), CORNERS * size, thickness, friction)


FLOOR = plane("floor", [0, 0, 0], [6, 4])


def at(name, xyz=(0.0, 0.0, 0.0), **joints):
    q = ROBOT.posture(name)
    q[:3] += xyz
    for joint, value in joints.items():
        q[7 + ROBOT.joint_names.index(joint)] = value
    return q


def place(environment, guide, patch, surface, **coordinates):
    X = ROBOT.frame_pose(guide, patch)
    return make_contact(ROBOT, environment, {"patch": patch, "surface": surface, **coordinates}, (X[:3, :3], X[:3, 3]))


def spin(contacts):
    return {c.patch: SPIN[c.patch] for c in contacts if c.patch in SPIN}


def both_ways(name, environment, contacts, guide, free=None):
    """Each contact carries nothing in turn."""
    free = spin(contacts) if free is None else free
    names = [c.patch for c in contacts]
    for patch in names:
        rest = tuple(n for n in names if n != patch)
        yield Case(f"{name} -{patch}", environment, contacts, rest, guide, free)


def walk():
    scene = Environment((FLOOR,))
    for step in (0.25, 0.35, 0.45):
        guide = at("half_sitting", (step / 2, 0, -0.02))
        contacts = tuple(
            place(scene, guide, f"{side}_sole", "floor", x=x, y=y, yaw=0.0)
            for side, x, y in (("left", 0.0, 0.095), ("right", step, -0.095))
        )
        yield from both_ways(f"walk {step}", scene, contacts, guide)


def stairs():
    sizes = [(h, 0.30) for h in (0.10, 0.15, 0.18, 0.20, 0.22)]
    for riser, tread in [*sizes, (0.115, 0.255), (0.115, 0.345), (0.1725, 0.345)]:
        steps = tuple(
            plane(f"step{k}", [(k + 0.5) * tread, 0, (k + 1) * riser], [tread, 2], thickness=riser) for k in range(3)
        )
        scene = Environment((plane("floor", [-2, 0, 0], [4, 4]), *steps))
        guide = at("half_sitting", (0.0, 0, riser / 2))
        margin = min(0.165, tread - 0.105)
        contacts = (
            place(scene, guide, "left_sole", "floor", x=2 - margin, y=0.095, yaw=0.0),
            place(scene, guide, "right_sole", "step0", x=tread / 2 - margin, y=-0.095, yaw=0.0),
        )
        yield from both_ways(f"stairs {riser} x {tread}", scene, contacts, guide)


def rail():
    riser, tread = 0.15, 0.30
    steps = tuple(
        plane(f"step{k}", [(k + 0.5) * tread, 0, (k + 1) * riser], [tread, 2], thickness=riser) for k in (0, 1)
    )
    slope = np.array([tread, 0, riser]) / np.hypot(tread, riser)
    for y in (0.4, 0.45, 0.5):
        foot = np.array([0.0, y, riser + 0.85])
        bar = Bar("rail", np.array([foot - 0.7 * slope, foot + 1.2 * slope]), 0.02)
        scene = Environment((plane("floor", [-2, 0, 0], [4, 4]), *steps), (bar,))
        guide = at("half_sitting", (0.0, 0, riser / 2), LARM_JOINT0=-0.5, LARM_JOINT3=-1.2)
        feet = (
            place(scene, guide, "left_sole", "floor", x=2 - 0.165, y=0.095, yaw=0.0),
            place(scene, guide, "right_sole", "step0", x=tread / 2 - 0.165, y=-0.095, yaw=0.0),
        )
        grip = place(scene, guide, "left_grip", "rail", along=0.95, flip=False)
        free = {"left_grip": Freedom(along=0.3, angle=np.inf)}
        yield from both_ways(f"rail {y}", scene, (*feet, grip), guide, free)


def tilted():
    for roll, pitch in ((20, 0), (-20, 0), (0, 20), (0, -20)):
        plate = plane("plate", [0.3, -0.1, 0.10], [0.3, 0.28], np.deg2rad([roll, pitch, 0]))
        scene = Environment((FLOOR, plate))
        guide = at("half_sitting", (0.15, 0, 0.03))
        contacts = (
            place(scene, guide, "left_sole", "floor", x=0.0, y=0.11, yaw=0.0),
            place(scene, guide, "right_sole", "plate", x=-0.01, y=0.0, yaw=0.0),
        )
        yield from both_ways(f"tilted {roll} {pitch}", scene, contacts, guide)


def step_over():
    for height, width, apart in ((0.20, 0.05, 0.39), (0.20, 0.10, 0.44)):
        bar = Obstacle("bar", Box((width, 2.0, height)), np.eye(3), np.array([0.17 + width / 2, 0, height / 2]))
        scene = Environment((FLOOR,), obstacles=(bar,))
        guide = at("half_sitting", (apart / 2, 0, -0.02))
        contacts = (
            place(scene, guide, "left_sole", "floor", x=0.0, y=0.095, yaw=0.0),
            place(scene, guide, "right_sole", "floor", x=apart, y=-0.095, yaw=0.0),
        )
        yield from both_ways(f"step_over {height} x {width}", scene, contacts, guide)


def lean():
    for x in (0.70, 0.75, 0.85):
        wall = plane("wall", [x, 0, 1.0], [2, 2], (0, -np.pi / 2, 0))
        scene = Environment((FLOOR, wall))
        guide = at("half_sitting", (0.08, 0, 0), RARM_JOINT0=-1.2, RARM_JOINT3=-0.8, RARM_JOINT5=0.5)
        feet = tuple(
            place(scene, guide, f"{s}_sole", "floor", x=0.0, y=y, yaw=0.0)
            for s, y in (("left", 0.095), ("right", -0.095))
        )
        hand = place(scene, guide, "right_hand", "wall", x=0.0, y=-0.25)
        free = {"right_hand": Freedom(x=0.3, y=0.2, yaw=np.inf)}
        yield Case(f"lean wall {x} touch", scene, (*feet, hand), FEET, guide, free)
        yield Case(f"lean wall {x}", scene, (*feet, hand), (*FEET, "right_hand"), guide, free)
    for x in (0.35, 0.45):
        scene = Environment((FLOOR, plane("table", [x + 0.3, 0, 0.73], [0.6, 1.6])))
        guide = at("half_sitting", (0.08, 0, 0), RARM_JOINT0=-0.7, RARM_JOINT3=-0.8)
        feet = tuple(
            place(scene, guide, f"{s}_sole", "floor", x=0.0, y=y, yaw=0.0)
            for s, y in (("left", 0.095), ("right", -0.095))
        )
        hand = place(scene, guide, "right_hand", "table", x=-0.25, y=-0.25)
        free = {"right_hand": Freedom(x=0.05, y=0.1, yaw=np.inf)}
        yield Case(f"lean table {x} touch", scene, (*feet, hand), FEET, guide, free)
        yield Case(f"lean table {x}", scene, (*feet, hand), (*FEET, "right_hand"), guide, free)


def table(seat=0.32, ankle=-0.061):
    bench = plane("seat", [-0.2, 0, seat], [0.4, 1.0], thickness=0.04)
    scene = Environment((FLOOR, bench, plane("table", [0.5, 0, 0.64], [0.6, 1.6])))
    sit, sit_hands, lift = at("sit"), at("sit_hands"), at("lift_off")
    feet = tuple(
        place(scene, sit, f"{s}_sole", "floor", x=ankle, y=y, yaw=0.0) for s, y in (("left", 0.095), ("right", -0.095))
    )
    thighs = tuple(
        place(scene, sit, f"{s}_thigh", "seat", x=0.13, y=y, yaw=0.0) for s, y in (("left", 0.127), ("right", -0.127))
    )
    free = {name: Freedom(x=0.03, y=0.03, yaw=0.1) for name in ("left_thigh", "right_thigh")}
    hands = (
        place(scene, sit_hands, "right_hand", "table", x=-0.24, y=-0.35),
        place(scene, sit_hands, "left_hand", "table", x=-0.24, y=0.38),
    )
    names = [c.patch for c in (*feet, *thighs)]
    yield Case(f"sit {seat}", scene, (*feet, *thighs), tuple(names), sit, free)
    if seat != 0.32:
        return
    full = (*feet, *thighs, *hands)
    yield Case("sit, touch the table", scene, full, tuple(names), sit_hands, free | SPIN)
    yield Case("sit, lean on the table", scene, full, tuple(c.patch for c in full), sit_hands, free | SPIN)
    yield Case("sit, thighs unloaded", scene, full, (*FEET, "right_hand", "left_hand"), sit_hands, free | SPIN)
    yield Case("lift off", scene, (*feet, *thighs), FEET, lift, free)
    yield Case("stand up", scene, feet, FEET, at("half_sitting", (-0.05, 0, 0)))


def crawl():
    scene = Environment((FLOOR,), obstacles=(Obstacle("ceiling", Box((4, 2, 0.1)), np.eye(3), np.array([0, 0, 0.85])),))
    guide = at("crawl")
    for stagger in (0.0, 0.1, -0.1):
        contacts = []
        for s, y, shift in (("left", 1, 0.5 * stagger), ("right", -1, -0.5 * stagger)):
            contacts.append(place(scene, guide, f"{s}_knee", "floor", x=shift, y=0.116 * y))
            contacts.append(place(scene, guide, f"{s}_toe", "floor", x=-0.279 + shift, y=0.1045 * y))
            contacts.append(place(scene, guide, f"{s}_hand", "floor", x=0.47 - shift, y=0.26 * y))
        contacts = tuple(contacts)
        free = SPIN | {c.patch: KNEELING for c in contacts if c.patch not in SPIN}
        names = [c.patch for c in contacts]
        yield Case(f"crawl {stagger}", scene, contacts, tuple(names), guide, free)
        for lifted in (["left_hand"], ["right_hand"], ["left_knee", "left_toe"], ["right_knee", "right_toe"]):
            rest = tuple(n for n in names if n not in lifted)
            yield Case(f"crawl {stagger} -{lifted[0]}", scene, contacts, rest, guide, free)


def kneel():
    scene = Environment((FLOOR,))
    stand = at("half_sitting", (0.2, 0, -0.05))
    lunge, half, two = at("lunge"), at("half_kneel"), at("kneel")
    flat = (
        place(scene, stand, "left_sole", "floor", x=0.42, y=0.095, yaw=0.0),
        place(scene, stand, "right_sole", "floor", x=0.0, y=-0.095, yaw=0.0),
    )
    yield from both_ways("kneel, feet apart", scene, flat, stand)
    sole = place(scene, lunge, "left_sole", "floor", x=0.27, y=0.083, yaw=0.0)
    toe = place(scene, lunge, "right_toe", "floor", x=-0.20, y=-0.1045)
    slack = {"right_toe": KNEELING, "right_knee": KNEELING}
    yield Case("kneel, lunge", scene, (sole, toe), ("left_sole", "right_toe"), lunge, slack)
    sole = place(scene, half, "left_sole", "floor", x=0.30, y=0.106, yaw=0.0)
    knee = place(scene, half, "right_knee", "floor", x=-0.006, y=-0.116)
    toe = place(scene, half, "right_toe", "floor", x=-0.269, y=-0.1045)
    contacts = (sole, knee, toe)
    yield Case("kneel, half", scene, contacts, ("left_sole", "right_knee", "right_toe"), half, slack)
    yield Case("kneel, knee comes down", scene, contacts, ("left_sole", "right_toe"), half, slack)
    yield Case("kneel, front foot alone", scene, contacts, ("left_sole",), half, slack)
    yield Case("kneel, one knee", scene, contacts, ("right_knee", "right_toe"), half, slack)
    contacts = tuple(
        place(scene, two, f"{s}_{patch}", "floor", x=x, y=y * sign)
        for s, sign in (("left", 1), ("right", -1))
        for patch, x, y in (("knee", 0.0, 0.116), ("toe", -0.264, 0.1045))
    )
    slack = {c.patch: KNEELING for c in contacts}
    names = tuple(c.patch for c in contacts)
    yield Case("kneel, two knees", scene, contacts, names, two, slack)
    yield Case("kneel, second knee comes down", scene, contacts, ("right_knee", "right_toe"), two, slack)
    for name, shift in (("squat", 0.0), ("squat_hands", 0.0)):
        guide = at(name, (shift, 0, 0))
        feet = tuple(
            place(scene, guide, f"{s}_sole", "floor", x=0.0, y=y, yaw=0.0)
            for s, y in (("left", 0.115), ("right", -0.115))
        )
        hands = tuple(
            place(scene, guide, f"{s}_hand", "floor", x=0.267, y=y) for s, y in (("left", 0.262), ("right", -0.262))
        )
        if name == "squat":
            yield Case(name, scene, feet, FEET, guide)
        else:
            yield Case(name, scene, (*feet, *hands), (*FEET, "left_hand", "right_hand"), guide, SPIN)


def handstand():
    scene = Environment((FLOOR,))
    for name in ("handstand", "handstand_split"):
        guide = at(name)
        hands = tuple(
            place(scene, guide, f"{s}_hand", "floor", x=0.0, y=y) for s, y in (("left", 0.25), ("right", -0.25))
        )
        yield Case(name, scene, hands, ("left_hand", "right_hand"), guide, SPIN)


def ladder():
    slope = np.deg2rad(75.0)
    up = np.array([np.cos(slope), 0.0, np.sin(slope)])
    ends = np.array([[0.0, 0.35, 0.0], [0.0, -0.35, 0.0]])
    rungs = tuple(Bar(f"rung{k}", ends + 0.27 * k * up, 0.015) for k in range(1, 9))
    scene = Environment((FLOOR,), rungs)
    for left, right, hand_l, hand_r in (
        (1, 1, 5, 5),
        (1, 2, 5, 5),
        (1, 1, 4, 4),
        (1, 1, 5, 4),
        (2, 2, 5, 5),
        (1, 2, 5, 6),
    ):
        guide = at("ladder", 0.27 * (min(left, right) - 1) * up)
        contacts = (
            place(scene, guide, "left_sole", f"rung{left}", along=0.255, offset=0.05),
            place(scene, guide, "right_sole", f"rung{right}", along=0.445, offset=0.05),
            place(scene, guide, "left_grip", f"rung{hand_l}", along=0.10),
            place(scene, guide, "right_grip", f"rung{hand_r}", along=0.60),
        )
        foot, grip = Freedom(along=0.03, offset=0.05, angle=np.inf), Freedom(along=0.05, angle=np.inf)
        free = {"left_sole": foot, "right_sole": foot, "left_grip": grip, "right_grip": grip}
        name = f"ladder {left}{right}{hand_l}{hand_r}"
        yield Case(name, scene, contacts, tuple(c.patch for c in contacts), guide, free)
        yield from both_ways(name, scene, contacts, guide, free)


def wedge():
    tilt = np.deg2rad(35.0)
    for slope in (0.0, np.deg2rad(15.0)):
        along = Rotation.from_euler("y", -slope).as_matrix()
        planes = []
        for name, sign in (("left", 1), ("right", -1)):
            R = along @ Rotation.from_euler("x", sign * tilt).as_matrix()
            centre = R @ np.array([0, sign * 0.35, 0])
            planes.append(Surface(f"{name}_plane", R, centre, CORNERS * [3.0, 0.7], 0.05, 0.6))
            R = Rotation.from_euler("xyz", [sign * np.pi / 2, 0, 0]).as_matrix()
            planes.append(Surface(f"{name}_wall", R, np.array([0, sign * 0.65, 1.0]), CORNERS * [3.0, 1.6], 0.05, 0.6))
        scene = Environment(tuple(planes))
        rise = 0.26 * np.tan(tilt)
        guide = at(
            "half_sitting", (0.0, 0, rise), LARM_JOINT1=1.0, RARM_JOINT1=-1.0, LARM_JOINT3=-0.6, RARM_JOINT3=-0.6
        )
        for side, other in (("left", "right"), ("right", "left")):
            sign = 1 if side == "left" else -1
            reach = 0.26 / np.cos(tilt)
            feet = tuple(
                place(scene, guide, f"{s}_sole", f"{s}_plane", x=0.0, y=(reach - 0.35) * g, yaw=0.0)
                for s, g in ((side, sign), (other, -sign))
            )
            hands = tuple(place(scene, guide, f"{s}_hand", f"{s}_wall", x=0.10) for s in (side, other))
            free = {f"{s}_hand": Freedom(x=0.3, y=0.3, yaw=np.inf) for s in (side, other)}
            name = f"wedge {np.rad2deg(slope):.0f}, {side} foot"
            yield Case(name, scene, (*feet, hands[1]), (f"{side}_sole", f"{other}_hand"), guide, free)
            names = (f"{side}_sole", f"{side}_hand", f"{other}_hand")
            yield Case(f"{name}, hands", scene, (*feet, *hands), names, guide, free)


def push():
    for x in (0.35, 0.5, 0.65):
        face = plane("face", [x, 0, 0.5], [1.0, 0.6], (0, -np.pi / 2, 0))
        scene = Environment((FLOOR, face))
        guide = at("half_sitting", (0.05, 0, 0), RARM_JOINT0=-0.6, LARM_JOINT0=-0.6, RARM_JOINT3=-1.2, LARM_JOINT3=-1.2)
        feet = tuple(
            place(scene, guide, f"{s}_sole", "floor", x=0.0, y=y, yaw=0.0)
            for s, y in (("left", 0.095), ("right", -0.095))
        )
        hands = tuple(
            place(scene, guide, f"{s}_hand", "face", x=0.35, y=y) for s, y in (("left", 0.2), ("right", -0.2))
        )
        for loaded in (FEET, ("left_sole",), ("right_sole",)):
            yield Case(f"push {x} on {len(loaded)}", scene, (*feet, *hands), loaded, guide, SPIN)


def low_and_high_seat():
    yield from table(0.30, -0.09)
    yield from table(0.345, -0.01)


def feasible() -> Iterator[Case]:
    seats = (table, low_and_high_seat)
    for group in (walk, stairs, rail, tilted, step_over, lean, *seats, crawl, kneel, handstand, ladder, wedge, push):
        yield from group()


def impossible() -> Iterator[Case]:
    scene = Environment((FLOOR,))
    guide = at("half_sitting")
    left = place(scene, guide, "left_sole", "floor", x=-1.5, y=0.095, yaw=0.0)
    right = place(scene, guide, "right_sole", "floor", x=1.5, y=-0.095, yaw=0.0)
    yield Case("feet 3 m apart", scene, (left, right), ("left_sole",), guide)
    yield from table(0.50, 0.10)
