"""Statics of one stance: constraint rank, centre-of-mass regions, wrench cones, missing forces."""

from typing import Any, NamedTuple

import numpy as np

from mcplan.errors import InputError
from mcplan.planning.plan import Plan
from mcplan.scene.contact import Contact
from mcplan.statics.com_region import ComPolyhedron, com_polyhedron
from mcplan.statics.feasibility import Shortfall, shortfall
from mcplan.statics.support_region import SupportRegion, support_region, torque_support_region, zmp_area
from mcplan.statics.wrench_set import WrenchSet, wrench_set
from mcplan.textbook.constraint.contact_rows import StanceRank, stance_rank

ACCELERATION = 0.5
"""m/s²: the 3-D region of the centre of mass allows accelerations of this magnitude in any direction."""


class StanceStatics(NamedTuple):
    """Statics of a plan's stance in its posture; contacts are placed at the poses of the patches in this posture.

    Attributes
    ----------
    name : title of the stance: its change of contacts.
    contacts : closed contacts.
    com : (3,) centre of mass, m.
    rank : rank of the contact constraints.
    region, torque_region : support regions of the centre of mass, without and with torque limits.
    zmp : region of the ZMP at the height ``ground``; None if the centre of mass is at that height.
    ground : height of the lowest contact, m.
    acceleration_region : 3-D region of the centre of mass for accelerations of `ACCELERATION` in any direction.
    wrench_sets : by patch, the feasible contact wrenches.
    shortfall : reason why the contacts cannot hold the posture; None if they can.
    """

    name: str
    contacts: tuple[Contact, ...]
    com: np.ndarray
    rank: StanceRank
    region: SupportRegion
    torque_region: SupportRegion
    zmp: SupportRegion | None
    ground: float
    acceleration_region: ComPolyhedron
    wrench_sets: dict[str, WrenchSet]
    shortfall: Shortfall | None


def stance_statics(plan: Plan, index: int) -> StanceStatics:
    """Return the statics of a stance of a plan.

    Raises
    ------
    InputError
        The plan has no such stance.
    """
    if not 0 <= index < len(plan.stances):
        raise InputError(f"--stance {index}: {plan.scenario.name} has stances 0 to {len(plan.stances) - 1}")
    robot, stance = plan.scenario.robot, plan.stances[index]
    q = stance.q
    poses = {contact.patch: robot.frame_pose(q, contact.patch) for contact in stance.contacts}
    placed = tuple(c.at(poses[c.patch][:3, :3], poses[c.patch][:3, 3]) for c in stance.contacts)
    com = robot.com(q)
    ground = min(contact.ground for contact in placed)
    return StanceStatics(
        name=" ".join(filter(None, (stance.change, stance.moved))),
        contacts=placed,
        com=com,
        rank=stance_rank(robot, q, placed),
        region=support_region(placed, robot.mass),
        torque_region=torque_support_region(robot, q, placed),
        zmp=None if abs(com[2] - ground) < 1e-3 else zmp_area(com, placed, robot.mass, ground),
        ground=ground,
        acceleration_region=com_polyhedron(placed, robot.mass, ACCELERATION),
        wrench_sets={contact.patch: wrench_set(contact) for contact in stance.contacts},
        shortfall=shortfall(robot, q, placed),
    )


def stance_lines(statics: StanceStatics, index: int) -> list[str]:
    """Return the lines of text that `mcplan info PLAN --stance K` prints."""
    x, y, z = statics.com
    lines = [
        f"stance {index}: {statics.name}",
        f"constraints: {statics.rank}",
        f"centre of mass: {x:.4f}, {y:.4f}, {z:.4f} m",
    ]
    for label, region, point in _regions(statics):
        lines.append(f"{label}: {_area(region)}" + ("" if region.empty else f", {_depth(region.depth(point))}"))
    depth = statics.acceleration_region.depth(statics.com)
    lines.append(
        f"the same at {ACCELERATION:g} m/s² in any direction: {len(statics.acceleration_region.b)} faces, "
        + ("no place" if np.isneginf(depth) else _depth(depth))
    )
    lines.append(
        "holds the posture" if statics.shortfall is None else f"does not hold the posture: {statics.shortfall}"
    )
    lines += ["", f"{'wrenches of':16s} {'faces':>6s} {'rays':>6s} {'corners':>8s}"]
    for name, cone in statics.wrench_sets.items():
        lines.append(f"{name:16s} {len(cone.A):6d} {len(cone.rays):6d} {len(cone.vertices):8d}")
    return lines


def stance_values(statics: StanceStatics, index: int) -> dict[str, Any]:
    """Return the statics of a stance as plain values for JSON, with all corners, faces and rays."""
    regions = {label: region.vertices.tolist() for label, region, _ in _regions(statics)}
    rank, bounded = statics.rank, np.isfinite(statics.acceleration_region.b).all()
    return {
        "stance": index,
        "change": statics.name,
        "com": statics.com.tolist(),
        "constraints": {
            "independent": rank.constraints,
            "base": rank.base,
            "base_controllable": rank.base_controllable,
            "internal": rank.internal,
            "free": rank.freedom,
        },
        "regions": regions,
        "accelerating": {
            "acceleration": ACCELERATION,
            "A": statics.acceleration_region.A.tolist(),
            "b": statics.acceleration_region.b.tolist() if bounded else None,
        },
        "missing": None if statics.shortfall is None else str(statics.shortfall),
        "wrenches": {
            name: {"A": c.A.tolist(), "b": c.b.tolist(), "rays": c.rays.tolist(), "vertices": c.vertices.tolist()}
            for name, c in statics.wrench_sets.items()
        },
    }


def _regions(statics: StanceStatics) -> list[tuple[str, SupportRegion, np.ndarray]]:
    """Return label, region, and the point whose depth in the region is reported."""
    found = [
        ("region of the centre of mass", statics.region, statics.com),
        ("the same within the torque limits", statics.torque_region, statics.com),
    ]
    if statics.zmp is not None:
        found.append((f"region of the ZMP at a height of {statics.ground:.3f} m", statics.zmp, statics.com))
    return found


def _area(region: SupportRegion) -> str:
    if region.empty:
        return "no place"
    suffix = "" if region.bounded else " or more"
    return f"{1e4 * region.area:.0f} cm²{suffix}, {len(region.vertices)} corners"


def _depth(depth: float) -> str:
    return f"{1e3 * depth:.0f} mm inside" if depth >= 0.0 else f"{-1e3 * depth:.0f} mm outside"
