"""Least distances of solids that are shown to it sample by sample, and those that overlap.

The distances are those of `mcplan.certificate.separation`: neither planner nor controller knows them.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from mcplan.certificate.evidence import NONE
from mcplan.certificate.separation import Placed, signed_distances
from mcplan.certificate.solids import WORLD, Solids
from mcplan.certificate.tolerances import SINKS

Touches = frozenset[tuple[str, str]]
"""Links and supports, by name, that may touch."""


class Overlap(NamedTuple):
    """A pair that overlaps: by how much at most (m), at which sample, and from which on."""

    depth: float
    worst: int
    first: int


class Watch:
    """Least distance, and overlaps beyond the tolerance, of all that is shown to it.

    Parameters
    ----------
    solids : and the pairs of them that could meet.
    tolerance : overlap that is none, m.

    Attributes
    ----------
    least, at : smallest distance of a pair that may not touch (m), and its pair and sample.
    overlaps : by pair.
    """

    def __init__(self, solids: Solids, tolerance: float):
        self.solids, self.tolerance = solids, tolerance
        self.least, self.at = np.inf, (NONE, NONE)
        self.overlaps: dict[int, Overlap] = {}
        i, j = solids.pairs.T if len(solids.pairs) else np.zeros((2, 0), int)
        self._bounds = [solid.bounds for solid in solids.solids]
        self._radius = np.array([radius for _, radius in self._bounds])
        self._sum = self._radius[i] + self._radius[j]
        self._facets, self._rods = _facets(solids), _rods(solids)
        self._rooms: dict[Touches, np.ndarray] = {}
        body = solids.bodies[solids.owner[i]]
        self._of_support = [(int(b), solids.names[k]) for b, k in zip(body, j.tolist(), strict=True)]

    def name(self, pair: int) -> str:
        """Return a pair as text."""
        i, j = self.solids.pairs[pair]
        return f"{self.solids.names[i]} and {self.solids.names[j]}"

    def room(self, touches: Touches, links: Mapping[str, int]) -> np.ndarray:
        """Return by how much each pair may overlap (P,): a link and all it is rigid with may sink into its support.

        That is the surface's object, or all surfaces in its plane.
        """
        if touches not in self._rooms:
            allowed = {
                (int(self.solids.bodies[links[link]]), support)
                for link, name in touches
                for support in self.solids.supports.get(name, (name,))
            }
            may = np.array([key in allowed for key in self._of_support], bool)
            own = self.solids.owner[self.solids.pairs[:, 1]]
            may &= (own == WORLD) | (own >= len(self.solids.bodies))
            self._rooms[touches] = np.where(may, SINKS, 0.0)
        return self._rooms[touches]

    def look(
        self, R: np.ndarray, p: np.ndarray, room: np.ndarray, slack: np.ndarray, samples: np.ndarray
    ) -> np.ndarray:
        """Look at all pairs; return lower bounds of their distances (K, P).

        Parameters
        ----------
        R, p : (K, owners + 1, 3, 3), (K, owners + 1, 3) poses; the last is that of the world.
        room : (K, P) how much each pair may overlap, m.
        slack : (K, P) what a distance has to be proven to be beyond that, m.
        samples : (K,) their numbers.
        """
        lower = self._coarse(R, p)
        open_ = lower < slack - room
        strict = room == 0.0
        if strict.any():
            # first the nearest: once the least distance is known, most of the others need not be
            near = np.where(strict, lower, np.inf).ravel()
            first = np.argpartition(near, min(200, near.size - 1))[:200]
            first = first[near[first] < self.least]
            self._fine(R, p, room, first, np.full(len(first), np.inf), lower, samples)
            open_ |= strict & (lower < self.least)
            open_[np.unravel_index(first, open_.shape)] = False
        rest = np.flatnonzero(open_)
        enough = (slack - room).ravel()[rest]
        enough = np.where(strict.ravel()[rest], np.maximum(enough, self.least), enough)
        self._fine(R, p, room, rest, enough, lower, samples)
        return lower

    def look_at(
        self,
        R: np.ndarray,
        p: np.ndarray,
        room: np.ndarray,
        pair: np.ndarray,
        samples: np.ndarray,
        slack: np.ndarray | float = 0.0,
    ) -> np.ndarray:
        """Look at some pairs; return lower bounds of their distances (M,).

        Parameters
        ----------
        R, p : (M, owners + 1, 3, 3), (M, owners + 1, 3) poses.
        room, slack : (M,) as of ``look``.
        pair, samples : (M,) which pair, and the numbers of the samples.
        """
        lower = np.full(len(pair), -np.inf)
        enough = np.where(room == 0.0, np.maximum(self.least, 0.0), -room) + slack
        self._judge(R, p, np.arange(len(pair)), pair, room, enough, lower, samples)
        return lower

    def _coarse(self, R: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Lower bounds of distances (K, P) from balls around the solids, and from the facets of what stands fast."""
        owner, (i, j) = self.solids.owner, self.solids.pairs.T
        middles = np.stack(
            [R[:, who] @ middle + p[:, who] for who, (middle, _) in zip(owner, self._bounds, strict=True)], axis=1
        )
        lower = np.linalg.norm(middles[:, i] - middles[:, j], axis=2) - self._sum
        for other, facets in self._facets.items():
            mine = np.flatnonzero(j == other)
            height = (middles[:, i[mine]] @ facets[:, :3].T + facets[:, 3]).max(axis=2)
            lower[:, mine] = np.maximum(lower[:, mine], height - self._radius[i[mine]])
        for other, (start, way, radius) in self._rods.items():
            mine = np.flatnonzero(j == other)
            arm = middles[:, i[mine]] - start
            share = np.clip(arm @ way / (way @ way), 0.0, 1.0)
            far = np.linalg.norm(arm - share[..., None] * way, axis=2) - radius
            lower[:, mine] = np.maximum(lower[:, mine], far - self._radius[i[mine]])
        return np.asarray(lower)

    def _fine(
        self,
        R: np.ndarray,
        p: np.ndarray,
        room: np.ndarray,
        items: np.ndarray,
        enough: np.ndarray,
        lower: np.ndarray,
        samples: np.ndarray,
    ) -> None:
        """Improve bounds of some of (K, P) pairs, flat indices ``items``."""
        if len(items):
            k, pair = np.unravel_index(items, lower.shape)
            flat = lower.ravel()[items]
            self._judge(R, p, k, pair, room.ravel()[items], enough, flat, samples[k])
            lower[k, pair] = flat

    def _judge(
        self,
        R: np.ndarray,
        p: np.ndarray,
        k: np.ndarray,
        pair: np.ndarray,
        room: np.ndarray,
        enough: np.ndarray,
        lower: np.ndarray,
        samples: np.ndarray,
    ) -> None:
        which = self.solids.pairs[pair].T
        owner = self.solids.owner[which]
        a, b = (Placed(self.solids.solids, w, R[k, o], p[k, o]) for w, o in zip(which, owner, strict=True))
        found = signed_distances(a, b, enough)
        lower[:] = np.maximum(lower, found.lower)
        beyond = found.lower < -room - self.tolerance
        counts = (room == 0.0) | beyond
        value = np.where(counts, found.upper, np.inf)
        if len(value) and value.min() < self.least:
            best = int(np.argmin(value))
            self.least, self.at = float(value[best]), (int(pair[best]), int(samples[best]))
        for m in np.flatnonzero(beyond).tolist():
            was = self.overlaps.get(int(pair[m]))
            here, depth = int(samples[m]), -float(found.upper[m])
            if was is None:
                self.overlaps[int(pair[m])] = Overlap(depth, here, here)
            else:
                deeper = depth > was.depth
                self.overlaps[int(pair[m])] = Overlap(
                    max(depth, was.depth), here if deeper else was.worst, min(here, was.first)
                )


def _facets(solids: Solids) -> dict[int, np.ndarray]:
    """Return the facets (F, 4) ``n x + d`` of the solids that stand fast and have corners only, by index."""
    found = {}
    for s, (solid, who) in enumerate(zip(solids.solids, solids.owner, strict=True)):
        if who == WORLD and not solid.disc and not solid.ball:
            try:
                found[s] = ConvexHull(solid.corners).equations
            except QhullError:
                continue
    return found


def _rods(solids: Solids) -> dict[int, tuple[np.ndarray, np.ndarray, float]]:
    """Return beginning and way (3,) and radius of the rods that stand fast, by index; each is in such a capsule."""
    return {
        s: (solid.corners[0], solid.corners[1] - solid.corners[0], solid.disc + solid.ball)
        for s, (solid, who) in enumerate(zip(solids.solids, solids.owner, strict=True))
        if who == WORLD and len(solid.corners) == 2
    }
