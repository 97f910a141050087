"""How does an arm wipe a wall? Operational space control: motion along the wall, a force of 20 N across it.

    python demos/arm_on_a_wall.py

The scenario names the controller; the physics are the library's own, which know nothing of it.
"""

import numpy as np

import mcplan as mc


def main() -> None:
    robot = mc.load_robot("arm7")
    q = robot.posture("ready")
    x, _, z = robot.frame_pose(q, "tip")[:3, 3]

    # a wall where the tip is, on which it may slide: friction of 4 N then opposes it
    wall = mc.Surface("wall", xyz=(x, 0, z), rpy=(0, -np.pi / 2, 0), size=(0.8, 0.8), friction=0.2)
    tip = mc.contact(robot, "tip", wall, near=q, slide=["x", "y"])
    corners = [(0.1, 0.0), (0.1, 0.08), (-0.1, 0.08), (-0.1, 0.0)]
    control = {
        "type": "operational_space",
        "duration": 5.0,
        "textbook": {
            "frame": "tip",
            "kp": 1600.0,
            "path": [{"xyz": [x, dy, z + dz]} for dy, dz in corners],
            "over": 1.0,
            "press": [20.0, 0.0, 0.0],
        },
    }
    scenario = mc.Scenario(robot, mc.Environment([wall]), [tip], posture=q, control=control, name="wipe")
    run = mc.simulate(mc.plan(scenario), physics="contact")

    force = -run.wrench[:, run.patches.index("tip"), 0]
    path = robot.frame_pose(run.q, "tip")[:, :3, 3]
    for k in range(1, 5):
        i = 1000 * k - 1
        missed = np.linalg.norm(path[i, 1:] - np.array(corners[k - 1]) - [0.0, z])
        print(f"corner {k}: missed by {1e3 * missed:.1f} mm, force {force[i]:.1f} N")
    wiped = np.linalg.norm(np.diff(path, axis=0), axis=1).sum()
    print(f"wiped {wiped:.2f} m; certificate holds: {mc.verify(run).success}")
    print(f"pressed with {force[200:].min():.1f} to {force[200:].max():.1f} N, {force[200:].mean():.1f} N in the mean")


if __name__ == "__main__":
    main()
