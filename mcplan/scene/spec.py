"""Pydantic schema of poses and contacts in files."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from mcplan.robot.pose import quat_from_rotation

Triple = tuple[float, float, float]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]


AxisName = Literal["x", "y", "z"]


def _as_tuple(value: Any) -> Any:
    """Return a single axis as a tuple of one axis."""
    return value if isinstance(value, tuple) else (value,)


if TYPE_CHECKING:
    Axes = tuple[AxisName, ...]
else:  # one axis may be written without brackets
    Axes = Annotated[AxisName | tuple[AxisName, ...], AfterValidator(_as_tuple)]


class Spec(BaseModel):
    """Base class of file sections: unknown keys are refused, instances are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Yield only the values that differ from their defaults: settings have many keys."""
        for name, value in super().__repr_args__():
            field = type(self).model_fields.get(name or "")
            if field is None or value != field.get_default(call_default_factory=True, validated_data={}):
                yield name, value


class PoseSpec(Spec):
    """``{xyz: [x, y, z], rpy: [roll, pitch, yaw]}``, or ``quat_wxyz`` instead of ``rpy``; by default world axes."""

    xyz: Triple = (0.0, 0.0, 0.0)
    """Position, m."""
    rpy: Triple | None = None
    """``Rz(yaw) Ry(pitch) Rx(roll)``, rad."""
    quat_wxyz: tuple[float, float, float, float] | None = None
    """Unit quaternion, instead of ``rpy``."""

    @model_validator(mode="after")
    def _one_orientation(self) -> "PoseSpec":
        if self.rpy is not None and self.quat_wxyz is not None:
            raise ValueError("give rpy or quat_wxyz, not both")
        if self.quat_wxyz is not None:
            length = float(np.linalg.norm(self.quat_wxyz))
            if abs(length - 1) > 1e-3:
                raise ValueError(f"quat_wxyz has length {length:.6g}, expected 1 (within 0.001)")
        return self

    @property
    def R(self) -> np.ndarray:
        """Rotation (3,3): ``Rz(yaw) Ry(pitch) Rx(roll)``, or that of the quaternion, normalised."""
        if self.quat_wxyz is None and not any(self.rpy or ()):
            return np.eye(3)
        from scipy.spatial.transform import Rotation  # slow import, not needed by a level scene

        if self.quat_wxyz is not None:
            return Rotation.from_quat(self.quat_wxyz, scalar_first=True).as_matrix()
        return Rotation.from_euler("xyz", self.rpy).as_matrix()

    @property
    def p(self) -> np.ndarray:
        """Position (3,), m."""
        return np.array(self.xyz)

    @property
    def array(self) -> np.ndarray:
        """Position (m) and unit quaternion w x y z (7,)."""
        quat = quat_from_rotation(self.R) if self.quat_wxyz is None else np.array(self.quat_wxyz)
        return np.concatenate([self.p, quat / np.linalg.norm(quat)])


class ContactSpec(Spec):
    """One contact; the planner, or the nearest place, provides missing coordinates."""

    patch: str
    """Patch of the robot; ``feet``, ``left_feet``, ``right_feet`` and ``hands`` are groups of patches."""
    surface: str
    """Surface or bar."""
    kind: Literal["surface", "point", "ball", "grasp"] | None = None
    """``surface``, ``point``, ``ball`` or ``grasp``; by default that of the patch; a ball has no other kind."""
    x: float | None = None
    """Position of the patch's origin along the x axis of a surface, m."""
    y: float | None = None
    """Position of the patch's origin along the y axis of a surface, m."""
    yaw: float | None = None
    """Rotation of the patch about the surface's normal, rad."""
    along: float | None = None
    """Distance of the patch's origin from the first end of a bar, m."""
    angle: float | None = None
    """Rotation about the patch's y axis, which lies along the bar, rad; at 0 the patch's z axis is as near to down as
    possible (on a vertical bar: to the world's x)."""
    flip: bool | None = None
    """The patch's y axis points from the bar's second end to its first, instead of from its first to its second."""
    offset: float | None = None
    """Distance from the origin of a sole to the bar, along the sole's x axis, m."""
    overhang: bool = False
    """The patch may reach beyond the edge of the surface; only its part on the surface is in contact."""
    friction: NotNegative | None = None
    """Friction coefficient, instead of that of the support. Simulators use one coefficient per patch and support: the
    minimum over all stances."""
    max_force: Positive | None = None
    """Maximum normal force, or maximum force of a grasp, N."""
    slide: Axes = ()
    """Axes of the patch along which it may slide."""
    hinge: Axes = ()
    """Axes of the patch about which it may turn."""
    pose: PoseSpec | None = None
    """Pose of a fixed base (``fixed_base``)."""

    @property
    def given(self) -> dict[str, float | bool]:
        """Coordinates that are given in the file."""
        names = ("x", "y", "yaw", "along", "angle", "flip", "offset")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    @property
    def options(self) -> dict[str, object]:
        """Given keys other than patch, surface, coordinates and pose, in the form of files."""
        options: dict[str, object] = {"kind": self.kind, "friction": self.friction, "max_force": self.max_force}
        options |= {"slide": list(self.slide) or None, "hinge": list(self.hinge) or None}
        options |= {"overhang": self.overhang or None}
        return {name: value for name, value in options.items() if value is not None}
