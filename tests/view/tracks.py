"""The animation of a page as tracks that tests can look values up in."""

import numpy as np


def tracks_of(animations) -> dict:
    """Return {path: {track: (times, values)}} of meshcat's animations."""
    return {
        item["path"].removeprefix("/meshcat/"): {
            track["name"]: tuple(np.array([key[part] for key in track["keys"]]) for part in ("time", "value"))
            for track in item["clip"]["tracks"]
        }
        for item in animations
    }


def at(track, t) -> np.ndarray:
    """Return the value of a track at a time, interpolated."""
    times, values = track
    return np.array([np.interp(t, times, column) for column in values.T])
