"""A robot as separate bodies, as the engines of games take it: poses, velocities and forces there and back.

    python demos/bodies_apart.py

Six numbers for each body instead of one for each joint: joints become constraints, and violations are printed.
"""

import numpy as np

import mcplan as mc


def main() -> None:
    robot = mc.load_robot("hrp2")
    bodies = mc.coordinates.Maximal(robot)
    q, rng = robot.random_configuration(1), np.random.default_rng(0)
    v, tau = rng.normal(size=robot.nv), rng.normal(size=robot.n)
    print(f"{len(bodies.bodies)} bodies, {6 * len(bodies.bodies)} velocities; {robot.nv} of the robot")

    found = bodies.configuration(bodies.poses(q))
    print(f"configuration from poses:        {np.abs(robot.difference(q, found)).max():.0e}")
    V = bodies.velocity(q, v)
    print(f"velocity by least squares:       {np.abs(bodies.generalized_velocity(q, V) - v).max():.0e}")
    print(f"velocity body by body:           {np.abs(bodies.joint_rates(q, V) - v).max():.0e}")
    torque = bodies.body_torques(q, bodies.hinge_torques(tau))
    force = bodies.generalized_force(q, np.zeros_like(torque), torque)
    print(f"joint torques through the links: {np.abs(force[6:] - tau).max():.0e}")
    weight = np.outer(bodies.mass, [0.0, 0.0, -9.81])
    gravity = bodies.generalized_force(q, weight, np.zeros_like(weight))
    print(f"weight of the bodies as torques: {np.abs(gravity + robot.nonlinear_effects(q, 0 * v)).max():.0e}")
    try:
        bodies.generalized_velocity(q, V + np.eye(len(V))[4])
    except mc.InputError as error:
        print("one body faster by 1 m/s:       ", error)
    wanted = rng.normal(size=robot.nv)
    apart = bodies.generalized_force(q, *bodies.body_forces(q, wanted)) - wanted
    print(f"a force shared among the bodies: {np.abs(apart).max():.0e}")


if __name__ == "__main__":
    main()
