"""Robots without tuned settings, made of boxes: a humanoid of any size, and a four-legged one.

Their hips and shoulders have links that always overlap others, their hands and feet are points that stand out from
their links, soles are on mere frames, and they have no rotor inertia: light ankles are moved by little.
"""

from pathlib import Path

BALL = 0.02
"""m: radius of the quadruped's feet."""

X, Y, Z = "1 0 0", "0 1 0", "0 0 1"


class _Urdf:
    """Text of a URDF; ``scale`` multiplies lengths, its cube masses, its fourth power torques."""

    def __init__(self, name: str, scale: float = 1.0):
        self.name, self.scale, self.lines = name, scale, []

    def link(self, name, mass, size, com=(0.0, 0.0, 0.0)):
        s = self.scale
        m, (x, y, z) = mass * s**3, (s * length for length in size)
        inertia = [m / 12 * (y * y + z * z), m / 12 * (x * x + z * z), m / 12 * (x * x + y * y)]
        ixx, iyy, izz = (f"{value:.9f}" for value in inertia)
        origin = f'<origin xyz="{" ".join(f"{s * c:.6f}" for c in com)}"/>'
        self.lines.append(
            f'<link name="{name}"><inertial>{origin}<mass value="{m:.6f}"/>'
            f'<inertia ixx="{ixx}" ixy="0" ixz="0" iyy="{iyy}" iyz="0" izz="{izz}"/></inertial>'
            f'<collision>{origin}<geometry><box size="{x:.6f} {y:.6f} {z:.6f}"/></geometry></collision></link>'
        )

    def frame(self, name, parent, place):
        xyz = " ".join(f"{self.scale * c:.6f}" for c in place)
        self.lines.append(
            f'<link name="{name}"/><joint name="{name}_fixed" type="fixed"><parent link="{parent}"/>'
            f'<child link="{name}"/><origin xyz="{xyz}"/></joint>'
        )

    def ball(self, name, parent, place, radius):
        """Add a link without mass that is a ball about its frame."""
        self.frame(name, parent, place)
        shape = f'<collision><geometry><sphere radius="{self.scale * radius:.6f}"/></geometry></collision>'
        self.lines[-1] = self.lines[-1].replace(f'<link name="{name}"/>', f'<link name="{name}">{shape}</link>')

    def joint(self, name, parent, child, place, axis, limits, torque):
        xyz = " ".join(f"{self.scale * c:.6f}" for c in place)
        self.lines.append(
            f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>'
            f'<origin xyz="{xyz}"/><axis xyz="{axis}"/><limit lower="{limits[0]}" upper="{limits[1]}" '
            f'effort="{torque * self.scale**4:.6f}" velocity="8"/></joint>'
        )

    def write(self, directory: Path) -> None:
        text = f'<robot name="{self.name}">\n' + "\n".join(self.lines) + "\n</robot>\n"
        (directory / f"{self.name}.urdf").write_text(text)


def humanoid(directory: Path, scale: float = 1.0) -> Path:
    """Write a humanoid of 1.2 m and 40 kg times ``scale`` and its cube; return its robot.yaml."""
    u = _Urdf("humanoid", scale)
    u.link("pelvis", 6, (0.16, 0.2, 0.12))
    u.link("torso", 12, (0.18, 0.24, 0.3), (0, 0, 0.2))
    u.joint("waist", "pelvis", "torso", (0, 0, 0.06), Z, (-1, 1), 60)
    for side, n in ((1, "l"), (-1, "r")):
        u.link(f"{n}_hip1", 0.8, (0.05, 0.05, 0.05))
        u.link(f"{n}_hip2", 0.8, (0.05, 0.05, 0.05))
        u.link(f"{n}_thigh", 3.5, (0.09, 0.09, 0.24), (0, 0, -0.14))
        u.link(f"{n}_shank", 2.2, (0.08, 0.08, 0.22), (0, 0, -0.14))
        u.link(f"{n}_ankle", 0.4, (0.04, 0.04, 0.04))
        u.link(f"{n}_foot", 0.9, (0.2, 0.1, 0.04), (0.03, 0, -0.05))
        u.frame(f"{n}_sole", f"{n}_foot", (0.03, 0, -0.07))
        u.joint(f"{n}_hip_yaw", "pelvis", f"{n}_hip1", (0, 0.08 * side, -0.08), Z, (-0.7, 0.7), 60)
        u.joint(f"{n}_hip_roll", f"{n}_hip1", f"{n}_hip2", (0, 0, 0), X, (-0.6, 0.6), 120)
        u.joint(f"{n}_hip_pitch", f"{n}_hip2", f"{n}_thigh", (0, 0, 0), Y, (-2, 0.8), 120)
        u.joint(f"{n}_knee", f"{n}_thigh", f"{n}_shank", (0, 0, -0.28), Y, (0, 2.4), 140)
        u.joint(f"{n}_ankle_pitch", f"{n}_shank", f"{n}_ankle", (0, 0, -0.28), Y, (-1.2, 0.8), 90)
        u.joint(f"{n}_ankle_roll", f"{n}_ankle", f"{n}_foot", (0, 0, 0), X, (-0.5, 0.5), 60)
        u.link(f"{n}_shoulder1", 0.5, (0.05, 0.05, 0.05))
        u.link(f"{n}_shoulder2", 0.5, (0.05, 0.05, 0.05))
        u.link(f"{n}_upper_arm", 1.4, (0.06, 0.06, 0.18), (0, 0, -0.11))
        u.link(f"{n}_forearm", 1.1, (0.05, 0.05, 0.18), (0, 0, -0.10))
        u.joint(f"{n}_shoulder_pitch", "torso", f"{n}_shoulder1", (0, 0.18 * side, 0.3), Y, (-3, 1.2), 50)
        outward = (-0.1, 1.8) if side > 0 else (-1.8, 0.1)
        u.joint(f"{n}_shoulder_roll", f"{n}_shoulder1", f"{n}_shoulder2", (0, 0, 0), X, outward, 50)
        u.joint(f"{n}_shoulder_yaw", f"{n}_shoulder2", f"{n}_upper_arm", (0, 0, 0), Z, (-1.6, 1.6), 40)
        u.joint(f"{n}_elbow", f"{n}_upper_arm", f"{n}_forearm", (0, 0, -0.22), Y, (-2.3, 0), 40)
    u.write(directory)
    x, y, tip = 0.1 * scale, 0.05 * scale, -0.2 * scale
    patches = "".join(
        f"  {name}_sole:\n    link: {n}_sole\n    limb: {name}_leg\n    pose: {{quat_wxyz: [0, 1, 0, 0]}}\n"
        f"    polygon: [[{-x}, {-y}], [{x}, {-y}], [{x}, {y}], [{-x}, {y}]]\n"
        f"  {name}_hand:\n    link: {n}_forearm\n    limb: {name}_arm\n    kind: point\n"
        f"    pose: {{xyz: [0, 0, {tip}], quat_wxyz: [0, 1, 0, 0]}}\n"
        for n, name in (("l", "left"), ("r", "right"))
    )
    legs = ", ".join(f"{n}_hip_pitch: -0.5, {n}_knee: 1.0, {n}_ankle_pitch: -0.5" for n in "lr")
    arms = ", ".join(f"{n}_shoulder_pitch: 0.3, {n}_elbow: -0.8" for n in "lr")
    ready = f"{{{legs}, {arms}, l_shoulder_roll: 0.15, r_shoulder_roll: -0.15}}"
    return _robot_yaml(directory, "humanoid", "pelvis", patches, "ready", 0.64143 * scale, ready)


def quadruped(directory: Path) -> Path:
    """Write a four-legged robot of 18 kg on balls that roll; return its robot.yaml."""
    u = _Urdf("quadruped")
    u.link("trunk", 10, (0.4, 0.2, 0.1))
    legs = [(end + side, x, y) for end, x in (("f", 1), ("h", -1)) for side, y in (("l", 1), ("r", -1))]
    for n, x, y in legs:
        u.link(f"{n}_hip", 0.6, (0.06, 0.06, 0.06))
        u.link(f"{n}_upper", 1.0, (0.04, 0.04, 0.18), (0, 0, -0.11))
        u.link(f"{n}_lower", 0.3, (0.02, 0.02, 0.14), (0, 0, -0.09))
        u.joint(f"{n}_a", "trunk", f"{n}_hip", (0.2 * x, 0.12 * y, 0), X, (-0.9, 0.9), 30)
        u.joint(f"{n}_b", f"{n}_hip", f"{n}_upper", (0, 0.06 * y, 0), Y, (-1.5, 3), 30)
        u.joint(f"{n}_c", f"{n}_upper", f"{n}_lower", (0, 0, -0.21), Y, (-2.6, -0.3), 30)
        u.ball(f"{n}_foot_link", f"{n}_lower", (0, 0, -0.21 + BALL), BALL)
    u.write(directory)
    patches = "".join(
        f"  {n}_foot:\n    link: {n}_foot_link\n    limb: {n}_leg\n    kind: ball\n    radius: {BALL}\n"
        "    pose: {xyz: [0, 0, 0], rpy: [3.14159265358979, 0.8, 0]}\n"
        for n, _, _ in legs
    )
    stand = "{" + ", ".join(f"{n}_b: 0.8, {n}_c: -1.6" for n, _, _ in legs) + "}"
    return _robot_yaml(directory, "quadruped", "trunk", patches, "stand", 0.29262, stand)


def _robot_yaml(directory, name, base, patches, posture, height, joints) -> Path:
    path = directory / f"{name}.yaml"
    path.write_text(
        f"mcplan: 1\nname: {name}\nurdf: {name}.urdf\nbase: {base}\npatches:\n{patches}"
        f"postures:\n  {posture}:\n    base: {{xyz: [0, 0, {height}]}}\n    joints: {joints}\n"
    )
    return path
