"""A run's joints as a ROS 2 ``trajectory_msgs/msg/JointTrajectory``, in the YAML that ``ros2 topic pub`` takes."""

from pathlib import Path

import yaml

from mcplan.sim.run import Run
from mcplan.whole_file import write_text

RATE = 50.0
"""Points per second unless said otherwise."""


def write(run: Run, path: Path, rate: float | None = None) -> list[Path]:
    """Write the message; return the file. Positions in rad or m, efforts in N m or N."""
    rows = run.every(RATE if rate is None else rate)
    points = []
    for k in rows:
        nanoseconds = round(float(run.t[k] - run.t[0]) * 1e9)
        points.append(
            {
                "positions": run.q[k, 7:].tolist(),
                "velocities": run.v[k, 6:].tolist(),
                "accelerations": run.vd[k, 6:].tolist(),
                "effort": run.tau[k].tolist(),
                "time_from_start": {"sec": nanoseconds // 10**9, "nanosec": nanoseconds % 10**9},
            }
        )
    header = {"stamp": {"sec": 0, "nanosec": 0}, "frame_id": ""}
    message = {"header": header, "joint_names": list(run.record.joints), "points": points}
    write_text(path, yaml.safe_dump(message, sort_keys=False, default_flow_style=None, width=10**6))
    return [path]
