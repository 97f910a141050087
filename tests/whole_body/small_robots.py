"""Two robots unlike HRP-2, written as URDF with a robot.yaml: a quadruped on points, a small biped with one hand."""

from pathlib import Path

from mcplan.robot.robot import Robot
from mcplan.robot.robot_file import load_robot

SIDES = {"left": 1.0, "right": -1.0}


def quadruped(folder: Path) -> Robot:
    """12 joints, 12 kg; a point foot and a shin edge on every leg, a hip joint without position limits."""
    body = [_link("trunk", 6.0, (0.4, 0.2, 0.1))]
    patches, joints = [], []
    for end, x in (("front", 0.2), ("hind", -0.2)):
        for side, y in SIDES.items():
            leg = f"{end}_{side}"
            turning = ("continuous", None) if end == "hind" else ("revolute", (-0.8, 0.8))
            body += [
                _link(f"{leg}_hip", 0.5, (0.06, 0.06, 0.06)),
                _joint(f"{leg}_roll", "trunk", f"{leg}_hip", (x, 0.1 * y, 0), (1, 0, 0), *turning, 25, 20),
                _link(f"{leg}_thigh", 0.7, (0.04, 0.03, 0.2), (0, 0, -0.1)),
                _joint(
                    f"{leg}_pitch", f"{leg}_hip", f"{leg}_thigh", (0, 0.05 * y, 0), (0, 1, 0), "revolute", (-1.5, 2.5),
                    25, 20,
                ),
                _link(f"{leg}_shin", 0.3, (0.02, 0.02, 0.2), (0, 0, -0.1)),
                _joint(
                    f"{leg}_knee", f"{leg}_thigh", f"{leg}_shin", (0, 0, -0.2), (0, 1, 0), "revolute", (-2.6, -0.3),
                    30, 15,
                ),
            ]  # fmt: skip
            patches += [
                _patch(
                    f"{leg}_foot", f"{leg}_shin", leg, "{xyz: [0, 0, -0.2], quat_wxyz: [0, 1, 0, 0]}", "kind: point"
                ),
                _patch(
                    f"{leg}_edge", f"{leg}_shin", leg, "{xyz: [0.01, 0, -0.15], quat_wxyz: [0, 1, 0, 0]}",
                    "polygon: [[0, -0.02], [0, 0.02]]",
                ),
            ]  # fmt: skip
            joints += [f"{leg}_pitch: 0.7", f"{leg}_knee: -1.4"]
    return _load(folder, "quadruped", "trunk", body, patches, joints, 0.31)


def biped(folder: Path) -> Robot:
    """16 joints and one that follows another, 15 kg: legs of five joints, a waist, an arm that grasps and a stump."""
    body = [
        _link("pelvis", 4.0, (0.1, 0.2, 0.1)),
        _link("chest", 4.0, (0.12, 0.2, 0.25), (0, 0, 0.15)),
        _joint("waist", "pelvis", "chest", (0, 0, 0.05), (0, 0, 1), "revolute", (-1, 1), 30, 6),
        _link("head", 0.5, (0.1, 0.1, 0.1), (0, 0, 0.05)),
        _joint("neck", "chest", "head", (0, 0, 0.3), (0, 0, 1), "revolute", (-1, 1), 5, 6, ("waist", -0.5)),
    ]
    patches, joints = [], []
    for side, y in SIDES.items():
        chain = "pelvis"
        for name, axis, offset, mass, limits in (
            ("hip_roll", (1, 0, 0), (0, 0.08 * y, -0.05), 0.4, (-0.6, 0.6)),
            ("hip_pitch", (0, 1, 0), (0, 0, 0), 0.9, (-1.8, 0.8)),
            ("knee", (0, 1, 0), (0, 0, -0.2), 0.7, (0.05, 2.2)),
            ("ankle_pitch", (0, 1, 0), (0, 0, -0.2), 0.2, (-1.2, 0.8)),
            ("ankle_roll", (1, 0, 0), (0, 0, 0), 0.4, (-0.5, 0.5)),
        ):
            child = f"{side}_{name}_link"
            body += [
                _link(child, mass, (0.05, 0.05, 0.1), (0, 0, -0.03)),
                _joint(f"{side}_{name}", chain, child, offset, axis, "revolute", limits, 40, 8),
            ]
            chain = child
        patches += [
            _patch(
                f"{side}_sole", chain, f"{side}_leg", "{xyz: [0, 0, -0.05], quat_wxyz: [0, 1, 0, 0]}",
                "polygon: [[-0.05, -0.03], [0.08, -0.03], [0.08, 0.03], [-0.05, 0.03]]",
            ),
            _patch(
                f"{side}_heel", chain, f"{side}_leg", "{xyz: [-0.05, 0, -0.05], quat_wxyz: [0, 1, 0, 0]}",
                "polygon: [[0, -0.03], [0, 0.03]]",
            ),
            _patch(
                f"{side}_knee_pad", f"{side}_knee_link", f"{side}_leg",
                "{xyz: [0.04, 0, 0], quat_wxyz: [0.7071067811865476, 0, 0.7071067811865476, 0]}", "kind: point",
            ),
        ]  # fmt: skip
        joints += [f"{side}_hip_pitch: -0.4", f"{side}_knee: 0.8", f"{side}_ankle_pitch: -0.4"]
    arm = [("left", "shoulder", (0, 1, 0)), ("left", "upper", (1, 0, 0)), ("left", "elbow", (0, 1, 0))]
    chains = {"left": "chest", "right": "chest"}
    for side, name, axis in [*arm, ("right", "shoulder", (0, 1, 0)), ("right", "elbow", (0, 1, 0))]:
        child, first = f"{side}_{name}_link", chains[side] == "chest"
        offset = (0, 0.13 * SIDES[side], 0.25) if first else (0, 0, -0.15 if name == "elbow" else 0)
        body += [
            _link(child, 0.4, (0.04, 0.04, 0.15), (0, 0, -0.07)),
            _joint(f"{side}_{name}", chains[side], child, offset, axis, "revolute", (-2, 2), 12, 8),
        ]
        chains[side] = child
    place = "{xyz: [0, 0, -0.16], quat_wxyz: [0, 1, 0, 0]}"
    patches += [
        _patch("left_grip", chains["left"], "left_arm", place, "kind: grasp\n    max_force: 80\n    max_moment: 3"),
        _patch("right_stump", chains["right"], "right_arm", place, "kind: point"),
    ]
    return _load(folder, "biped", "pelvis", body, patches, joints, 0.5)


def _link(name, mass, size, com=(0.0, 0.0, 0.0)):
    x, y, z = size
    inertia = [mass / 12 * (y * y + z * z), mass / 12 * (x * x + z * z), mass / 12 * (x * x + y * y)]
    return (
        f'<link name="{name}"><inertial><origin xyz="{_numbers(com)}"/><mass value="{mass}"/>'
        f'<inertia ixx="{inertia[0]}" iyy="{inertia[1]}" izz="{inertia[2]}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    )


def _joint(name, parent, child, xyz, axis, kind, limits, torque, speed, mimic=None):
    ends = "" if limits is None else f'lower="{limits[0]}" upper="{limits[1]}" '
    follows = "" if mimic is None else f'<mimic joint="{mimic[0]}" multiplier="{mimic[1]}"/>'
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{_numbers(xyz)}"/><axis xyz="{_numbers(axis)}"/>'
        f'<limit {ends}effort="{torque}" velocity="{speed}"/>{follows}</joint>'
    )


def _numbers(values):
    return " ".join(str(value) for value in values)


def _patch(name, link, limb, pose, rest):
    return f"  {name}:\n    link: {link}\n    limb: {limb}\n    pose: {pose}\n    {rest}\n"


def _load(folder: Path, name, base, body, patches, joints, height) -> Robot:
    (folder / f"{name}.urdf").write_text(f'<robot name="{name}">{"".join(body)}</robot>')
    posture = f"  stand:\n    base: {{xyz: [0, 0, {height}]}}\n    joints: {{{', '.join(joints)}}}\n"
    (folder / f"{name}.yaml").write_text(
        f"mcplan: 1\nname: {name}\nurdf: {name}.urdf\nbase: {base}\npatches:\n{''.join(patches)}postures:\n{posture}"
    )
    return load_robot(folder / f"{name}.yaml")
