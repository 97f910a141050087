"""Programs that have no solution for the most part, or no unique one."""

import cvxpy as cp

from tests.whole_body.random_programs import fill


def no_motors(case, rng):
    """Torque limits of a thousandth: the limbs can neither hang still nor carry."""
    return fill(case, rng)


def too_much_force(case, rng):
    """A contact must press with two hundred times the robot's weight, or with more than it may."""

    def change(contacts):
        for contact in contacts:
            contact.min_force = 200 * 9.81 * case.robot.full.mass

    return fill(case, rng, change=change)


def torn_contacts(case, rng):
    """The contacts are asked to part faster than the joints' bounds allow."""

    def change(contacts):
        for contact in contacts:
            contact.kp, contact.p = 1e4, contact.p + rng.normal(size=3)

    return fill(case, rng, change=change)


def pulled_up(case, rng):
    """The robot may not move, and is pulled: by less than the contacts bear, or by more."""

    def still(qp):
        return [], [qp.vd == 0]

    def change(contacts):
        for contact in contacts:
            contact.kp = 0.0

    return fill(case, rng, still, change, rest=True)


def free_variable(case, rng):
    """The user adds a variable with a price and no bound on the side where it pays; sometimes the price is zero."""

    def added(qp):
        z, price = cp.Variable(2), cp.Parameter(2, name="price")
        qp.price = price
        return [price @ z], [z >= -1.0]

    kind = fill(case, rng, extra=added)
    case.qp.price.value = rng.normal(size=2) * (rng.random(2) < 0.6)
    case.qp.fast.compiled.set(case.qp.price, case.qp.price.value)
    return kind


def no_regularisation(case, rng):
    """Nothing but linear terms in the accelerations: they fall for ever unless limits catch them."""
    kind = fill(case, rng)
    for name in ("acceleration_weight", "task_matrix", "force_weight"):
        if name in case.qp.data:
            case.qp.data[name][...] = 0.0
    case.qp.data["acceleration_pull"][...] = rng.normal(size=case.robot.nv)
    return kind


def linear_with_limits(case, rng):
    """The same with the limits: a linear program."""
    return no_regularisation(case, rng)


UNLIMITED = {"torque_limits": False, "velocity_limits": False, "position_limits": False}
HARD = {
    no_motors: {"torque": 1e-3},
    too_much_force: {},
    torn_contacts: {},
    pulled_up: {},
    free_variable: {},
    no_regularisation: {**UNLIMITED, "wrench_weight": None, "torque_weight": 0.0},
    linear_with_limits: {"wrench_weight": None, "torque_weight": 0.0},
}
"""Kinds of infeasible programs, and the structure that each needs."""
