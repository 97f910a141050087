"""Resolver of a ``robot.yaml`` against its URDF: checks names and limits, converts poses to matrices."""

from collections.abc import Mapping, Sequence

import numpy as np

from mcplan.core.rigid_body.tree import BALL, TYPE, V
from mcplan.document.document import Document
from mcplan.errors import Problem, RobotError
from mcplan.robot.assemble import Assembly, JointLimits, frame_offset, resolve_mimic
from mcplan.robot.description import Joint, UrdfModel
from mcplan.robot.patch import MOUNT, Patch, convex_corners, mount_patch
from mcplan.robot.pose import quat_from_rotation, rotation_from_quat, rotation_from_rpy
from mcplan.robot.rerooted import AUXILIARY_PREFIX, BASE_JOINT, BASE_LINK, joints_to_root, reroot, with_base_axes
from mcplan.robot.robot_schema import MountSection, PatchSection, PoseSection, RobotSection
from mcplan.robot.urdf_joint import ball_range_error
from mcplan.util.arrays import read_only
from mcplan.util.spelling import did_you_mean

Key = tuple[str | int, ...]


def is_fixed(model: UrdfModel) -> bool:
    """Return whether the base of a URDF is fixed: by convention its root is then a massless link ``world``."""
    return model.root == "world" and model.links[model.root].inertia is None


def patch_frames(assembly: Assembly, patches: Mapping[str, Patch]) -> dict[str, tuple[int, np.ndarray]]:
    """Return, by patch, the index of its body and its pose in the body (12,)."""
    frames = {}
    for name, patch in patches.items():
        body, offset = assembly.frames[patch.link]
        R, p = offset[:9].reshape(3, 3), offset[9:]
        frames[name] = body, frame_offset(R @ patch.R, R @ patch.p + p)
    return frames


class Resolver:
    """Converts the sections of one robot.yaml to the parts of a Robot, and collects problems with their lines.

    ``problems`` are those of keys and types found before; the values of these keys are missing in ``section``.
    """

    def __init__(self, document: Document, section: RobotSection, model: UrdfModel, problems: Sequence[Problem] = ()):
        self.document, self.section, self.model = document, section, model
        self._root_is_fixed = is_fixed(model)  # from the URDF, before the root may change
        self.problems = list(problems)
        self._invalid_keys = tuple(f"{problem.key}." for problem in problems)

    def _problem(self, key: Key, message: str) -> None:
        problem = self.document.problem(key, message)
        if any(invalid_key.startswith(f"{problem.key}.") for invalid_key in self._invalid_keys):
            return  # it may be a consequence of a missing value
        self.problems.append(problem)

    def raise_problems(self) -> None:
        """Raise all problems in the order of the file, if there are any."""
        if self.problems:
            raise RobotError(*sorted(self.problems, key=lambda problem: problem.line or 0))

    def check(self) -> None:
        """Check the names of links and joints, and set root link and base axes of ``model``.

        If there are problems, those of patches and postures are added as far as possible, and all are raised.
        """
        section, model = self.section, self.model
        if section.forward[-1] == section.up[-1]:
            self._problem(("forward",), f"`forward: {section.forward}` and `up: {section.up}` are along one axis")
        elif (section.forward, section.up) != ("x", "z") and (BASE_LINK in model.links or BASE_JOINT in model.joints):
            self._problem(
                ("forward",), f"the URDF has a link {BASE_LINK!r} or a joint {BASE_JOINT!r}, which this would add"
            )
        if section.base is not None:
            self._check_link(("base",), section.base)
        for name, value in section.locked.items():
            if not self._check_moving_joint(("locked", name), name):
                continue
            joint = model.joints[name]
            if joint.type == "ball":
                self._problem(("locked", name), f"{name!r} is part of a ball joint: make the joint fixed in the URDF")
            if not joint.lower <= value <= joint.upper:
                message = f"joint {name} = {value:g}, outside [{joint.lower:g}, {joint.upper:g}]"
                self._problem(("locked", name), message)
        for part in ("armature", "limits"):
            for name in getattr(section, part):
                if self._check_moving_joint((part, name), name) and name in section.locked:
                    self._problem((part, name), f"joint {name!r} is locked")
                elif part == "armature" and name in model.joints and model.joints[name].type == "ball":
                    self._problem((part, name), f"{name!r} is part of a ball joint, whose motors have no inertia here")
        for i, pair in enumerate(section.collision.ignore):
            for j, link in enumerate(pair):
                self._check_link(("collision", "ignore", i, j), link)
        if reversed_balls := [joint.name for joint in joints_to_root(model, section.base) if joint.type == "ball"]:
            message = f"the path to it contains the ball joint of {reversed_balls[0]!r}, which cannot be reversed"
            self._problem(("base",), message)
        if self._root_is_fixed and section.fixed_base is None:
            moving = [joint.name for joint in joints_to_root(model, section.base) if self._moves(joint)]
            if moving:
                message = f"{section.base!r} moves against {model.root!r} by the joint {moving[0]!r}"
                self._problem(("base",), f"{message}: say with `fixed_base: true` or `false` whether it is held")
        if self.problems:
            for name, patch in section.patches.items():
                if not patch.link.startswith((BASE_LINK, AUXILIARY_PREFIX)):  # auxiliary links for base and axes
                    self._patch(name, patch)
            for name, posture in section.postures.items():
                self._pose(("postures", name, "base"), posture.base)
                for joint_name in posture.joints:
                    self._check_moving_joint(("postures", name, "joints", joint_name), joint_name)
        self.raise_problems()
        self.model = reroot(model, section.base or model.root)
        if (section.forward, section.up) != ("x", "z"):
            self.model = with_base_axes(self.model, section.forward, section.up)

    def _moves(self, joint: Joint) -> bool:
        """Return whether a joint, or the one that it mimics, is neither fixed nor locked."""
        return joint.type != "fixed" and resolve_mimic(joint, self.model.joints)[0] not in self.section.locked

    def _check_moving_joint(self, key: Key, name: str) -> bool:
        """Return whether a joint exists and is independent; otherwise add a problem."""
        joint = self.model.joints.get(name)
        if joint is None:
            self._problem(key, f"the URDF has no joint {name!r}{did_you_mean(name, self.model.joints)}")
        elif joint.type == "fixed":
            self._problem(key, f"joint {name!r} is fixed")
        elif joint.mimic is not None:
            self._problem(key, f"joint {name!r} mimics {joint.mimic.joint!r}; name that one")
        else:
            return True
        return False

    def _check_link(self, key: Key, name: str) -> bool:
        if name not in self.model.links:
            self._problem(key, f"the URDF has no link {name!r}{did_you_mean(name, self.model.links)}")
            return False
        return True

    def _pose(self, key: Key, pose: PoseSection) -> tuple[np.ndarray, np.ndarray]:
        R = np.eye(3)
        if pose.rpy is not None and pose.quat_wxyz is not None:
            self._problem(key, "give rpy or quat_wxyz, not both")
        elif pose.rpy is not None:
            R = rotation_from_rpy(pose.rpy)
        elif pose.quat_wxyz is not None:
            length = np.linalg.norm(pose.quat_wxyz)
            if abs(length - 1) > 1e-4:
                self._problem((*key, "quat_wxyz"), f"the quaternion has the length {length:.6g}; expected 1")
            else:
                R = rotation_from_quat(pose.quat_wxyz)
        return R, np.array(pose.xyz, float)

    def limits(self, assembly: Assembly) -> JointLimits:
        """Return the joint limits: those of the robot.yaml where given, otherwise those of the URDF."""
        arrays = {name: getattr(assembly.limits, name).copy() for name in ("lower", "upper", "velocity", "torque")}
        for joint, section in self.section.limits.items():
            if joint in assembly.locked:  # locked when loaded, because it moves no inertia
                continue
            i = assembly.joint_names.index(joint)
            for name, array in arrays.items():
                value = getattr(section, name)
                if value is not None:
                    array[i] = value
            if arrays["lower"][i] > arrays["upper"][i]:
                message = f"lower limit {arrays['lower'][i]:g} is above the upper limit {arrays['upper'][i]:g}"
                self._problem(("limits", joint), message)
        for first_part in (int(row[V]) - 6 for row in assembly.tree.topology if row[TYPE] == BALL):
            part_slice = slice(first_part, first_part + 3)
            limited_parts = [joint for joint in assembly.joint_names[part_slice] if joint in self.section.limits]
            message = ball_range_error(arrays["lower"][part_slice], arrays["upper"][part_slice])
            if limited_parts and message:
                self._problem(("limits", limited_parts[0]), f"{limited_parts[0]!r} is part of a ball joint: {message}")
        return JointLimits(**{name: read_only(array) for name, array in arrays.items()})

    def patches(self) -> dict[str, Patch]:
        """Return the patches by name; for a fixed base the first one is its mount."""
        fixed_base = self.section.fixed_base
        fixed = self._root_is_fixed if fixed_base is None else bool(fixed_base)
        if fixed and MOUNT in (*self.section.patches, *self.model.links):
            self._problem(("fixed_base",), f"the patch that holds a fixed base is called {MOUNT!r}; rename your own")
        limits = fixed_base if isinstance(fixed_base, MountSection) else MountSection()
        mount_patches = {MOUNT: mount_patch(self.model.root, limits.max_force, limits.max_moment)} if fixed else {}
        patches_or_none = {name: self._patch(name, section) for name, section in self.section.patches.items()}
        return mount_patches | {name: patch for name, patch in patches_or_none.items() if patch is not None}

    def _patch(self, name: str, section: PatchSection) -> Patch | None:
        key = ("patches", name)
        exists = self._check_link((*key, "link"), section.link)
        if name in self.model.links:
            self._problem(key, "a link has the same name; both are frames of the robot")
        R, p = self._pose((*key, "pose"), section.pose)
        polygon: np.ndarray | None = np.zeros((1, 2))
        if section.kind == "surface":
            if section.polygon is None or len(section.polygon) < 2:
                self._problem(key, "a surface patch needs a polygon of 2 corners (an edge) or more")
                return None
            polygon = convex_corners(np.array(section.polygon))
            if polygon is None:
                self._problem((*key, "polygon"), "the corners should be distinct and go round a convex polygon")
                return None
        elif section.polygon is not None:
            self._problem((*key, "polygon"), f"a {section.kind} patch has no polygon: it touches in one point")
        if section.kind == "ball" and section.radius is None:
            self._problem(key, "a ball needs its radius (m); its pose is that of its centre")
        if section.kind != "ball" and section.radius is not None:
            self._problem((*key, "radius"), f"a {section.kind} patch has no radius; `kind: ball` has one")
        if section.kind == "grasp" and (section.max_force is None or section.max_moment is None):
            self._problem(key, "a grasp needs max_force (N) and max_moment (N m)")
        if section.kind != "grasp" and section.max_moment is not None:
            self._problem((*key, "max_moment"), f"a {section.kind} patch has no max_moment: its polygon bounds it")
        if not exists or polygon is None:
            return None
        force, moment = section.max_force or np.inf, section.max_moment or np.inf
        polygon_and_pose = read_only(polygon), read_only(R), read_only(p)
        limb = section.limb or section.link
        return Patch(name, section.link, limb, section.kind, *polygon_and_pose, force, moment, section.radius or 0.0)

    def postures(self, assembly: Assembly, limits: JointLimits) -> dict[str, np.ndarray]:
        """Return the postures ``q`` (nq,) by name."""
        index = {name: i for i, name in enumerate(assembly.joint_names)}
        postures = {}
        for name, section in self.section.postures.items():
            key: Key = ("postures", name)
            q = np.zeros(7 + len(index))
            R, q[:3] = self._pose((*key, "base"), section.base)
            q[3:7] = quat_from_rotation(R)
            for joint, value in section.joints.items():
                if joint in index:
                    q[7 + index[joint]] = value
                elif self._check_moving_joint((*key, "joints", joint), joint) and value != assembly.locked.get(joint):
                    message = f"joint {joint!r} is locked at {assembly.locked[joint]:g}"
                    self._problem((*key, "joints", joint), message)
            for joint, i in index.items():
                if not limits.lower[i] - 1e-9 <= q[7 + i] <= limits.upper[i] + 1e-9:
                    message = f"joint {joint} = {q[7 + i]:.6g}, outside [{limits.lower[i]:g}, {limits.upper[i]:g}]"
                    problem_key = (*key, "joints", joint) if joint in section.joints else key
                    self._problem(problem_key, message)
            postures[name] = read_only(q)
        return postures
