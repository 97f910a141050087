"""The phases of a motion as coloured bands over time, the same in the replay and in the plots."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from mcplan.sim.run import Run

_BANDS = ("#8fb8de", "#f2c078", "#a9d18e", "#d99aa5", "#b7a6d6", "#8ecdc4", "#d8dc6a", "#c4c9d4", "#f0a58f", "#9fc5a8")


def phase_bands(run: Run) -> list[tuple[float, float, str]]:
    """Return (begin, end, name) of each phase, s from the start of the run."""
    changes = np.concatenate([[0], np.flatnonzero(np.diff(run.phase)) + 1, [len(run.t) - 1]])
    t, names = run.t - run.t[0], run.phases
    return [(float(t[i]), float(t[j]), names[run.phase[i]]) for i, j in pairwise(changes)]


def band_colours(names: Sequence[str]) -> dict[str, str]:
    """Give each phase a colour by its kind, the word before the first space: ``swing left_sole`` is like any swing."""
    kinds = list(dict.fromkeys(name.split(" ")[0] for name in names))
    return {name: _BANDS[kinds.index(name.split(" ")[0]) % len(_BANDS)] for name in names}
