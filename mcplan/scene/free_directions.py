"""Contacts that a scenario leaves free to slide or hinge where the physics knows nothing of it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mcplan.scene.schema import GoalItem, StanceItem
from mcplan.scene.spec import ContactSpec

if TYPE_CHECKING:
    from mcplan.model.robot import Robot

Key = tuple[str | int, ...]


def unfelt_freedoms(
    robot: "Robot",
    start: tuple[ContactSpec, ...],
    goal: tuple[GoalItem, ...],
    stances: tuple[StanceItem, ...],
    one: bool,
    physics: str,
) -> Iterator[tuple[Key, str]]:
    """Yield the key of each ``slide`` and ``hinge`` that a physics does not know, and what is wrong with it.

    Where contacts are found by the physics (``contact``, ``mujoco``), Coulomb friction holds a sole in all directions
    in which the plan leaves it free: wheels and hinges under soles are not there. Grasps hold as the plan says, but
    those of MuJoCo do not slide, nor turn about two axes.

    Parameters
    ----------
    one : whether the file writes its goal as one item, without a list.
    physics : ``contact`` or ``mujoco``.
    """
    placed: list[tuple[Key, ContactSpec]] = [(("start", "contacts", k), spec) for k, spec in enumerate(start)]
    for g, item in enumerate(goal):
        key: Key = ("goal",) if one else ("goal", g)
        placed += [((*key, "contacts", k), spec) for k, spec in enumerate(item.contacts)]
    for s, stance in enumerate(stances):
        placed += [(("stances", s, "contacts", k), spec) for k, spec in enumerate(stance.contacts or ())]
        placed += [(("stances", s, "add"), stance.add)] if stance.add is not None else []
    for key, spec in placed:
        patch = robot.patches.get(spec.patch)
        if patch is None:
            continue
        if (spec.kind or patch.kind) == "grasp":
            if physics == "mujoco" and (spec.slide or len(set(spec.hinge)) == 2):
                yield (
                    (*key, "slide" if spec.slide else "hinge"),
                    "a grasp in the physics mujoco holds, hinges about one axis or turns about its origin; use "
                    "simulation.physics contact or qp",
                )
            continue
        for name in ("slide", "hinge"):
            if getattr(spec, name):
                yield (
                    (*key, name),
                    f"the physics contact and mujoco know no {name} of a {spec.kind or patch.kind} contact: friction "
                    "holds it in all directions; use a grasp, or simulation.physics qp",
                )
