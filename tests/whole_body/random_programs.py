"""Whole-body programs at random: structures, states, contacts, tasks."""

from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from mcplan.robot.robot_file import load_robot
from mcplan.robot.terms import Terms
from mcplan.whole_body.collision_avoidance import CollisionAvoidance
from mcplan.whole_body.contact import ContactConstraint
from mcplan.whole_body.settings import QPSettings
from mcplan.whole_body.tasks.com import AngularMomentumTask, ComTask
from mcplan.whole_body.tasks.forces import ContactForceTask, TorqueTask
from mcplan.whole_body.tasks.pose import LinkPoseTask
from mcplan.whole_body.tasks.posture import PostureTask
from mcplan.whole_body.whole_body import WholeBodyQP
from tests.whole_body.conftest import contact_at
from tests.whole_body.small_robots import biped, quadruped

POSTURE = {"hrp2": "half_sitting", "quadruped": "stand", "biped": "stand"}
SLIDING = np.eye(6)[1:]
EDGES = {"toe": 4, "knee": 4, "heel": 4, "edge": 4, "forearm": 3}
"""Rotation that an edge leaves free, by the end of the patch's name."""


def robots(folder: Path):
    """HRP-2 and two unlike it."""
    return {"hrp2": load_robot("hrp2"), "quadruped": quadruped(folder), "biped": biped(folder)}


@dataclass
class Case:
    """One structure: a program, and how to draw states and contacts for it."""

    name: str
    robot: object
    patches: list
    kinds: dict
    settings: QPSettings
    efforts: list
    slots: int
    terms: Terms = None
    qp: WholeBodyQP = None
    label: dict = field(default_factory=dict)


def draw_case(robot, name, rng, contacts=None, torque=None, **options) -> Case:
    """A random structure: up to four contacts on different limbs, random options, sometimes weak motors.

    ``torque`` scales the torque limits; ``options`` are settings that are not random.
    """
    by_limb = defaultdict(list)
    for patch in robot.patches.values():
        by_limb[patch.limb].append(patch.name)
    count = int(rng.integers(0, 5)) if contacts is None else contacts
    limbs = rng.permutation(sorted(by_limb))[:count]
    patches = [str(rng.choice(by_limb[limb])) for limb in limbs]
    kinds = {}
    for patch in patches:
        p = robot.patches[patch]
        edge = next((row for end, row in EDGES.items() if patch.endswith(end) and len(p.points) == 2), None)
        selection = None if edge is None else np.delete(np.eye(6), edge, axis=0)
        kind = p.kind
        if p.kind == "surface" and selection is None and rng.random() < 0.25:
            kind, selection = ("point", None) if rng.random() < 0.5 else ("surface", SLIDING)
        if p.kind == "grasp" and rng.random() < 0.3:
            selection = np.delete(np.eye(6), 4, axis=0)
        kinds[patch] = (kind, selection, int(rng.choice([4, 8])))
    settings = QPSettings(
        explain="never",
        torque_weight=float(rng.choice([0.0, 0.0, 1e-6])),
        force_rate_weight=float(rng.choice([0.0, 1e-5])),
        force_weight=float(rng.choice([1e-5, 1e-3])),
        wrench_weight=(1e-5, 1e-5, 1e-8, 2e-5, 2e-5, 2e-5) if patches and rng.random() < 0.3 else None,
        dt=float(rng.choice([1e-3, 4e-3])),
    )
    settings = replace(settings, **options)
    efforts = []
    if rng.random() < 0.25:
        efforts.append("torque")
    if patches and rng.random() < 0.25:
        efforts.append("force")
    scale = float(rng.choice([1.0, 1.0, 0.5])) if torque is None else torque
    limited = SimpleNamespace(
        nv=robot.nv, n=robot.n, joint_names=robot.joint_names, patches=robot.patches, tree=robot.tree,
        frame=robot.frame, integrate=robot.integrate, full=robot,
        limits=replace(robot.limits, torque=scale * robot.limits.torque),
    )  # fmt: skip
    return Case(name, limited, patches, kinds, settings, efforts, int(rng.choice([0, 0, 3])))


def draw_state(case: Case, rng):
    """Random ``q`` and ``v``: near a posture or far from it, calm or fast, sometimes with joints at their limits."""
    robot = case.robot
    lower, upper = robot.limits.lower, robot.limits.upper
    calm = rng.random() < 0.6
    size = (0.1 if calm else 0.4) * (1.0 if len(case.patches) < 3 else 0.3)
    motion = np.r_[rng.normal(size=6) * 0.4, rng.normal(size=robot.n) * 2 * size]
    q = robot.integrate(robot.full.posture(POSTURE[case.name]), motion, 1.0)
    low, high = np.where(np.isfinite(lower), lower, -np.pi), np.where(np.isfinite(upper), upper, np.pi)
    v = size * np.r_[0.5 * rng.normal(size=6), rng.normal(size=robot.n)]
    kind = "calm" if calm else "fast"
    q[7:] = np.clip(q[7:], low + 0.02, high - 0.02)
    if rng.random() < 0.3:
        kind += ", joints at limits"
        for joint in rng.choice(robot.n, 3, replace=False):
            side = rng.random() < 0.5
            q[7 + joint] = (high[joint] - 0.004) if side else (low[joint] + 0.004)
            v[6 + joint] = (1 if side else -1) * abs(v[6 + joint]) * 0.3
    return q, v, kind


def draw_contacts(case: Case, q, rng):
    """Contacts where the patches are, a little off, with random friction and bounds on the forces."""
    contacts = []
    for patch in case.patches:
        kind, selection, faces = case.kinds[patch]
        own = case.robot.patches[patch]
        bounds = {"max_force": own.max_force, "max_moment": own.max_moment} if kind == "grasp" else {}
        friction = float(rng.uniform(0.15, 1.0))
        place = contact_at(case.robot, patch, q, kind, friction, selection, **bounds)
        contact = ContactConstraint(place, faces=faces, kp=float(rng.choice([0.0, 100.0])), kd=20.0)
        contact.p = contact.p + 1e-3 * rng.normal(size=3)
        if kind != "grasp" and rng.random() < 0.3:
            contact.max_force = float(rng.uniform(0.05, 1.0)) * 9.81 * case.robot.full.mass
        if kind != "grasp" and rng.random() < 0.2:
            contact.min_force = min(float(rng.uniform(0.0, 0.1)) * 9.81 * case.robot.full.mass, contact.max_force)
        contacts.append(contact)
    return contacts


def draw_tasks(case: Case, q, contacts, rng):
    """A controller's tasks with references that are sometimes far away, and pairs of bodies that are near."""
    robot, terms = case.robot, case.terms
    far = rng.random() < 0.4
    com = ComTask(weight=float(rng.choice([1.0, 100.0])))
    com.position = terms.com + 0.02 * rng.normal(size=3)
    com.acceleration = (3.0 if far else 0.3) * rng.normal(size=3)
    trunk = LinkPoseTask(robot.full.link_names[0], position=False, weight=5.0, kp=100.0)
    trunk.R = terms.frame(robot.full.link_names[0]).R.copy()
    posture = PostureTask(q[7:] + 0.1 * rng.normal(size=robot.n))
    tasks = [com, posture, trunk, AngularMomentumTask()]
    if "torque" in case.efforts:
        task = TorqueTask(robot.n, weight=1e-4)
        task.torque = 0.1 * rng.normal(size=robot.n)
        tasks.append(task)
    if "force" in case.efforts:
        task = ContactForceTask(case.patches[0], weight=1e-2)
        task.wrench = 20.0 * rng.normal(size=6)
        tasks.append(task)
    limits = []
    if case.slots:
        avoidance = CollisionAvoidance(case.slots, dt=case.settings.dt)
        near = int(rng.integers(0, case.slots + 2))
        J = rng.normal(size=(near, robot.nv)) * (rng.random((near, robot.nv)) < 0.4)
        avoidance.set_pairs(0.02 + 0.02 * rng.random(near), J)
        limits.append(avoidance)
    return tasks, limits, far


def fill(case: Case, rng, extra=None, change=lambda contacts: None, rest=False):
    """Draw a state and fill the program of the case, which is declared at the first call."""
    q, v, kind = draw_state(case, rng)
    v *= not rest
    if case.terms is None:
        case.terms = Terms(case.robot, [*case.patches, case.robot.full.link_names[0]])
    case.terms.update(q, v)
    contacts = draw_contacts(case, q, rng)
    change(contacts)
    tasks, limits, far = draw_tasks(case, q, contacts, rng)
    if case.qp is None:
        case.qp = WholeBodyQP(case.robot, contacts, tasks, case.settings, extra, limits)
    previous = {c.patch: 10.0 * rng.normal(size=c.shape.unknowns) for c in contacts if rng.random() < 0.7}
    push = 5.0 * rng.normal(size=case.robot.nv) if rng.random() < 0.3 else None
    case.qp.update(case.terms, contacts, tasks, push, previous, limits)
    return kind + (", far targets" if far else "")
