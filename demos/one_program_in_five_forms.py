"""The controller's program in mixed velocities, in roll-pitch-yaw, the quaternion and the rotation matrix: one optimum.

    python demos/one_program_in_five_forms.py

S0 writes it in a minimal chart (eq. 36), projected on the tangent of the quaternion's constraint (eq. 37), or with the
constraint's multiplier (eq. 38); with nine numbers for the orientation there are six multipliers.
"""

import numpy as np

import mcplan as mc
from mcplan.whole_body.contact import ContactConstraint
from mcplan.whole_body.settings import FORMS, QPSettings
from mcplan.whole_body.tasks.com import ComTask
from mcplan.whole_body.tasks.posture import PostureTask
from mcplan.whole_body.whole_body import WholeBodyQP


def main() -> None:
    robot, floor = mc.load_robot("hrp2"), mc.Surface("floor", size=(4, 4))
    q = robot.posture("half_sitting")
    v = 0.2 * np.random.default_rng(0).normal(size=robot.nv)
    terms = mc.Terms(robot, ("left_sole", "right_sole"))
    terms.update(q, v)
    places = {"left_sole": 0.095, "right_sole": -0.095}
    soles = [ContactConstraint(mc.contact(robot, patch, floor, x=0.01, y=y)) for patch, y in places.items()]
    com = ComTask()
    com.position = terms.com + np.array([0.0, 0.02, 0.0])
    tasks = [com, PostureTask(q[7:])]

    answers = {}
    for form in FORMS:
        program = WholeBodyQP(robot, soles, tasks, QPSettings(form=form, compiled=False))
        program.update(terms, soles, tasks)
        answer = answers[form] = program.solve()
        if not answer.ok:
            raise SystemExit(f"{form}: {answer.message}")
        size = sum(variable.size for variable in program.problem.variables())
        print(f"{form:10s} {size:4d} unknowns, optimum {answer.objective:.9f}")
    apart = max(np.abs(answer.vd - answers["mixed"].vd).max() for answer in answers.values())
    print(f"accelerations differ by {apart:.0e} rad/s² or m/s² at most")


if __name__ == "__main__":
    main()
