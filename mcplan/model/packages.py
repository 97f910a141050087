"""Where the package of ``package://NAME/path`` is installed: by ROS, by conda, or as a Python package."""

import os
import site
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path

from mcplan.errors import RobotError

EXTRAS = {"example-robot-data": "pip install 'mcplan[robots]'"}
"""How packages that mcplan's own robots are read from are installed."""


SCHEME = "package://"


def package_file(name: str, directories: Sequence[Path] = ()) -> Path:
    """Return the file that ``package://NAME/path`` stands for.

    Parameters
    ----------
    directories : looked into before what is installed: each is the package NAME or holds it.

    Raises
    ------
    RobotError
        There is no such package, or no such file in it.
    """
    package, _, inner = name.removeprefix(SCHEME).partition("/")
    whole = [folder.resolve() for folder in directories]  # `.` and `..` have names, too
    given = [folder if folder.name == package else folder / package for folder in whole]
    folders = [folder for folder in (*given, find_package(package)) if folder is not None and folder.is_dir()]
    if not folders:
        how = EXTRAS.get(package, "name the directory that holds it in `packages`, or with --package-dir")
        raise RobotError(f"{name}: the package {package!r} is not installed: {how}")
    for folder in folders:
        path = (folder / inner).resolve()
        if path.is_file() and path.is_relative_to(folder.resolve()):
            return path
    raise RobotError(f"{name}: the package {str(folders[0])!r} holds no file {inner!r}")


def find_package(name: str) -> Path | None:
    """Return the directory of an installed package: one that ends in ``share/NAME``, or has the name on a ROS path."""
    if not name or Path(name).name != name or name in (".", ".."):
        return None
    return next((folder for folder in _folders(name) if folder.is_dir()), None)


def _folders(name: str) -> Iterator[Path]:
    for variable in ("AMENT_PREFIX_PATH", "CMAKE_PREFIX_PATH"):
        for prefix in _listed(variable):
            yield prefix / "share" / name
    for directory in _listed("ROS_PACKAGE_PATH"):
        yield directory if directory.name == name else directory / name
    for installed in dict.fromkeys([sysconfig.get_path("purelib"), *sys.path, site.getusersitepackages()]):
        yield Path(installed) / "cmeel.prefix" / "share" / name
    for python in dict.fromkeys([sys.prefix, sys.base_prefix]):
        yield Path(python) / "share" / name


def _listed(variable: str) -> list[Path]:
    return [Path(part) for part in os.environ.get(variable, "").split(os.pathsep) if part]
