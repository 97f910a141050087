"""Plausibility checks of a robot file: patches off their links, overlapping links, feet in the air, invalid limits."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from mcplan.document.document import key_text, read_document
from mcplan.errors import Problem
from mcplan.robot.link_solids import overlaps, solids_of, without_permanent_overlaps
from mcplan.robot.robot import Robot
from mcplan.robot.solid import Solid, distances_to

MAX_PATCH_OFFSET = 0.004
"""m: maximum distance between a patch and the shapes of its link; beyond it, one touches before the other."""

MAX_GROUND_DEPTH, MAX_GROUND_HEIGHT = 0.005, 0.01
"""m: maximum depth of a patch below the ground in a posture, and maximum height of the lowest patch above it."""


Key = tuple[str, ...]

Finding = tuple[Key, str]
"""Key in the robot file, and a message."""


def findings(robot: Robot) -> list[str]:
    """Return the doubtful values, one sentence each, with file and line if in the robot file."""
    document = None if robot.path is None else read_document(robot.path)
    place = str(robot.urdf_path if document is None else document.path)

    def text_of(key: Key, text: str) -> str:
        if key[0] == "postures" and robot.srdf_postures.intersection(key[1:]):
            return str(Problem(str(robot.srdf_path), None, f"group_state {key[-1]}", text))
        line = document.line(key) if document is not None and _contains(document.data, key) else None
        return str(Problem(place, line, key_text(key), text))

    return [text_of(*each) for each in (*_patches(robot), *_limits(robot), *_postures(robot))]


def _contains(data: Any, key: Key) -> bool:
    """Whether the robot file contains the whole key path."""
    for step in key:
        if not isinstance(data, dict) or step not in data:
            return False
        data = data[step]
    return True


def _patches(robot: Robot) -> Iterator[Finding]:
    if not robot.patches:
        yield ("patches",), "there are none, so no contact is possible; `mcplan robot new` proposes some"
    for name, (distance, depth) in patch_distances(robot).items():
        patch = robot.patches[name]
        if distance > MAX_PATCH_OFFSET and patch.kind != "point":  # a point may be off the shapes, as below a ball
            yield ("patches", name), f"{1000 * distance:.1f} mm off the shapes of {patch.link}, so it touches alone"
        elif depth > MAX_PATCH_OFFSET:
            yield ("patches", name), f"{1000 * depth:.1f} mm inside the shapes of {patch.link}, which touch first"


def patch_distances(robot: Robot) -> dict[str, tuple[float, float]]:
    """Return for each patch, except grasps, the distance (m) to its link's shapes and its depth inside them."""
    own: dict[int, list[Solid]] = {}
    for link, geometries in robot.geometry.items():
        body, offset = robot.frame(link)
        own.setdefault(body, []).extend(solids_of([g for g in geometries if not g.patch], offset))
    found = {}
    for name, patch in robot.patches.items():
        body, offset = robot.frame(patch.link)
        if patch.kind != "grasp" and own[body]:
            R, p = offset[:9].reshape(3, 3), offset[9:]
            distance = float(distances_to(own[body], patch.sample_points @ R.T + p).min())
            found[name] = (distance, -distance)
    return found


def _limits(robot: Robot) -> Iterator[Finding]:
    limits = robot.limits
    for what, values in (("torque", limits.torque), ("velocity", limits.velocity)):
        for joint in (name for name, value in zip(robot.joint_names, values, strict=True) if value == 0.0):
            yield ("limits", joint), f"the {what} limit is 0, so the joint cannot be used: lock it, or give a limit"
        if unlimited := [name for name, value in zip(robot.joint_names, values, strict=True) if np.isinf(value)]:
            yield ("limits",), f"{len(unlimited)} joints have no {what} limit: {', '.join(unlimited[:5])}"
    for joint, low, high in zip(robot.joint_names, limits.lower, limits.upper, strict=True):
        if low == high:
            yield ("limits", joint), f"lower and upper are both {low:g}, so the joint cannot move: lock it"


def _postures(robot: Robot) -> Iterator[Finding]:
    if "half_sitting" not in robot.postures and robot.patches and not robot.fixed:
        sizes = f"are those in `{next(iter(robot.postures))}`" if robot.postures else "are not known"
        yield (
            ("postures",),
            "there is no half_sitting: where a scenario names no posture, joints begin at zero; sizes (`robot.leg`) "
            f"and `feet` {sizes}",
        )
    for name in robot.postures:
        yield from _posture(robot, name)


def _posture(robot: Robot, name: str) -> Iterator[Finding]:
    key, q = ("postures", name), robot.posture(name)
    harmful = without_permanent_overlaps(robot, overlaps(robot, [q])[0])
    for pair, depth in sorted(harmful.items(), key=lambda item: -item[1]):
        yield (
            key,
            f"{' and '.join(sorted(pair))} overlap by {1000 * depth:.1f} mm; if that does no harm: "
            f"`collision: {{ignore: [[{', '.join(sorted(pair))}]]}}`",
        )
    poses = {patch: robot.frame_pose(q, patch) for patch, p in robot.patches.items() if p.kind != "grasp"}
    low = {p: float((X[:3, :3] @ robot.patches[p].points.T + X[:3, 3:])[2].min()) for p, X in poses.items()}
    low = {p: height - robot.patches[p].radius for p, height in low.items()}
    if name in robot.srdf_postures and name != "half_sitting":
        return  # the base pose of an SRDF state is arbitrary
    for patch in (patch for patch, height in low.items() if height < -MAX_GROUND_DEPTH):
        yield key, f"{patch} is {-1000 * low[patch]:.0f} mm below the ground (z = 0): raise the base"
    if name != "half_sitting" or not low or min(low.values()) < -MAX_GROUND_DEPTH:
        return
    if min(low.values()) > MAX_GROUND_HEIGHT:
        patch, height = min(low.items(), key=lambda item: item[1])
        yield key, f"the lowest patch, {patch}, is {1000 * height:.0f} mm above the ground (z = 0): lower the base"
        return
    standing = [p for p, height in low.items() if height < MAX_GROUND_HEIGHT]
    for patch in standing:
        if len(robot.patches[patch].polygon) > 2 and poses[patch][2, 2] > 0.0:
            yield ("patches", patch), "its z axis points up where the robot stands on it, into the link; expected: down"
    points = np.vstack([(poses[p][:3, :3] @ robot.patches[p].points.T).T + poses[p][:3, 3] for p in standing])
    com = robot.com(q)[:2]
    try:
        beyond = float((ConvexHull(points[:, :2]).equations @ [*com, 1.0]).max())
    except (QhullError, ValueError):
        return
    if beyond > 0.0:
        yield key, f"the centre of mass is {1000 * beyond:.0f} mm outside of what the robot stands on"
