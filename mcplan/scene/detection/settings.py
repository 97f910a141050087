"""Settings of the search for surfaces and bars in a mesh: the keys of ``environment.find``."""

from typing import Annotated

from pydantic import Field

from mcplan.scene.spec import NotNegative, Positive, Spec


class FindSettings(Spec):
    """Thresholds of the search for surfaces and bars in a mesh."""

    slope: Annotated[float, Field(ge=0, lt=1.5)] = 0.53
    """Maximum slope of a surface, rad: 30 degrees, on which a robot stands with a friction coefficient of 0.6."""
    room: tuple[Positive, Positive] = (0.1, 0.2)
    """Sides of the rectangle that must fit on a surface in some orientation, m: those of a foot or a hand."""
    clearance: Positive = 0.3
    """Required clearance above a surface, m; parts with less are not used."""
    flat: Positive = 0.01
    """Maximum distance of the points of a rough surface from its plane, m: the noise of a scan."""
    gap: NotNegative = 0.01
    """Cracks up to this width between parts of one plane are closed, m."""
    bar: tuple[Positive, Positive] = (0.008, 0.04)
    """Minimum and maximum radius of a bar, m."""
    bar_length: Positive = 0.2
    """Minimum length of a bar, m."""
    friction: NotNegative = 0.7
    """Friction coefficient of all detected surfaces and bars: a mesh has none."""
    ground: bool = False
    """Whether to add a floor below the lowest point, for meshes without one."""
