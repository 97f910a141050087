"""Settings of the planner: the section ``planner`` of a scenario."""

from typing import Annotated

from pydantic import Field

from mcplan.scene.spec import PoseSpec, Spec


class PlannerSettings(Spec):
    """Limits of the search for stances, and hints to it."""

    require: tuple[str | tuple[str, ...], ...] = ()
    """Patches that must carry over 5 N in some stance, for a robot of the mass of HRP-2 and in proportion for others; a
    list among them means one of these."""
    patches: tuple[str, ...] = ()
    """Patches that may make contacts besides those of start and goal; empty: all of the robot's."""
    max_nodes: Annotated[int, Field(ge=1)] = 5000
    """Largest number of stances that the search examines."""
    max_calls: Annotated[int, Field(ge=1)] = 3000
    """Largest number of calls of the posture generator in the search."""
    step: Annotated[float, Field(gt=0, le=2)] = 0.4
    """Distance by which a contact is first placed ahead of the others along the path, m; later attempts go farther. The
    default is for a robot of the size of HRP-2, and in proportion for others."""
    guide: tuple[PoseSpec, ...] = ()
    """Waypoints of the base on the path to the first goal, where the straight path is blocked. A waypoint without
    ``rpy`` and ``quat_wxyz`` takes the heading between its neighbours."""
