"""Triangle counts of COLLADA and glTF files before reading: a guard against hostile files.

A short file can instantiate one mesh many times by nested nodes, and the mesh library expands all of them: a file of a
few kilobytes could fill the memory. Therefore instances are counted first, from the document alone.

Sources: COLLADA 1.4.1, ``instance_node`` and ``library_nodes``; glTF 2.0, accessors and the hierarchy of nodes.
"""

import json
from collections.abc import Iterator
from typing import Any

from mcplan.robot.xml_reader import Element

MAX_NESTING = 100
"""Maximum depth of nested nodes in a COLLADA file."""


class MeshCountError(ValueError):
    """The triangles of a file cannot be counted."""


def collada_counts(root: Element) -> tuple[int, int]:
    """Return the numbers of nodes and triangles of the largest scene in a COLLADA document, instances expanded.

    Raises
    ------
    MeshCountError
        A node contains itself, or nodes are nested too deep.
    """
    counts = _Collada(root)
    scenes = [counts.count(element, 0) for element in _descendants(root) if _tag(element) == "visual_scene"]
    return max((nodes for nodes, _ in scenes), default=0), max((triangles for _, triangles in scenes), default=0)


class _Collada:
    """Counter of nodes and triangles of a COLLADA document, with a cache for each node."""

    def __init__(self, root: Element):
        self.nodes: dict[str, list[Element]] = {}
        self.triangles: dict[str, int] = {}
        self._counts: dict[int, tuple[int, int] | None] = {}
        for element in _descendants(root):
            name = element.attributes.get("id", "")
            if _tag(element) == "node":
                self.nodes.setdefault(name, []).append(element)
            elif _tag(element) == "geometry":
                triangles = sum(map(_triangle_count, _descendants(element)))
                self.triangles[name] = max(triangles, self.triangles.get(name, 0))

    def count(self, node: Element, depth: int) -> tuple[int, int]:
        """Return the numbers of nodes and triangles in a node or scene; it counts as a node itself.

        ``depth`` is the number of nodes that contain it.
        """
        if id(node) in self._counts:
            counts = self._counts[id(node)]
            if counts is None:
                raise MeshCountError(f"line {node.line}: the node {node.attributes.get('id', '')[:40]!r} holds itself")
            return counts
        if depth > MAX_NESTING:
            raise MeshCountError(f"line {node.line}: nodes are nested more than {MAX_NESTING} deep")
        self._counts[id(node)] = None
        nodes, triangles = 1, 0
        for child in node.children:
            name = child.attributes.get("url", "").removeprefix("#")
            if _tag(child) == "instance_geometry":
                choices = [(1, self.triangles.get(name, 0))]
            elif _tag(child) == "instance_node":
                choices = [self.count(choice, depth + 1) for choice in self.nodes.get(name, ())]
            else:
                choices = [self.count(child, depth + 1)] if _tag(child) == "node" else []
            nodes += max((choice[0] for choice in choices), default=0)
            triangles += max((choice[1] for choice in choices), default=0)
        self._counts[id(node)] = nodes, triangles
        return nodes, triangles


def _triangle_count(element: Element) -> int:
    """Return the number of triangles of an element: k - 2 for a polygon of k corners, 0 for other elements."""
    if _tag(element) not in ("triangles", "polylist", "polygons", "tristrips", "trifans"):
        return 0
    parts = [child for child in element.children if _tag(child) == "p"]
    offsets = [child.attributes.get("offset", "0") for child in element.children if _tag(child) == "input"]
    stride = 1 + max((int(offset) for offset in offsets if offset.isdecimal()), default=0)
    corners = sum(part.words for part in parts) // stride
    if _tag(element) == "triangles":
        return corners // 3
    polygons = sum(child.words for child in element.children if _tag(child) == "vcount") or len(parts)
    return corners - 2 * min(polygons, corners // 3)  # a polygon has at least three corners


def _descendants(root: Element) -> Iterator[Element]:
    stack = [root]
    while stack:
        element = stack.pop()
        yield element
        stack += element.children


def _tag(element: Element) -> str:
    """Return the tag without the prefix of a namespace."""
    return element.tag.rpartition(":")[2]


def gltf_counts(data: bytes, binary: bool) -> tuple[int, int]:
    """Return the numbers of accessor items and of triangles, nodes expanded, in a glTF document.

    Parameters
    ----------
    binary : whether the file is a GLB, with the document in the first chunk.

    Raises
    ------
    MeshCountError
        The data are not a glTF document, or an accessor has a count without data.
    """
    try:
        if binary:
            data = data[20 : 20 + int.from_bytes(data[12:16], "little")]
        document = json.loads(data)
        return _gltf(document)
    except MeshCountError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise MeshCountError(f"{type(error).__name__}: {str(error)[:100]}") from None


def _gltf(document: Any) -> tuple[int, int]:
    accessors, nodes = document.get("accessors", []), document.get("nodes", [])
    for k, accessor in enumerate(accessors):
        if "bufferView" not in accessor and "sparse" not in accessor:
            raise MeshCountError(f"accessors[{k}] has no bufferView (compressed meshes are not read)")
        if not isinstance(accessor["count"], int) or accessor["count"] < 0:
            raise MeshCountError(f"accessors[{k}].count is not a whole number from 0 on")

    def triangle_count(item: Any) -> int:
        accessor = item["attributes"].get("POSITION") if item.get("indices") is None else item["indices"]
        corners = 0 if accessor is None else accessors[accessor]["count"]
        mode = item.get("mode", 4)  # up to 3 points and lines, 4 triangles, then strips and fans
        return 0 if mode < 4 else corners // 3 if mode == 4 else corners

    meshes = [sum(map(triangle_count, mesh["primitives"])) for mesh in document.get("meshes", [])]

    def triangles(numbers: Any) -> int:
        return sum(meshes[nodes[k]["mesh"]] for k in numbers if "mesh" in nodes[k])

    roots = max((triangles(scene.get("nodes", ())) for scene in document.get("scenes", ())), default=0)
    expanded = roots + sum(triangles(node.get("children", ())) for node in nodes)
    return sum(accessor["count"] for accessor in accessors), max(expanded, sum(meshes))
