"""The bundled arm in front of a wall that its tip touches."""

import numpy as np

import mcplan as mc

FLOOR = mc.Surface("floor", size=(4, 4))


def arm():
    return mc.load_robot("arm7")


def free_arm(**control):
    """Return the plan of the arm standing in the air."""
    simulation = {"physics": "contact", "time_limit": 20}
    return mc.plan(mc.Scenario(arm(), mc.Environment([FLOOR]), posture="ready", control=control, simulation=simulation))


def arm_at_wall(friction=0.2, **control):
    """Return the plan of the arm whose tip touches a wall, free to slide along it."""
    robot = arm()
    q = robot.posture("ready")
    x = robot.frame_pose(q, "tip")[0, 3]
    wall = mc.Surface("wall", xyz=(x, 0, 0.9), rpy=(0, -np.pi / 2, 0), size=(1, 1), friction=friction)
    tip = mc.contact(robot, "tip", wall, near=q, slide=["x", "y"])
    simulation = {"physics": "contact", "time_limit": 20}
    return mc.plan(
        mc.Scenario(
            robot, mc.Environment([FLOOR, wall]), [tip], posture="ready", control=control, simulation=simulation
        )
    )
