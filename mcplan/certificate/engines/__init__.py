"""Engines for independent recomputation of a run, one per file; they use only the numbers of the record."""

from importlib import import_module

from mcplan.certificate.engines.contract import Engine
from mcplan.errors import InputError

PACKAGES = {"pinocchio": "pin", "mujoco": "mujoco"}
"""Name on PyPI of the library of each engine."""

NAMES = tuple(PACKAGES)
"""Names of the engines: each is a module here with a class ``ENGINE``, and an extra of mcplan with its library."""


def engine_class(name: str) -> type[Engine]:
    """Return the class of an engine.

    Raises
    ------
    InputError
        The engine is unknown, or its library is not installed.
    """
    if name not in NAMES:
        raise InputError(f"--with {name}: no such engine; there are: {', '.join(NAMES)}")
    try:
        found: type[Engine] = import_module(f"mcplan.certificate.engines.{name}").ENGINE
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("mcplan"):
            raise
        raise InputError(f"--with {name} needs the package {error.name}: pip install {PACKAGES[name]}") from error
    return found
