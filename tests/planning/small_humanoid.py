"""A humanoid that is not HRP-2: 1.2 m, 30 kg, its base in the chest, joints arms first, feet whose x axis points aside.

Knees bend about -y, hips begin with pitch, the sole's patch is turned by a quarter; nothing is called left or right.
"""

from pathlib import Path

import numpy as np

SIDES = {"port": 1.0, "starboard": -1.0}
THIGH, SHANK, ANKLE = 0.24, 0.24, 0.06
HIP = np.array([0.0, 0.08, -0.30])
BENT = 0.45
"""rad: of the hips and ankles of the posture ``ready``; the knees bend twice as much."""

STANDING = -HIP[2] + (THIGH + SHANK) * np.cos(BENT) + ANKLE
"""m: height of the base in the posture ``ready``."""


def _link(name: str, mass: float, size: tuple[float, float, float], centre: tuple[float, float, float]) -> str:
    x, y, z = size
    inertia = mass / 12 * np.array([y * y + z * z, x * x + z * z, x * x + y * y])
    origin = f'<origin xyz="{centre[0]} {centre[1]} {centre[2]}"/>'
    return (
        f'<link name="{name}"><inertial>{origin}<mass value="{mass}"/><inertia ixx="{inertia[0]}" ixy="0" ixz="0" '
        f'iyy="{inertia[1]}" iyz="0" izz="{inertia[2]}"/></inertial>'
        f'<collision>{origin}<geometry><box size="{x} {y} {z}"/></geometry></collision></link>\n'
    )


def _joint(name, parent, child, xyz, axis, low, high, effort) -> str:
    return (
        f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz[0]} {xyz[1]} {xyz[2]}"/><axis xyz="{axis}"/>'
        f'<limit lower="{low}" upper="{high}" effort="{effort}" velocity="8"/></joint>\n'
    )


def urdf(arms: bool = True) -> str:
    """Return the URDF; without arms it is a biped."""
    text = '<robot name="small">\n' + _link("chest", 11.0, (0.14, 0.20, 0.30), (0, 0, -0.08))
    text += _link("head", 2.0, (0.12, 0.12, 0.16), (0, 0, 0.08))
    text += _joint("nod", "chest", "head", (0, 0, 0.12), "0 1 0", -0.5, 0.5, 10)
    stub = (0.03, 0.03, 0.03)
    for side, sign in SIDES.items() if arms else ():
        text += _link(f"{side}_upper", 0.9, (0.05, 0.05, 0.16), (0, 0, -0.09))
        text += _link(f"{side}_lower", 0.6, (0.04, 0.04, 0.16), (0, 0, -0.09))
        text += _link(f"{side}_shoulder", 0.2, stub, (0, 0, 0))
        at = (0, 0.16 * sign, 0.02)
        text += _joint(f"{side}_swing", "chest", f"{side}_shoulder", at, "0 -1 0", -2, 2, 30)
        text += _joint(f"{side}_lift", f"{side}_shoulder", f"{side}_upper", (0, 0.03 * sign, 0), "1 0 0", -1.5, 1.5, 30)
        text += _joint(f"{side}_elbow", f"{side}_upper", f"{side}_lower", (0, 0, -0.18), "0 -1 0", -0.1, 2.2, 30)
    for side, sign in SIDES.items():
        hip = (HIP[0], HIP[1] * sign, HIP[2])
        text += _link(f"{side}_hip1", 0.4, stub, (0, 0, 0)) + _link(f"{side}_hip2", 0.4, stub, (0, 0, 0))
        text += _link(f"{side}_thigh", 2.6, (0.09, 0.08, 0.18), (0, 0, -0.12))
        text += _link(f"{side}_shank", 1.8, (0.07, 0.07, 0.18), (0, 0, -0.12))
        text += _link(f"{side}_ankle", 0.3, stub, (0, 0, 0))
        text += _link(f"{side}_foot", 0.8, (0.18, 0.10, 0.03), (0.02, 0, -0.045))
        text += _joint(f"{side}_h_pitch", "chest", f"{side}_hip1", hip, "0 1 0", -1.8, 0.8, 120)
        text += _joint(f"{side}_h_roll", f"{side}_hip1", f"{side}_hip2", (0, 0, 0), "1 0 0", -0.6, 0.6, 90)
        text += _joint(f"{side}_h_yaw", f"{side}_hip2", f"{side}_thigh", (0, 0, 0), "0 0 -1", -0.8, 0.8, 60)
        text += _joint(f"{side}_knee", f"{side}_thigh", f"{side}_shank", (0, 0, -THIGH), "0 -1 0", -2.3, -0.02, 120)
        text += _joint(f"{side}_a_roll", f"{side}_shank", f"{side}_ankle", (0, 0, -SHANK), "-1 0 0", -0.6, 0.6, 60)
        text += _joint(f"{side}_a_pitch", f"{side}_ankle", f"{side}_foot", (0, 0, 0), "0 1 0", -1.2, 0.8, 80)
    return text + "</robot>\n"


def robot_yaml() -> str:
    """Return the robot's file: soles whose x axis points to the robot's left, one posture."""
    text = "mcplan: 1\nname: small\nurdf: small.urdf\nbase: chest\npatches:\n"
    # z down, x to the left: columns (0, 1, 0), (1, 0, 0), (0, 0, -1)
    quat = "[0, 0.7071067811865476, 0.7071067811865476, 0]"
    for side in SIDES:
        text += f"  {side}_plate:\n    link: {side}_foot\n    limb: {side}\n"
        text += f"    pose: {{xyz: [0.02, 0, -{ANKLE}], quat_wxyz: {quat}}}\n"
        text += "    polygon: [[-0.04, -0.08], [0.04, -0.08], [0.04, 0.08], [-0.04, 0.08]]\n"
    text += f"postures:\n  ready:\n    base: {{xyz: [0, 0, {STANDING}]}}\n    joints:\n"
    for side in SIDES:
        text += f"      {side}_h_pitch: {-BENT}\n      {side}_knee: {-2 * BENT}\n      {side}_a_pitch: {-BENT}\n"
    return text


def write(directory: Path, arms: bool = True) -> None:
    """Write the robot into a directory."""
    (directory / "small.urdf").write_text(urdf(arms))
    (directory / "robot.yaml").write_text(robot_yaml())


def write_telescopic(directory: Path) -> None:
    """Write one whose thighs are drawn out, by 0.1 m at most, and whose hips go aside instead of turning."""
    write(directory)
    text = (directory / "small.urdf").read_text()
    for side in SIDES:
        for joint, axis, slide in (("h_yaw", "0 0 -1", "0 0 -1"), ("h_roll", "1 0 0", "0 1 0")):
            head, tail = text.split(f'<joint name="{side}_{joint}" type="revolute">')
            tail = tail.replace(f'xyz="{axis}"', f'xyz="{slide}"', 1)
            span = '0.0" upper="0.1"' if joint == "h_yaw" else '-0.015" upper="0.015"'
            low, high = ("-0.8", "0.8") if joint == "h_yaw" else ("-0.6", "0.6")
            tail = tail.replace(f'{low}" upper="{high}"', span, 1)
            text = f'{head}<joint name="{side}_{joint}" type="prismatic">{tail}'
    (directory / "small.urdf").write_text(text)


def scenario(name: str, goal: str, surfaces: str) -> str:
    """Return a scenario that starts in ``ready`` on the floor; goal: contacts, surfaces: beside the floor."""
    return f"""
mcplan: 1
name: {name}
robot: ./robot.yaml
start:
  posture: ready
  base: {{xyz: [0, 0, {STANDING}]}}
  contacts: [{{patch: port_plate, surface: floor}}, {{patch: starboard_plate, surface: floor}}]
goal: {{contacts: [{goal}], only: true}}
environment:
  surfaces:
{surfaces}
"""


WALK = scenario(
    "walk",
    "{patch: port_plate, surface: floor, x: 1, y: 0.08}, {patch: starboard_plate, surface: floor, x: 1, y: -0.08}",
    "    - {name: floor, size: [4, 2]}",
)
STEPS = "\n".join(
    f"    - {{name: step{k}, pose: {{xyz: [{0.15 + 0.26 * (k - 1)}, 0, {0.07 * k}]}}, thickness: 0.07, "
    f"polygon: [[0, -0.5], [{0.26 if k < 4 else 1.0}, -0.5], [{0.26 if k < 4 else 1.0}, 0.5], [0, 0.5]]}}"
    for k in (1, 2, 3, 4)
)
STAIRS = scenario(
    "stairs",
    "{patch: port_plate, surface: step4}, {patch: starboard_plate, surface: step4}",
    "    - {name: floor, polygon: [[-1, -0.5], [0.15, -0.5], [0.15, 0.5], [-1, 0.5]]}\n" + STEPS,
)
DETOUR = scenario(
    "detour",
    "{patch: port_plate, surface: aisle, x: -0.08, y: 0.3}, {patch: starboard_plate, surface: aisle, x: 0.08, y: 0.3}",
    "    - {name: floor, polygon: [[-0.4, -0.3], [1.5, -0.3], [1.5, 0.3], [-0.4, 0.3]]}\n"
    "    - {name: aisle, pose: {xyz: [1.2, 0.9, 0]}, size: [0.6, 1.2]}",
)
"""Round a corner to the left; the goal's heading follows from its places."""
