"""The posture that a motion goes to, as the page shows it: where each link of the robot is."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.model.robot import Robot
from mcplan.sim.run import Run
from mcplan.view.node import node_name
from mcplan.view.robot import drawn_links


def ghost_data(
    robot: Robot, postures: Sequence[np.ndarray], spans: Sequence[tuple[float, float, int]]
) -> dict[str, Any]:
    """Return the nodes of links, their poses (position, quaternion x y z w) in each posture, and when which is next.

    Parameters
    ----------
    postures : (nq,) each.
    spans : begin, end, and number of the posture.
    """
    links = [link for link in drawn_links(robot) if robot.geometry.get(link)]
    poses = []
    for q in postures:
        rows = []
        for link in links:
            X = robot.frame_pose(q, link)
            xyzw = Rotation.from_matrix(X[:3, :3]).as_quat()
            rows.append([*np.round(X[:3, 3], 5).tolist(), *np.round(xyzw, 6).tolist()])
        poses.append(rows)
    return {"links": [node_name(link) for link in links], "poses": poses, "spans": [list(span) for span in spans]}


def run_ghost(run: Run, bands: Sequence[tuple[float, float, str]]) -> dict[str, Any]:
    """Return the posture of the stance that each phase of a run leads to."""
    stances = run.plan.stances
    changes = np.concatenate([[0], np.flatnonzero(np.diff(run.phase)) + 1])
    aims = [run.record.phases[run.phase[k]].stance for k in changes]
    spans = [(begin, end, aim) for (begin, end, _), aim in zip(bands, aims, strict=True) if aim is not None]
    return ghost_data(run.robot, [stance.q for stance in stances], spans)
