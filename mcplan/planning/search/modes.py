"""With which sets of its patches a limb may touch."""

from collections.abc import Iterable, Mapping

from mcplan.model.robot import Robot
from mcplan.planning.posture.limbs import Limb


def modes_of(
    robot: Robot, limbs: Mapping[str, Limb], stances: Iterable[frozenset[str]]
) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Return the sets of patches with which each limb may touch.

    One at a time; two edges of different links, which only together bear a moment; and those of given stances.

    Parameters
    ----------
    stances : patches of stances that are known to make sense: those of start and goal.
    """
    modes: dict[str, tuple[tuple[str, ...], ...]] = {}
    stances = list(stances)
    for limb in limbs.values():
        found: list[tuple[str, ...]] = [(patch,) for patch in limb.patches]
        edges = [patch for patch in limb.patches if len(robot.patches[patch].polygon) == 2]
        links = {patch: robot.patches[patch].link for patch in edges}
        found += [(a, b) for a in edges for b in edges if a < b and links[a] != links[b]]
        for stance in stances:
            together = tuple(patch for patch in limb.patches if patch in stance)
            if len(together) > 1 and not any(set(together) == set(known) for known in found):
                found.append(together)
        modes[limb.name] = tuple(found)
    return modes
