"""The links and joints of a URDF as a tree: one root, no cycle, mimic joints that lead somewhere."""

from collections.abc import Mapping
from dataclasses import replace

from mcplan.model.assemble import resolve_mimic
from mcplan.model.description import Joint, Link
from mcplan.model.xml_values import Notes, closest


def order_tree(
    links: dict[str, Link], joints: dict[str, Joint], notes: Notes
) -> tuple[str, list[str], list[str], dict[str, tuple[str, ...]]]:
    """Return root, links and joints depth-first, and the joints below each link.

    Each joint's links exist and no link hangs on two joints. Without recursion, because a chain may be long.
    """
    children: dict[str, tuple[str, ...]] = {name: () for name in links}
    for joint in joints.values():
        children[joint.parent] += (joint.name,)
    hanging = {joint.child for joint in joints.values()}
    roots = [name for name in links if name not in hanging]
    if len(roots) > 1:
        names = ", ".join(f"{name!r} (line {links[name].line})" for name in roots[:5])
        message = f"the robot falls apart: {len(roots)} links have no parent: {names}"
        notes.problem(links[roots[1]].line, roots[1], message)
        return "", [], [], {}
    link_order: list[str] = []
    joint_order: list[str] = []
    stack = list(roots)
    while stack:
        name = stack.pop()
        link_order.append(name)
        stack.extend(joints[below].child for below in reversed(children[name]))
    parent_joint = {joint.child: joint.name for joint in joints.values()}
    joint_order = [parent_joint[name] for name in link_order if name in parent_joint]
    if len(link_order) < len(links):
        reached = set(link_order)
        name = next(name for name in links if name not in reached)
        cycle = _cycle(name, joints, parent_joint)
        last = max((joints[parent_joint[link]] for link in cycle), key=lambda joint: joint.line)
        notes.problem(last.line, last.name, f"the links form a cycle: {' -> '.join([*cycle, cycle[0]][:8])}")
        return "", [], [], {}
    return roots[0], link_order, joint_order, children


def _cycle(name: str, joints: dict[str, Joint], parent_joint: dict[str, str]) -> list[str]:
    """Walk up from a link that hangs on a cycle and return the cycle's links, parents first."""
    seen: dict[str, int] = {}
    path: list[str] = []
    while name not in seen:
        seen[name] = len(path)
        path.append(name)
        name = joints[parent_joint[name]].parent
    return path[seen[name] :][::-1]


def check_mimics(joints: dict[str, Joint], notes: Notes) -> None:
    """Every mimic joint leads, perhaps through others, to a joint that moves by itself and is of the same kind."""
    for joint in joints.values():
        if joint.mimic is None:
            continue
        master = joints.get(joint.mimic.joint)
        if master is None:
            near = closest(joint.mimic.joint, joints)
            notes.problem(joint.line, joint.name, f"mimics joint {joint.mimic.joint!r}, which does not exist{near}")
        elif master.type == "fixed":
            notes.problem(joint.line, joint.name, f"mimics joint {master.name!r}, which does not move")
        elif master.type == "ball":
            notes.problem(joint.line, joint.name, f"mimics {master.name!r}, which is part of a ball joint")
        else:
            seen = {joint.name}
            name: str | None = master.name
            while name in joints and name not in seen:
                seen.add(name)
                mimic = joints[name].mimic
                name = None if mimic is None else mimic.joint
            if name == joint.name:
                notes.problem(joint.line, joint.name, f"mimics itself through {', '.join(sorted(seen))[:80]}")


def with_followers(joints: Mapping[str, Joint]) -> dict[str, Joint]:
    """Return the joints with damping and dry friction of those that mimic another one in that one.

    With ``q = k q_m + c`` the power is the same: ``d k²`` and ``f |k|`` of the joint m that is followed in the end.
    """
    found = dict(joints)
    for name, joint in joints.items():
        if joint.mimic is not None and (joint.damping or joint.friction):
            master, k, _ = resolve_mimic(joint, joints)
            led = found[master]
            damping, friction = led.damping + k**2 * joint.damping, led.friction + abs(k) * joint.friction
            found[master] = replace(led, damping=damping, friction=friction)
            found[name] = replace(found[name], damping=0.0, friction=0.0)
    return found
