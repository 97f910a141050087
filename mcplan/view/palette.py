"""Colours of replay and plots, and the phases of a motion as coloured bands over time."""

import zlib
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from mcplan.record.run import Run

FORCE = (0.16, 0.62, 0.25, 1.0)
CONE = (0.16, 0.62, 0.25, 0.16)
COM = (0.85, 0.25, 0.12, 1.0)
SUPPORT = (0.20, 0.55, 0.90, 0.22)
SUPPORT_EDGE = (0.16, 0.45, 0.80, 0.9)
CONTACT = (0.98, 0.75, 0.10, 1.0)
MOVED = (0.86, 0.18, 0.62, 1.0)
TRIED = (0.90, 0.10, 0.10, 0.85)
TRAIL = (0.45, 0.30, 0.75, 0.8)
SURFACE = (0.82, 0.82, 0.80, 1.0)
RAISED_SURFACE = (0.76, 0.64, 0.48, 1.0)
BAR = (0.45, 0.47, 0.52, 1.0)
OBSTACLE = (0.70, 0.45, 0.42, 1.0)
OBJECT = (0.62, 0.52, 0.70, 1.0)
STILE = (0.62, 0.64, 0.68, 1.0)
COLLISION = (0.70, 0.45, 0.42, 0.35)
ROBOT = (0.80, 0.81, 0.84, 1.0)
"""Colours of the replay: red, green, blue, opacity, from 0 to 1."""

PHASES = {
    "stand": "#b4bdca",
    "shift": "#86b3dd",
    "press": "#d9b38c",
    "slide": "#c79a6b",
    "take": "#e8c79a",
    "carry": "#b98a8a",
    "put": "#c9b2e6",
    "unload": "#f2b866",
    "retract": "#dfa58a",
    "lift": "#e695a6",
    "swing": "#9ccb7f",
    "approach": "#7cc7bd",
    "load": "#b39fd8",
    "settle": "#d9d46a",
}
"""Colour of each kind of phase."""

CHANGES = {"start": PHASES["stand"], "add": PHASES["load"], "remove": PHASES["unload"], "shift": PHASES["shift"]}
"""Colour of each kind of change from stance to stance: that of the corresponding phase."""

CUSTOM_PHASES = ("#e07b5f", "#5fa8d3", "#c58bc9", "#8aa05a")
"""Colours of custom states."""

LIMITS = {
    "torque": "#c2410c",
    "velocity": "#7c3aed",
    "friction": "#2e8b57",
    "pressure": "#1f6fd0",
    "grip": "#b45309",
    "largest force": "#78350f",
    "weight on contacts": "#0891b2",
    "acceleration": "#be185d",
    "touchdown": "#65a30d",
    "ramps of forces": "#ca8a04",
    "torque rate": "#92400e",
    "jerk": "#db7fb0",
    "jerk of the centre of mass": "#e0492e",
    "smoothness": "#8b93a1",
}
"""Colour of each kind of limit that may bound a motion (`mcplan.analysis.active_limits`)."""

PATCHES = (
    "#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#17becf", "#bcbd22", "#5b6abf",
)  # fmt: skip
"""Colours of patches in charts, in the order of the run."""


def phase_colour(name: str) -> str:
    """Return the colour of a phase or change by its kind, the word before the first space."""
    kind = name.split(" ")[0]
    known = PHASES | CHANGES
    return known[kind] if kind in known else CUSTOM_PHASES[zlib.crc32(kind.encode()) % len(CUSTOM_PHASES)]


def phase_bands(run: Run) -> list[tuple[float, float, str]]:
    """Return (begin, end, name) of each phase, s from the start of the run."""
    changes = np.concatenate([[0], np.flatnonzero(np.diff(run.phase)) + 1, [len(run.t) - 1]])
    t, names = run.t - run.t[0], run.phases
    return [(float(t[i]), float(t[j]), names[run.phase[i]]) for i, j in pairwise(changes)]


def band_colours(names: Sequence[str]) -> dict[str, str]:
    """Return the colour of each phase: ``swing left_sole`` has that of any swing."""
    return {name: phase_colour(name) for name in names}
