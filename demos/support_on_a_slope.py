"""Where may the centre of mass be? The support region of one foot on a tilted plate, with and without a hand on a rail.

    python demos/support_on_a_slope.py

The region is the set of places of the centre of mass over which some forces within the friction cones balance gravity.
"""

import numpy as np

import mcplan as mc
from mcplan.scene.environment import Bar, Environment, Surface
from mcplan.scene.placement import make_contact
from mcplan.statics.support_region import support_region


def tilted(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


def main() -> None:
    robot = mc.load_robot("hrp2")
    corners = np.array([[-0.3, -0.3], [0.3, -0.3], [0.3, 0.3], [-0.3, 0.3]])
    rail = Bar("rail", np.array([[-0.5, 0.5, 0.8], [0.5, 0.5, 0.8]]), 0.02, 0.7)

    print("tilt   foot alone   foot and a grasping hand      [cm²]")
    for degrees in (0, 10, 20, 25, 30):
        plate = Surface("plate", tilted(np.radians(degrees)), np.zeros(3), corners, 0.05, 0.5)
        world = Environment(surfaces=(plate,), bars=(rail,))
        foot = make_contact(robot, world, {"patch": "left_sole", "surface": "plate", "x": 0.0, "y": 0.0, "yaw": 0.0})
        hand = make_contact(
            robot, world, {"patch": "left_grip", "surface": "rail", "along": 0.7, "angle": 0.0, "flip": False}
        )
        areas = [1e4 * support_region(contacts, robot.mass, exact=True).area for contacts in ([foot], [foot, hand])]
        print(f"{degrees:3d}°  {areas[0]:10.0f}   {areas[1]:10.0f}")
    print("friction 0.5 holds one foot up to 26.6°; beyond that only the hand's pull keeps the robot on the plate")


if __name__ == "__main__":
    main()
