"""Plausibility checks of a robot file: patches off their links, overlapping links, feet in the air, invalid limits."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from mcplan.document.document import key_text, read_document
from mcplan.errors import Problem
from mcplan.robot.link_solids import overlaps, solids_of, without_permanent_overlaps
from mcplan.robot.robot import Robot
from mcplan.robot.solid import Solid, distances_to

MAX_PATCH_OFFSET_M = 0.004
"""Maximum distance (m) between a patch and the shapes of its link; beyond it, one touches before the other."""

MAX_GROUND_DEPTH_M, MAX_GROUND_HEIGHT_M = 0.005, 0.01
"""Maximum depth (m) of a patch below the ground in a posture, and maximum height (m) of the lowest patch above it."""


Key = tuple[str, ...]

Finding = tuple[Key, str]
"""Key in the robot file, and a message."""


def findings(robot: Robot) -> list[str]:
    """Return one sentence for each doubtful value of a robot, with file and line if it is in the robot file."""
    document = None if robot.path is None else read_document(robot.path)
    file = str(robot.urdf_path if document is None else document.path)

    def format_finding(key: Key, text: str) -> str:
        if key[0] == "postures" and robot.srdf_postures.intersection(key[1:]):
            return str(Problem(str(robot.srdf_path), None, f"group_state {key[-1]}", text))
        line = document.line(key) if document is not None and _contains(document.data, key) else None
        return str(Problem(file, line, key_text(key), text))

    return [format_finding(*finding) for finding in (*_patches(robot), *_limits(robot), *_postures(robot))]


def _contains(data: Any, key: Key) -> bool:
    """Return whether the data of a robot file contain a key path."""
    for name in key:
        if not isinstance(data, dict) or name not in data:
            return False
        data = data[name]
    return True


def _patches(robot: Robot) -> Iterator[Finding]:
    if not robot.patches:
        yield ("patches",), "there are none, so no contact is possible; `mcplan robot new` proposes some"
    for name, distance in patch_distances(robot).items():
        patch = robot.patches[name]
        if (
            distance > MAX_PATCH_OFFSET_M and patch.kind != "point"
        ):  # a point patch may lie outside the shapes, for example below a ball
            yield (
                ("patches", name),
                f"{1000 * distance:.1f} mm off the shapes of {patch.link}: the patch touches before its link",
            )
        elif -distance > MAX_PATCH_OFFSET_M:
            yield ("patches", name), f"{-1000 * distance:.1f} mm inside the shapes of {patch.link}, which touch first"


def patch_distances(robot: Robot) -> dict[str, float]:
    """Return for each patch, except grasps, the distance (m) to its link's shapes, negative inside them."""
    solids_of_body: dict[int, list[Solid]] = {}
    for link, geometries in robot.geometry.items():
        body, offset = robot.frame(link)
        solids_of_body.setdefault(body, []).extend(solids_of([g for g in geometries if not g.patch], offset))
    distances = {}
    for name, patch in robot.patches.items():
        body, offset = robot.frame(patch.link)
        if patch.kind != "grasp" and solids_of_body[body]:
            R, p = offset[:9].reshape(3, 3), offset[9:]
            distances[name] = float(distances_to(solids_of_body[body], patch.sample_points @ R.T + p).min())
    return distances


def _limits(robot: Robot) -> Iterator[Finding]:
    limits = robot.limits
    for quantity, values in (("torque", limits.torque), ("velocity", limits.velocity)):
        for joint in (name for name, value in zip(robot.joint_names, values, strict=True) if value == 0.0):
            yield ("limits", joint), f"the {quantity} limit is 0, so the joint cannot be used: lock it, or give a limit"
        if unlimited := [name for name, value in zip(robot.joint_names, values, strict=True) if np.isinf(value)]:
            yield ("limits",), f"{len(unlimited)} joints have no {quantity} limit: {', '.join(unlimited[:5])}"
    for joint, low, high in zip(robot.joint_names, limits.lower, limits.upper, strict=True):
        if low == high:
            yield ("limits", joint), f"lower and upper are both {low:g}, so the joint cannot move: lock it"


def _postures(robot: Robot) -> Iterator[Finding]:
    if "half_sitting" not in robot.postures and robot.patches and not robot.fixed:
        sizes = f"are taken from `{next(iter(robot.postures))}`" if robot.postures else "are not known"
        yield (
            ("postures",),
            "there is no half_sitting: scenarios without a posture start with all joints at zero; sizes (`robot.leg`) "
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
    lowest_points = {p: float((X[:3, :3] @ robot.patches[p].points.T + X[:3, 3:])[2].min()) for p, X in poses.items()}
    lowest_points = {p: height - robot.patches[p].radius for p, height in lowest_points.items()}
    if name in robot.srdf_postures and name != "half_sitting":
        return  # the base pose of an SRDF state is arbitrary
    for patch in (patch for patch, height in lowest_points.items() if height < -MAX_GROUND_DEPTH_M):
        yield key, f"{patch} is {-1000 * lowest_points[patch]:.0f} mm below the ground (z = 0): raise the base"
    if name != "half_sitting" or not lowest_points or min(lowest_points.values()) < -MAX_GROUND_DEPTH_M:
        return
    if min(lowest_points.values()) > MAX_GROUND_HEIGHT_M:
        patch, height = min(lowest_points.items(), key=lambda item: item[1])
        yield key, f"the lowest patch, {patch}, is {1000 * height:.0f} mm above the ground (z = 0): lower the base"
        return
    patches_on_ground = [p for p, height in lowest_points.items() if height < MAX_GROUND_HEIGHT_M]
    for patch in patches_on_ground:
        if len(robot.patches[patch].polygon) > 2 and poses[patch][2, 2] > 0.0:
            yield ("patches", patch), "its z axis points up where the robot stands on it, into the link; expected: down"
    points = np.vstack([(poses[p][:3, :3] @ robot.patches[p].points.T).T + poses[p][:3, 3] for p in patches_on_ground])
    com = robot.com(q)[:2]
    from scipy.spatial import ConvexHull, QhullError  # slow import

    try:
        distance_outside = float((ConvexHull(points[:, :2]).equations @ [*com, 1.0]).max())
    except (QhullError, ValueError):
        return
    if distance_outside > 0.0:
        yield (
            key,
            f"the centre of mass is {1000 * distance_outside:.0f} mm outside the hull of the patches on the ground",
        )
