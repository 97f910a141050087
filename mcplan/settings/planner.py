"""Settings of the planner: the section ``planner`` of a scenario."""

from typing import Annotated

from pydantic import Field

from mcplan.scene.spec import PoseSpec, Spec


class PlannerSettings(Spec):
    """Limits and hints of the stance search."""

    require: tuple[str | tuple[str, ...], ...] = ()
    """Patches that must carry more than 5 N in some stance (HRP-2; scales with the mass of the robot). A nested list
    requires one of its patches."""
    patches: tuple[str, ...] = ()
    """Patches that may make contacts, in addition to those of start and goal; empty: all patches of the robot."""
    max_nodes: Annotated[int, Field(ge=1)] = 5000
    """Largest number of stances that the search examines."""
    max_calls: Annotated[int, Field(ge=1)] = 3000
    """Largest number of calls of the posture generator in the search."""
    step: Annotated[float, Field(gt=0, le=2)] = 0.4
    """Distance by which a new contact is placed ahead of the others along the path, m; later attempts increase it. The
    default is for a robot of the size of HRP-2, and scales with the size of the robot."""
    guide: tuple[PoseSpec, ...] = ()
    """Waypoints of the base on the path to the first goal, if the straight path is blocked. A waypoint without ``rpy``
    and ``quat_wxyz`` takes the heading between its neighbours."""
