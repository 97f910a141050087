"""Which contacts bear where a link touches with several patches."""

from collections.abc import Sequence

from mcplan.model.robot import Robot
from mcplan.scene.contact import Contact


def widest(robot: Robot, contacts: Sequence[Contact]) -> tuple[Contact, ...]:
    """Return the contacts without edges and balls of links that lie on a face, too: toes of a foot whose sole is down.

    What they bear comes at the rim of the face, with nothing left until the link tips over it.
    """
    flat = {robot.frame(c.patch)[0] for c in contacts if len(c.points) > 2}
    return tuple(c for c in contacts if len(c.points) > 2 or c.kind == "grasp" or robot.frame(c.patch)[0] not in flat)
