"""Experiments (parameter sweeps): many configurations of scenarios, run in parallel, with tables and figures.

``mcplan.sweep(experiment)`` is the function of `mcplan.api`. Importing this package binds it to the same name in
``mcplan``, so it can be called too, and does the same.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """A package that is called as the function of its name."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return import_module("mcplan.api").sweep(*arguments, **named)


sys.modules[__name__].__class__ = _Callable
