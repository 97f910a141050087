"""Collision shapes read from the texts in a run: the URDF's ``<collision>`` and the scenario's environment.

This reader is independent of mcplan's own readers, which provide the shapes of the certificate's distances.
"""

import xml.etree.ElementTree as ET
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.errors import RunError
from mcplan.record.records import MeshRecord, PlaceRecord, RobotRecord, RunRecord

PLATE_THICKNESS = 0.1
"""Thickness of the plate of a patch, as a share of the longest side of the patch."""


@dataclass(frozen=True, eq=False)
class CollisionShape:
    """A convex solid.

    Parameters
    ----------
    owner : name of the link, obstacle, surface, bar or object.
    kind : ``box``, ``sphere``, ``cylinder`` or ``capsule`` (both along z), or ``hull``.
    size : half lengths of a box; radius of a sphere; radius and half length of a cylinder or capsule; m.
    R, p : pose in the frame of the link or object; for others in the world.
    vertices : (k, 3) vertices of a hull, in the frame (R, p), m.
    """

    owner: str
    kind: str
    size: tuple[float, ...]
    R: np.ndarray
    p: np.ndarray
    vertices: np.ndarray | None = None


def link_shapes(record: RunRecord) -> Iterator[CollisionShape]:
    """Yield the shapes of the links, in the links' frames.

    A body with a patch but without shapes in the URDF gets a plate, a tenth as thick as the patch is long, or a ball.

    Raises
    ------
    RunError
        The URDF cannot be read.
    KeyError, IndexError, TypeError, ValueError
        A value is missing, or is not a number.
    """
    text = record.robot.files["robot.urdf"]
    if "<!DOCTYPE" in text:
        raise RunError("the URDF in this run has a DOCTYPE, which could name other files")
    try:
        root = ET.fromstring(text)
    except ET.ParseError as error:
        raise RunError(f"the URDF in this run cannot be read: {error}") from error
    links_with_shapes = set[str]()
    for link in root.iter("link"):
        for element in link.findall("collision"):
            geometry, origin = element.find("geometry"), element.find("origin")
            if geometry is None or not len(geometry):
                continue
            place = {} if origin is None else origin.attrib
            xyz, rpy = (_numbers(place.get(key, "0 0 0")) for key in ("xyz", "rpy"))
            R, p = Rotation.from_euler("xyz", rpy).as_matrix(), np.array(xyz)
            links_with_shapes.add(link.attrib["name"].strip())
            yield _link_shape(link.attrib["name"].strip(), geometry[0], R, p, record.robot.meshes)
    yield from _patch_shapes(record.robot, links_with_shapes)


def _patch_shapes(robot: RobotRecord, links_with_shapes: Collection[str]) -> Iterator[CollisionShape]:
    """Yield a plate or a ball for each patch of a body without shapes, in the frame of the patch's link."""
    body = list(range(len(robot.links)))
    for joint in robot.joints:
        if joint.coordinate < 0:  # fixed or locked: both links are one body
            kept, merged = body[joint.parent], body[joint.child]
            body = [kept if index == merged else index for index in body]
    bodies_with_shapes = {body[i] for i, link in enumerate(robot.links) if link.name in links_with_shapes}
    for patch in robot.patches:
        R, p, owner = np.array(patch.R), np.array(patch.p), robot.links[patch.link].name
        if body[patch.link] in bodies_with_shapes:
            continue
        if patch.kind == "ball":
            yield CollisionShape(owner, "sphere", (patch.radius,), R, p)
        elif patch.kind == "surface" and len(patch.polygon) > 2:
            top = np.column_stack([patch.polygon, np.zeros(len(patch.polygon))])
            bottom = top - [0.0, 0.0, PLATE_THICKNESS * np.ptp(top, axis=0).max()]
            yield CollisionShape(owner, "hull", (), R, p, np.vstack([top, bottom]))


def scene_shapes(record: RunRecord) -> Iterator[CollisionShape]:
    """Yield the shapes of surfaces, bars and obstacles in the world, at their poses in the physics."""
    environment = record.scenario.document.get("environment") or {}
    for item in environment.get("surfaces") or ():
        yield _surface_shape(item, record.world.surfaces.get(item["name"]))
    for item in environment.get("bars") or ():
        ends = np.array(item["ends"], float)
        axis = ends[1] - ends[0]
        length = float(np.linalg.norm(axis))
        R = Rotation.align_vectors([axis / length], [[0.0, 0.0, 1.0]])[0].as_matrix()
        yield CollisionShape(item["name"], "cylinder", (float(item["radius"]), length / 2), R, ends.mean(axis=0))
    for item in environment.get("obstacles") or ():
        yield _body_shape(item, *_pose(item), record.plan.meshes)


def object_shapes(record: RunRecord) -> Iterator[CollisionShape]:
    """Yield the shapes of free objects, in their own frames."""
    environment = record.scenario.document.get("environment") or {}
    for item in environment.get("objects") or ():
        yield _body_shape(item, np.eye(3), np.zeros(3), record.plan.meshes)


def _link_shape(
    link: str, shape: ET.Element, R: np.ndarray, p: np.ndarray, meshes: Mapping[str, MeshRecord]
) -> CollisionShape:
    if shape.tag == "mesh":
        name = shape.attrib["filename"].strip()
        if name not in meshes:
            raise RunError(f"the mesh {name} of link {link} is not in this run")
        scale = np.array(_numbers(shape.attrib.get("scale", "1 1 1")))
        return CollisionShape(link, "hull", (), R, p, np.array(meshes[name].vertices) * scale)
    if shape.tag == "box":
        return CollisionShape(link, "box", tuple(x / 2 for x in _numbers(shape.attrib["size"])), R, p)
    radius = float(shape.attrib["radius"])
    size = (radius,) if shape.tag == "sphere" else (radius, float(shape.attrib["length"]) / 2)
    return CollisionShape(link, shape.tag, size, R, p)


def _body_shape(item: dict[str, Any], R: np.ndarray, p: np.ndarray, meshes: Mapping[str, MeshRecord]) -> CollisionShape:
    name = item["name"]
    if "mesh" in item:
        if name not in meshes:
            raise RunError(f"the mesh of {name} is not in this run")
        return CollisionShape(name, "hull", (), R, p, np.array(meshes[name].vertices))
    if "hull" in item:
        return CollisionShape(name, "hull", (), R, p, np.array(item["hull"]["points"], float))
    if "box" in item:
        return CollisionShape(name, "box", tuple(x / 2 for x in item["box"]["size"]), R, p)
    kind = next(kind for kind in ("sphere", "cylinder", "capsule") if kind in item)
    values = item[kind]
    size = (float(values["radius"]),) + ((values["length"] / 2,) if kind != "sphere" else ())
    return CollisionShape(name, kind, size, R, p)


def _surface_shape(item: dict[str, Any], place: PlaceRecord | None) -> CollisionShape:
    """Return the solid below a surface, as the hull of its corners."""
    R, p = _pose(item) if place is None else (np.array(place.R), np.array(place.p))
    thickness = float(item.get("thickness", 0.05))
    if item.get("size") is not None:
        half = np.array(item["size"], float) / 2
        return CollisionShape(item["name"], "box", (*half, thickness / 2), R, p - R[:, 2] * thickness / 2)
    polygon = np.array(item["polygon"], float)
    top = np.column_stack([polygon, np.zeros(len(polygon))])
    return CollisionShape(item["name"], "hull", (), R, p, np.concatenate([top, top - [0.0, 0.0, thickness]]))


def _pose(item: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    pose = item.get("pose") or {}
    if pose.get("quat_wxyz") is not None:
        R = Rotation.from_quat(pose["quat_wxyz"], scalar_first=True).as_matrix()
    else:
        R = Rotation.from_euler("xyz", pose.get("rpy") or (0.0, 0.0, 0.0)).as_matrix()
    return R, np.array(pose.get("xyz") or (0.0, 0.0, 0.0), float)


def _numbers(text: str) -> list[float]:
    return [float(word) for word in text.split()]
