"""Values as they stand in a YAML file: dict, list, text, finite number, boolean, None."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np


class NotPlain(ValueError):  # noqa: N818 - reads as the sentence that it is
    """A value that no YAML file of ours holds: its key path and why."""

    def __init__(self, key: tuple[str | int, ...], message: str):
        super().__init__(message)
        self.key, self.message = key, message


def plain_value(value: Any, key: tuple[str | int, ...] = ()) -> Any:
    """Return ``value`` with tuples, arrays and NumPy numbers made plain.

    Parameters
    ----------
    key : path at which the value stands, for messages.

    Raises
    ------
    NotPlain
        For a number that is not finite, a key that is not text, or a type that no YAML file of ours holds.
    """
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise NotPlain(key, f"key {name!r} is not text")
        return {name: plain_value(item, (*key, name)) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_value(item, (*key, k)) for k, item in enumerate(value)]
    if isinstance(value, np.ndarray):
        return plain_value(value.tolist(), key)
    if isinstance(value, np.generic):
        return plain_value(value.item(), key)
    if isinstance(value, float) and not math.isfinite(value):
        raise NotPlain(key, f"{value} is not a finite number")
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    raise NotPlain(key, f"{value!r} cannot stand in a YAML file")
