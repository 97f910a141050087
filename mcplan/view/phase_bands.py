"""The phases of a motion as coloured bands over time, the same in the replay and in the plots."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from mcplan.sim.run import Run
from mcplan.view.palette import phase_colour


def phase_bands(run: Run) -> list[tuple[float, float, str]]:
    """Return (begin, end, name) of each phase, s from the start of the run."""
    changes = np.concatenate([[0], np.flatnonzero(np.diff(run.phase)) + 1, [len(run.t) - 1]])
    t, names = run.t - run.t[0], run.phases
    return [(float(t[i]), float(t[j]), names[run.phase[i]]) for i, j in pairwise(changes)]


def band_colours(names: Sequence[str]) -> dict[str, str]:
    """Give each phase the colour of its kind: ``swing left_sole`` is like any swing, in every page and plot."""
    return {name: phase_colour(name) for name in names}
