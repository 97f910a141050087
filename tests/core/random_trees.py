"""Random mechanisms, built from one description both as a Tree and as a Pinocchio model with a free-flyer base."""

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from mcplan.core.rigid_body.tree import BALL, FLOATING, PRISMATIC, REVOLUTE, Tree

KINDS = ("revolute", "continuous", "prismatic")


@dataclass
class Body:
    """A rigid body and the joint that hangs it on its parent; the parent of the base is -1."""

    parent: int
    kind: str
    R: np.ndarray
    p: np.ndarray
    axis: np.ndarray
    mass: float
    com: np.ndarray
    inertia: np.ndarray  # at the centre of mass, in the body's axes
    armature: float
    multiplier: float = 1.0
    offset: float = 0.0
    master: int | None = None  # index of the body whose joint this one mimics


def random_rotation(rng):
    q = rng.standard_normal(4)
    return pin.Quaternion(q / np.linalg.norm(q)).matrix()


def random_inertia(rng, mass):
    """A physical inertia: that of a few point masses."""
    points = rng.normal(scale=0.15, size=(8, 3))
    points -= points.mean(axis=0)
    return mass / 8 * (np.sum(points**2) * np.eye(3) - points.T @ points)


def random_bodies(rng, joints, mimic=0.0, branching=0.35):
    """A base and ``joints`` bodies in depth-first order; children of a chain with some branching."""
    bodies = []
    path = []  # from the base to the last body: hanging the next one on any of it keeps the order depth-first
    for i in range(joints + 1):
        if i:
            while len(path) > 1 and rng.random() < branching:
                path.pop()
        mass = float(rng.uniform(0.2, 8.0))
        kind = str(rng.choice(KINDS)) if i else "floating"
        axis = rng.standard_normal(3) if rng.random() < 0.5 else rng.permutation([1.0, 0.0, 0.0]) * rng.choice([-1, 1])
        if kind == "continuous":  # Pinocchio's Python has these about the coordinate axes only
            axis = np.abs(rng.permutation([1.0, 0.0, 0.0]))
        body = Body(
            parent=path[-1] if path else -1,
            kind=kind,
            R=random_rotation(rng),
            p=rng.normal(scale=0.3, size=3),
            axis=axis / np.linalg.norm(axis),
            mass=mass,
            com=rng.normal(scale=0.1, size=3),
            inertia=random_inertia(rng, mass),
            armature=float(rng.choice([0.0, rng.uniform(0.0, 0.5)])) if i else 0.0,
        )
        masters = [k for k in range(1, i) if bodies[k].master is None]
        if masters and rng.random() < mimic:
            body.master = int(rng.choice(masters))
            body.multiplier, body.offset, body.armature = float(rng.uniform(-2, 2)), float(rng.uniform(-1, 1)), 0.0
        bodies.append(body)
        path.append(i)
    return bodies


def build_tree(bodies):
    topology = np.zeros((len(bodies), 5), dtype=np.int64)
    joint = np.zeros((len(bodies), 17))
    inertia = np.zeros((len(bodies), 10))
    armature = [0.0] * 6
    joint[0, :9], joint[0, 15] = np.eye(3).ravel(), 1.0
    for i, b in enumerate(bodies):
        J = b.inertia
        inertia[i] = [b.mass, *b.com, J[0, 0], J[1, 1], J[2, 2], J[0, 1], J[0, 2], J[1, 2]]
        if i == 0:
            topology[0] = [-1, FLOATING, 0, 0, 0]
            continue
        if b.master is None:
            k = len(armature)
            armature.append(b.armature)
        else:
            k = topology[b.master, 3]
        topology[i] = [b.parent, PRISMATIC if b.kind == "prismatic" else REVOLUTE, k + 1, k, i + 5]
        joint[i] = [*b.R.ravel(), *b.p, *b.axis, b.multiplier, b.offset]
    arrays = (topology, joint, inertia, np.array(armature))
    for a in arrays:
        a.flags.writeable = False
    return Tree(*arrays)


def build_pinocchio(bodies):
    """The same in Pinocchio, every joint free: mimic couplings are imposed by ``expand`` and its Jacobian."""
    model = pin.Model()
    model.gravity.linear = np.array([0.0, 0.0, -9.81])
    ids = []
    for i, b in enumerate(bodies):
        if i == 0:
            ids.append(model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "base"))
        else:
            if b.kind == "continuous":
                kind = (pin.JointModelRUBX, pin.JointModelRUBY, pin.JointModelRUBZ)[int(np.argmax(b.axis))]()
            elif b.kind == "revolute":
                kind = pin.JointModelRevoluteUnaligned(b.axis)
            else:
                kind = pin.JointModelPrismaticUnaligned(b.axis)
            ids.append(model.addJoint(ids[b.parent], kind, pin.SE3(b.R, b.p), f"joint{i}"))
        model.appendBodyToJoint(ids[i], pin.Inertia(b.mass, b.com, b.inertia), pin.SE3.Identity())
    model.armature = np.array([0.0] * 6 + [b.armature for b in bodies[1:]])
    return model


def with_balls(rng, joints=9):
    """A random mechanism, every third joint a ball: the tree, the Pinocchio model, first index in v of each ball."""
    bodies = random_bodies(rng, joints)
    rows, pin_model, ids, own, first = [], pin.Model(), [], {}, []
    pin_model.gravity.linear = np.array([0.0, 0.0, -9.81])
    k = 6
    for i, b in enumerate(bodies):
        J = b.inertia
        inertia = [b.mass, *b.com, J[0, 0], J[1, 1], J[2, 2], J[0, 1], J[0, 2], J[1, 2]]
        X = pin.SE3(b.R, b.p)
        if i == 0:
            rows.append(([-1, FLOATING, 0, 0, 0], [*np.eye(3).ravel(), *np.zeros(6), 1, 0], inertia))
            ids.append(pin_model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "base"))
        elif i % 3 == 1:
            parent = own[b.parent]
            first.append(k)
            for c in range(3):
                R, p = (b.R, b.p) if c == 0 else (np.eye(3), np.zeros(3))
                place = [parent, BALL + c, k + 1, k, len(rows) + 5]
                rows.append((place, [*R.ravel(), *p, *np.eye(3)[c], 1, 0], inertia if c == 2 else np.zeros(10)))
                parent, k = len(rows) - 1, k + 1
            ids.append(pin_model.addJoint(ids[b.parent], pin.JointModelSpherical(), X, f"{i}"))
        else:
            slides = b.kind == "prismatic"
            place = [own[b.parent], PRISMATIC if slides else REVOLUTE, k + 1, k, len(rows) + 5]
            rows.append((place, [*b.R.ravel(), *b.p, *b.axis, 1, 0], inertia))
            kind = pin.JointModelPrismaticUnaligned if slides else pin.JointModelRevoluteUnaligned
            ids.append(pin_model.addJoint(ids[b.parent], kind(b.axis), X, f"{i}"))
            k += 1
        own[i] = len(rows) - 1
        pin_model.appendBodyToJoint(ids[i], pin.Inertia(b.mass, b.com, b.inertia), pin.SE3.Identity())
    topology, joint, inertia = (np.array(column) for column in zip(*rows, strict=True))
    tree = Tree(topology.astype(np.int64), joint.astype(float), inertia.astype(float), np.zeros(k))
    for array in tree:
        array.flags.writeable = False
    return tree, pin_model, ids[-1], first


def joint_indices(bodies):
    """Index in v of every body's joint but the base's."""
    return build_tree(bodies).topology[1:, 3]


def coupling(bodies):
    """Matrix from our v to the velocities of all joints: ones, or the multipliers of mimic joints."""
    index = joint_indices(bodies)
    C = np.zeros((len(bodies) + 5, index.max() + 1))
    C[:6, :6] = np.eye(6)
    for i, k in enumerate(index):
        C[6 + i, k] = bodies[i + 1].multiplier
    return C


def pinocchio_q(bodies, q):
    """Configuration of the Pinocchio model: quaternion x y z w, cosine and sine of continuous joints."""
    out = [*q[:3], *q[4:7], q[3]]
    for b, k in zip(bodies[1:], joint_indices(bodies), strict=True):
        position = b.multiplier * q[k + 1] + b.offset
        out += [np.cos(position), np.sin(position)] if b.kind == "continuous" else [position]
    return np.array(out)


def base_rotation(q):
    return pin.Quaternion(q[3], q[4], q[5], q[6]).matrix()


def to_body_axes(q, nv):
    """Matrix T with ``v_pin = T v``: the base twist in body axes."""
    T = np.eye(nv)
    R = base_rotation(q)
    T[:3, :3] = T[3:6, 3:6] = R.T
    return T


def pinocchio_acceleration(q, v, vd):
    """``T vd`` with the term by which the body-axes derivative of a twist differs: ``R' (vd_lin - w x v_lin)``."""
    vd = vd.copy()
    vd[:3] -= np.cross(v[3:6], v[:3])
    return to_body_axes(q, len(v)) @ vd


def random_state(rng, nv, speed=1.0):
    q = np.concatenate([rng.normal(size=3), rng.standard_normal(4), rng.uniform(-3, 3, nv - 6)])
    q[3:7] /= np.linalg.norm(q[3:7])
    return q, speed * rng.standard_normal(nv), rng.standard_normal(nv)
