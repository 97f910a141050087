"""Settings of the search for surfaces and bars in a mesh: the keys of ``environment.find``."""

from typing import Annotated

from pydantic import Field

from mcplan.scene.spec import NotNegative, Positive, Spec


class FindSettings(Spec):
    """Thresholds of the search for surfaces and bars in a mesh."""

    slope: Annotated[float, Field(ge=0, lt=1.5)] = 0.53
    """Steepest surface, rad from level: 30 degrees, which a friction of 0.6 holds."""
    room: tuple[Positive, Positive] = (0.1, 0.2)
    """Sides of the rectangle that must fit on a surface, whichever way it is turned, m: a foot or a hand."""
    clearance: Positive = 0.3
    """Room above a surface, m: where something is lower than this, nothing is set down."""
    flat: Positive = 0.01
    """How far the points of a rough surface may be from its plane, m: the noise of a scan. Exact ones stay apart."""
    gap: NotNegative = 0.01
    """Cracks up to this width between parts of one plane are closed, m."""
    bar: tuple[Positive, Positive] = (0.008, 0.04)
    """Least and largest radius of a bar, m."""
    bar_length: Positive = 0.2
    """Least length of a bar, m."""
    friction: NotNegative = 0.7
    """Of all that is found: a mesh says nothing of it."""
    ground: bool = False
    """Whether a floor is laid below the lowest point, for meshes that have none."""
