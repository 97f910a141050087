"""Which surfaces of a scene are linked by single steps: their gap seen from above, and their heights."""

from collections.abc import Sequence

import numpy as np

from mcplan.scene.environment import Surface


def linked_groups(surfaces: Sequence[Surface], step: float, gap: float) -> list[list[Surface]]:
    """Return the groups of surfaces that steps link, each from low to high."""
    left, found = list(surfaces), []
    while left:
        group, front = [], [left.pop(0)]
        while front:
            here = front.pop()
            group.append(here)
            near = [other for other in left if linked(here, other, step, gap)]
            left = [other for other in left if other not in near]
            front += near
        found.append(sorted(group, key=lambda surface: float(surface.p[2])))
    return found


def linked(a: Surface, b: Surface, step: float, gap: float) -> bool:
    """Whether a step of this height (m) leads from one surface to the other, over a gap (m) seen from above."""
    low_a, high_a = a.corners[:, 2].min(), a.corners[:, 2].max()
    low_b, high_b = b.corners[:, 2].min(), b.corners[:, 2].max()
    if max(low_a - high_b, low_b - high_a) > step:
        return False
    return apart(a, b) <= gap


def apart(a: Surface, b: Surface) -> float:
    """Return how far apart (m) two surfaces are, seen from above: between points along their outlines."""
    points = [outline(surface) for surface in (a, b)]
    return float(np.min(np.linalg.norm(points[0][:, None, :2] - points[1][None, :, :2], axis=2)))


def outline(surface: Surface) -> np.ndarray:
    """Return points (n,3) along the sides of a surface, m."""
    corners = surface.corners
    ends = np.roll(corners, -1, axis=0)
    return np.concatenate([a + np.linspace(0, 1, 25)[:, None] * (b - a) for a, b in zip(corners, ends, strict=True)])


def hops_to(group: Sequence[Surface], last: Surface, step: float, gap: float) -> dict[str, int]:
    """Return by how many links the surfaces of a group are away from one of them."""
    found, front = {last.name: 0}, [last]
    while front:
        here = front.pop(0)
        for surface in group:
            if surface.name not in found and linked(here, surface, step, gap):
                found[surface.name] = found[here.name] + 1
                front.append(surface)
    return found
