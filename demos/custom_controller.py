"""A custom controller: terms in CVXPY join the whole-body program, and the compiled whole runs at control rate.

    python demos/custom_controller.py

HRP-2 leans on a table and sways. The added terms keep its angular momentum small and its left hand's force at 20 N.
"""

import time

import cvxpy as cp
import numpy as np

import mcplan as mc
from mcplan.whole_body.contact import ContactConstraint
from mcplan.whole_body.tasks.com import ComTask
from mcplan.whole_body.tasks.pose import LinkPoseTask
from mcplan.whole_body.tasks.posture import PostureTask
from mcplan.whole_body.whole_body import WholeBodyQP

DT, TICKS, FORCE = 1e-3, 2000, 20.0

SOLES = [
    {"patch": f"{side}_sole", "surface": "floor", "x": 0.01, "y": y} for side, y in (("left", 0.095), ("right", -0.095))
]
HAND = {"patch": "left_hand", "surface": "table", "x": 0.05, "y": 0.28}
LEAN = [{"contacts": SOLES}, {"add": HAND}, {"com": [0.05, 0.0, 0.80]}]


def main() -> None:
    # the posture and the contacts: those of the bundled scenario, with the other hand
    scenario = mc.load_scenario("table_hand", {"stances": LEAN})
    robot, stance = scenario.robot, mc.plan(scenario).stances[-1]
    contacts = [ContactConstraint(contact) for contact in stance.contacts]
    hand = contacts[-1]

    com, trunk = ComTask(), LinkPoseTask("BODY", position=False, weight=5.0, kp=100.0)
    tasks = [com, trunk, PostureTask(stance.q[7:])]
    terms = mc.Terms(robot, ["left_sole", "right_sole", "left_hand", "BODY"])
    terms.update(stance.q, np.zeros(robot.nv))
    rest, trunk.R = terms.com.copy(), terms.frame("BODY").R.copy()

    # added cost: |A vd - b|² with the angular rows of the momentum, and the normal force of the hand
    A, b = cp.Parameter((3, robot.nv), name="momentum_matrix"), cp.Parameter(3, name="momentum_rate")

    def extra(qp: WholeBodyQP):
        normal = cp.sum(qp.force_of("left_hand")[2::3])
        return [cp.sum_squares(A @ qp.vd - b), cp.square(normal - FORCE)], []

    qp = WholeBodyQP(robot, contacts, tasks, extra=extra)

    q, v = stance.q, np.zeros(robot.nv)
    seconds, forces, momenta = [], [], []
    for k in range(TICKS):
        phase = np.pi * k * DT
        com.position = rest + np.array([0.0, 0.02 * np.sin(phase), 0.0])
        com.velocity = np.array([0.0, 0.02 * np.pi * np.cos(phase), 0.0])
        start = time.perf_counter()
        terms.update(q, v)
        A.value, b.value = terms.momentum_matrix[3:], -5.0 * terms.momentum[3:] - terms.momentum_bias[3:]
        qp.update(terms, contacts, tasks)
        answer = qp.solve()
        seconds.append(time.perf_counter() - start)
        if not answer.ok:
            raise SystemExit(f"tick {k}: {answer.message}")
        forces.append(float(hand.contact.normal @ answer.wrenches["left_hand"][:3]))
        momenta.append(float(np.linalg.norm(terms.momentum[3:])))
        v = v + DT * answer.vd
        q = robot.integrate(q, v, DT)

    print(f"swayed by 2 cm for {TICKS * DT:g} s, angular momentum at most {max(momenta):.2f} N m s")
    print(f"tick {1e3 * np.median(seconds):.2f} ms; left hand {min(forces):.2f} to {max(forces):.2f} N of {FORCE:g} N")


if __name__ == "__main__":
    main()
