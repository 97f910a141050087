"""The mesh files of a scenario, which its text only names."""

from functools import lru_cache
from pathlib import Path

from mcplan.document import Document
from mcplan.model.mesh_file import SCENE_SUFFIXES, WORLDS, MeshFiles
from mcplan.scene.found.world_file import read_world
from mcplan.sweep.identity import file_digest


def mesh_digests(document: Document) -> tuple[str, ...]:
    """Return the sha256 (hex) of each mesh file of a scenario: its environment's, what that names, those of solids."""
    environment = document.data.get("environment") or {}
    solids = [solid for kind in ("obstacles", "objects") for solid in environment.get(kind) or ()]
    files = MeshFiles(Path(document.path), suffixes=SCENE_SUFFIXES)
    found = list[Path]()
    if "mesh" in environment:
        whole = files.find(environment["mesh"])
        stat = whole.stat()
        found += [whole, *_files_of_world(whole, stat.st_mtime_ns, stat.st_size)]
    found += [files.find(solid["mesh"]["file"]) for solid in solids if "mesh" in solid]
    return tuple(map(file_digest, found))


@lru_cache(maxsize=64)
def _files_of_world(path: Path, _modified: int, _size: int) -> tuple[Path, ...]:
    return tuple(sorted(read_world(path).files)) if path.suffix.lower() in WORLDS else ()
