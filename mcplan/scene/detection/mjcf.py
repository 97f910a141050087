"""MJCF reader: MuJoCo worlds, parsed by MuJoCo itself, which resolves defaults, classes and frames."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from mcplan.robot.description import Box, Capsule, Cylinder, MeshShape, Sphere
from mcplan.robot.mesh_file import MeshError
from mcplan.robot.xml_reader import Element
from mcplan.scene.detection.geometry import SceneGeometry, tessellate
from mcplan.scene.detection.triangles import grid

FORBIDDEN_TAGS = ("include", "plugin", "extension", "attach", "model", "replicate", "composite", "flexcomp")
"""Elements that load other files, run plugins, or generate many elements."""

SIZE_ATTRIBUTES = {"hfield": ("nrow", "ncol"), "texture": ("width", "height"), "user": ("dim",), "size": ("nuserdata",)}
"""For each element that allocates many values, the attributes whose product is their number."""

MAX_CELLS = 1 << 26
"""Maximum number of values of all these elements plus pixels of images: four images of 4096 x 4096."""

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
"""First bytes of a PNG image."""

DIRECTORY_ATTRIBUTES = ("assetdir", "meshdir", "texturedir")
"""Attributes of the compiler element that name folders of files."""


def read_mjcf(root: Element, path: Path) -> SceneGeometry:
    """Return the collision geometry of an MJCF document.

    Raises
    ------
    MeshError
        MuJoCo is not installed or refuses the file, or the file refers to others outside its folder.
    """
    if find_spec("mujoco") is None:
        raise MeshError("a world of MuJoCo needs the package mujoco: pip install mujoco")
    import mujoco

    files = _referenced_files(root, path.resolve().parent, [""])
    _check_size(root, files)
    try:
        model: Any = mujoco.MjModel.from_xml_path(str(path))
    except (ValueError, RuntimeError, MemoryError, mujoco.FatalError) as error:
        raise MeshError(f"MuJoCo does not take it: {str(error).splitlines()[0][:200]}") from None
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    world, unsupported = SceneGeometry(files=files), 0
    for k in range(model.ngeom):
        if not model.geom_contype[k] and not model.geom_conaffinity[k]:
            continue  # visual only
        R, p = data.geom_xmat[k].reshape(3, 3).copy(), data.geom_xpos[k].copy()
        unsupported += not _add_shape(world, mujoco, model, k, R, p)
    if unsupported:
        world.notices.append(f"{unsupported} shapes of unsupported kinds are left out")
    bodies = [k for k in range(1, model.nbody) if model.body_weldid[k] and model.body_geomnum[k]]
    world.note_moving([model.body(k).name or f"body {k}" for k in bodies])
    return world


def _add_shape(world: SceneGeometry, mujoco: Any, model: Any, k: int, R: np.ndarray, p: np.ndarray) -> bool:
    """Add shape k of a model at its pose; return whether its kind is supported."""
    kind, size, types = model.geom_type[k], [float(x) for x in model.geom_size[k]], mujoco.mjtGeom
    if kind == types.mjGEOM_PLANE:
        world.add_plane(R, p, size[0], size[1])
    elif kind == types.mjGEOM_BOX:
        world.add(Box((2 * size[0], 2 * size[1], 2 * size[2])), R, p)
    elif kind == types.mjGEOM_SPHERE:
        world.add(Sphere(size[0]), R, p)
    elif kind == types.mjGEOM_ELLIPSOID:
        vertices, faces = tessellate(Sphere(1.0))
        world.add(MeshShape(vertices * size, faces), R, p)
    elif kind == types.mjGEOM_CYLINDER:
        world.add(Cylinder(size[0], 2 * size[1]), R, p)
    elif kind == types.mjGEOM_CAPSULE:
        world.add(Capsule(size[0], 2 * size[1]), R, p)
    elif kind == types.mjGEOM_MESH:
        mesh = model.mesh(int(model.geom_dataid[k]))
        vertices = model.mesh_vert[mesh.vertadr[0] : mesh.vertadr[0] + mesh.vertnum[0]]
        faces = model.mesh_face[mesh.faceadr[0] : mesh.faceadr[0] + mesh.facenum[0]]
        world.add(MeshShape(np.array(vertices, float), np.array(faces, np.int64)), R, p)
    elif kind == types.mjGEOM_HFIELD:
        i = int(model.geom_dataid[k])
        rows, columns, first = model.hfield_nrow[i], model.hfield_ncol[i], model.hfield_adr[i]
        x, y, top, _ = (float(value) for value in model.hfield_size[i])
        heights = top * np.array(model.hfield_data[first : first + rows * columns], float).reshape(rows, columns)
        world.add(MeshShape(*grid(heights, 2 * x / (columns - 1), 2 * y / (rows - 1))), R, p)
    else:
        return False
    return True


def _referenced_files(element: Element, folder: Path, directories: list[str]) -> set[Path]:
    """Return the referenced files; raise a MeshError for files outside the folder and elements that load models."""
    files = set[Path]()
    if element.tag in FORBIDDEN_TAGS:
        raise MeshError(f"line {element.line}: <{element.tag}> is not allowed in a world; put it all into one file")
    if element.tag == "compiler":
        directories += [element.attributes[name] for name in DIRECTORY_ATTRIBUTES if name in element.attributes]
    for name in (value for key, value in element.attributes.items() if key.startswith("file") and value):
        candidates = {(folder / directory / name).resolve() for directory in directories}
        if not all(path.is_relative_to(folder) for path in candidates):
            raise MeshError(f"line {element.line}: {name[:60]} lies outside the file's folder")
        files |= {path for path in candidates if path.is_file()}
    for child in sorted(element.children, key=lambda child: child.tag != "compiler"):
        files |= _referenced_files(child, folder, directories)
    return files


def _check_size(root: Element, files: set[Path]) -> None:
    """Raise a MeshError if MuJoCo would allocate very much memory for the document, however short it is."""
    stack, cells = [root], float(sum(_pixel_count(file) for file in files))
    while stack:
        element = stack.pop()
        stack += element.children
        location = f"line {element.line}: <{element.tag[:40]}>"
        if element.tag == "mesh" and "builtin" in element.attributes:
            raise MeshError(f"{location}: a built-in mesh is not read; give its file")
        cells += _cell_count(element)
        if not cells <= MAX_CELLS:
            raise MeshError(f"{location}: height fields, textures and images of more than {MAX_CELLS} cells")


def _cell_count(element: Element) -> float:
    """Return the number of values that an element allocates."""
    sizes = [
        _attribute_value(element, name) for name in SIZE_ATTRIBUTES.get(element.tag, ()) if name in element.attributes
    ]
    if element.tag == "texture" and element.attributes.get("type", "cube") != "2d":
        return 6.0 * _attribute_value(element, "width") ** 2  # a cube map; the height does not matter
    return abs(float(np.prod(sizes))) if sizes else 0.0


def _attribute_value(element: Element, name: str) -> float:
    """Return the number in an attribute, 0 by default."""
    text = element.attributes.get(name, "0")
    try:
        return float(text)
    except ValueError:
        raise MeshError(f"line {element.line}: <{element.tag}>: {text[:20]} is no size") from None


def _pixel_count(path: Path) -> int:
    """Return the number of pixels of an image; 0 for other files."""
    with path.open("rb") as file:
        head = file.read(24)
    return int.from_bytes(head[16:20]) * int.from_bytes(head[20:24]) if head.startswith(PNG_SIGNATURE) else 0
