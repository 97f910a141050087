"""Values as they stand in a YAML file: dict, list, text, finite number, boolean, None."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np


def plain_value(value: Any) -> Any:
    """Return ``value`` with tuples, arrays and NumPy numbers made plain.

    Raises
    ------
    ValueError
        For a number that is not finite, a key that is not text, or a type that no YAML file of ours holds.
    """
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise ValueError(f"key {key!r} is not text")
        return {key: plain_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_value(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain_value(value.tolist())
    if isinstance(value, np.generic):
        return plain_value(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a finite number")
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    raise ValueError(f"{value!r} cannot stand in a YAML file")
