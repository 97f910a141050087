"""How much room has the centre of mass when it accelerates? Regions of a stance with a hand on a table.

    python demos/room_to_move.py

At rest its height does not matter; the harder the robot is pushed, the less room it has the higher it stands.
"""

import numpy as np

import mcplan as mc


def main() -> None:
    plan = mc.plan("table_hand")
    robot, stance = plan.scenario.robot, plan.stances[2]
    q, contacts = stance.q, stance.contacts
    com = robot.com(q)

    hand = contacts[-1]
    cone = mc.wrench_cone(hand)
    print(f"{hand.patch} on {hand.support}: {len(cone.A)} faces and {len(cone.rays)} rays of its wrench cone")
    flat = mc.support_region(robot, q, contacts)
    zmp = mc.zmp_area(com, contacts, robot.mass)
    print(f"centre of mass at rest: {1e4 * flat.area:.0f} cm²; ZMP on the floor: {1e4 * zmp.area:.0f} cm²")

    heights = com[2] + np.array([-0.4, 0.0, 0.4])
    print("acceleration    area at three heights [cm²]      room around the centre of mass")
    for acceleration in (0.0, 0.5, 1.0, 2.0):
        region = mc.com_polyhedron(contacts, robot.mass, acceleration)
        areas = "  ".join(f"{1e4 * region.section(z).area:6.0f}" for z in heights)
        depth = region.depth(com)
        room = f"{1e3 * depth:.0f} mm" if depth > 0.0 else "none"
        print(f"{acceleration:6.1f} m/s²    {areas}      {room:>12s}")
    print(f"without a push nothing is missing: {mc.shortfall(robot, q, contacts) is None}")


if __name__ == "__main__":
    main()
