"""The parameters and rows of the whole-body program once more, with NumPy and the tasks' and contacts' own rows."""

import numpy as np

from mcplan.core.algebra import joint_bounds
from mcplan.optimize.polytope import ball_polytope, friction_pyramid
from mcplan.whole_body.settings import UNBOUNDED
from mcplan.whole_body.tasks.task import weights

viable_acceleration = np.vectorize(joint_bounds.viable_acceleration)


def parameters(qp, terms, tasks, tau_ext=0.0, previous=None, planned=None):
    """Name -> value of every parameter."""
    settings, structure, previous = qp.settings, qp.structure, previous or {}
    data = {name: np.zeros(p.shape) for name, p in qp.parameters.items()}
    data["M"], data["h"] = terms.M, terms.h - tau_ext
    data["acceleration_weight"] += settings.acceleration_weight
    row = 0
    for task in tasks:
        A, b = task.rows(terms)
        w = weights(task)
        if task.diagonal:
            data["acceleration_weight"][A] += w
            data["acceleration_pull"][A] += w * b
        else:
            data["task_matrix"][row : row + len(b)] = np.sqrt(w)[:, None] * A
            data["task_target"][row : row + len(b)] = np.sqrt(w) * b
            row += len(b)
    rows, free_rows, friction, inside, normal, grasps = [], [], [], [], [], []
    for index, (contact, place) in enumerate(zip(qp.contacts, structure.slices(), strict=True)):
        G = contact.wrench_map(terms)
        data["force_map"][:, place] = contact.force_map(terms)
        rows.append(contact.rows(terms))
        block = np.zeros((contact.shape.free_rows, structure.slices()[-1].stop))
        if contact.shape.free_rows:
            block[:, place] = _release_rows(contact, terms)
        free_rows.append(block)
        rate = settings.force_rate_weight if contact.patch in previous else 0.0
        price = np.tile([contact.friction**-2, contact.friction**-2, 1.0], (place.stop - place.start) // 3)
        if contact.shape.grasp:
            price = np.sum((contact.selection / np.repeat([1.0, contact.lever], 3)) ** 2, axis=1)
        data["force_weight"][place] = price * (settings.force_weight + rate)
        drawn = settings.force_weight * (planned or {}).get(contact.patch, 0.0)
        data["force_pull"][place] = price * (rate * previous.get(contact.patch, 0.0) + drawn)
        if settings.wrench_weight is not None:
            own = terms.frame(contact.patch)
            frame = terms.frame(settings.wrench_frame.get(contact.patch, contact.patch))
            moment = G[3:] + np.cross(own.p - frame.p, G[:3], axis=0)
            wrench = np.vstack([frame.R.T @ G[:3], frame.R.T @ moment])
            data["wrench_matrix"][6 * index : 6 * index + 6, place] = np.sqrt(settings.wrench_weight)[:, None] * wrench
        margin = settings.inner_margin
        if contact.shape.grasp:
            grasps.append(np.clip([contact.limit - margin, contact.max_moment - margin], 0.0, UNBOUNDED))
            continue
        points = contact.shape.points
        friction += [contact.friction] * points
        inside += [margin + contact.friction * contact.preload / points] * points
        high = max(contact.limit - margin, 4 * contact.shape.points * margin / contact.friction)
        normal.append([min(contact.min_force + margin, high), min(high, UNBOUNDED)])
    if rows:
        data["contact_jacobian"] = np.vstack([A for A, _ in rows])
        data["contact_acceleration"] = np.concatenate([b for _, b in rows])
    for names, values in (
        (["release"], [np.vstack(free_rows)] if free_rows else []),
        (["friction", "friction_margin"], [friction, inside] if friction else []),
        (["normal_min", "normal_max"], np.transpose(normal)),
        (["grasp_force", "grasp_moment"], np.transpose(grasps)),
    ):
        for name, value in zip(names, values, strict=False):
            if name in data:
                data[name] = np.asarray(value)
    limits = qp.robot.limits
    margin, none = settings.position_margin, np.full(structure.n, np.inf)
    lower = limits.lower + margin if settings.position_limits else -none
    upper = limits.upper - margin if settings.position_limits else none
    velocity = limits.velocity if settings.velocity_limits else none
    if structure.bounded:
        bounds = viable_acceleration(
            terms.q[7:], terms.v[6:], lower, upper, velocity, settings.dt,
            settings.limit_deceleration, settings.max_limit_acceleration,
            joint_bounds.RECOVERY,
        )  # fmt: skip
        data["acceleration_min"], data["acceleration_max"] = (side[list(structure.bounded)] for side in bounds)
    return data


def constants(structure):
    """What multiplies the forces in cones and balls, by name: point by point, face by face."""
    tangential, normal, repeat, total, balls = [], [], [], [], {"grasp_force": [], "grasp_moment": []}
    shapes = list(zip(structure.shapes, structure.slices(), strict=True))
    size, points = shapes[-1][1].stop if shapes else 0, sum(s.points for s, _ in shapes if not s.grasp)
    unit, point = np.eye(size), 0
    for shape, place in shapes:
        if shape.grasp:
            for name, half in (("grasp_force", slice(0, 3)), ("grasp_moment", slice(3, 6))):
                balls[name].append(ball_polytope(3) @ shape.wrench_basis[half] @ unit[place])
            continue
        total.append(sum(unit[place.start + 3 * k + 2] for k in range(shape.points)))
        for at in range(place.start, place.stop, 3):
            for face in friction_pyramid(shape.faces, shape.pyramid):
                tangential.append(face @ unit[at : at + 2])
                normal.append(unit[at + 2])
                repeat.append(np.eye(points)[point])
            point += 1
    found = {"tangential": tangential, "normal": normal, "repeat": repeat, "total": total}
    for name, parts in balls.items():
        if parts:
            found |= {name: np.vstack(parts), f"{name}_repeat": np.repeat(np.eye(len(parts)), len(parts[0]), axis=0)}
    return {name: np.array(value) for name, value in found.items() if len(value)}


def inequalities(d, data, vd, f):
    """Left-hand sides of the rows ``<= 0`` by name."""
    c, values = constants(d.structure), {}
    if d.structure.bounded:
        joint = vd[6 + np.array(d.structure.bounded)]
        values["acceleration_min"] = data["acceleration_min"] - joint
        values["acceleration_max"] = joint - data["acceleration_max"]
    if "limit_matrix" in data:
        values["limit"] = data["limit_lower"] - data["limit_matrix"] @ vd
    if "tangential" in c:
        mu = c["repeat"] @ data["friction"]
        values["friction"] = c["tangential"] @ f - mu * (c["normal"] @ f) + c["repeat"] @ data["friction_margin"]
        total = c["total"] @ f
        values["normal_min"], values["normal_max"] = data["normal_min"] - total, total - data["normal_max"]
    for name in ("grasp_force", "grasp_moment"):
        if name in c:
            values[name] = c[name] @ f - c[f"{name}_repeat"] @ data[name]
    return values


def residuals(d, data, vd, tau, f):
    """Largest entries of the equation of motion, of the contacts, and of what exceeds a bound."""
    motion = data["M"] @ vd + data["h"] - np.r_[np.zeros(6), tau]
    contact, worst = 0.0, [0.0, np.max(np.abs(tau) - np.array(d.structure.torque))]
    if len(f):
        motion -= data["force_map"] @ f
    if "contact_jacobian" in data:
        contact = np.max(np.abs(data["contact_jacobian"] @ vd - data["contact_acceleration"]))
    if "release" in data:
        worst.append(np.max(np.abs(data["release"] @ f)))
    worst += [np.max(value) for value in inequalities(d, data, vd, f).values()]
    return np.max(np.abs(motion)), contact, max(worst)


def _release_rows(contact, terms):
    """Combinations of a contact's force unknowns that are zero (released, unknowns)."""
    R = terms.frame(contact.frame).R
    G = contact.wrench_map(terms)
    return contact.free_directions @ np.vstack([R.T @ G[:3], R.T @ G[3:]])
