"""Configurations and velocities that a caller hands to a kernel: checked, so that what is wrong has a name."""

import numpy as np
from numpy.typing import ArrayLike

from mcplan.core.bundle import QUATERNION_TOLERANCE, SOUND, check
from mcplan.errors import InputError


def state_array(name: str, value: ArrayLike, size: int, is_q: bool) -> np.ndarray:
    """Return one state (size,) or a batch (B, size) as kernels take it; what is so already is returned as it is.

    Parameters
    ----------
    name : of the argument, for errors.
    is_q : whether it is a configuration, with the base's quaternion in 3 to 7.

    Raises
    ------
    InputError
        It has another shape, a value that is not finite, or a quaternion that has not the length 1.
    """
    if (
        type(value) is np.ndarray
        and value.shape == (size,)
        and value.dtype == np.float64
        and value.flags.carray
        and check(value, is_q) == SOUND
    ):
        return value
    try:
        array = np.ascontiguousarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} should be an array of {size} numbers") from None
    if array.ndim not in (1, 2) or array.shape[-1] != size:
        raise InputError(f"{name} has the shape {array.shape}; expected ({size},) or (B, {size})")
    if not np.isfinite(array).all():
        place = np.argwhere(~np.isfinite(array))[0]
        index = ", ".join(str(i) for i in place)
        raise InputError(f"{name}[{index}] = {array[tuple(place)]} is not finite")
    if is_q:
        norms = np.linalg.norm(array[..., 3:7], axis=-1)
        if np.any(np.abs(norms - 1) > QUATERNION_TOLERANCE):
            worst = float(norms.flat[np.argmax(np.abs(norms - 1))])
            raise InputError(f"{name}[3:7], the base quaternion w x y z, has the length {worst:.9g}; expected 1")
    return array if array.flags.writeable else array.copy()
