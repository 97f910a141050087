"""Parts of a scenario in words, a line each."""

from collections.abc import Iterable

from mcplan.scene.schema import GoalItem, StanceItem


def goal_text(item: GoalItem) -> str:
    """Return what an item of the goal asks for."""
    parts = [f"{contact.patch} on {contact.surface}" for contact in item.contacts]
    parts += ["nothing else"] if item.only else []
    if item.base is not None:
        turned = "" if item.base.rpy is None else f", rpy {_numbers(item.base.rpy)}"
        parts.append(f"base at {_numbers(item.base.xyz)} within {item.base.tolerance:g} m{turned}")
    if item.posture is not None:
        parts.append(f"posture {item.posture.name or 'of its own'} within {item.posture_tolerance:g}")
    if item.com is not None:
        parts.append(f"centre of mass at {_numbers(item.com)}")
    parts += [f"{name} at {_numbers(pose.xyz)}" for name, pose in item.objects.items()]
    return "; ".join(parts)


def _numbers(values: Iterable[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


def stance_text(item: StanceItem) -> str:
    """Return what an item of a sequence changes."""
    parts = []
    if item.contacts is not None:
        parts.append("contacts " + ", ".join(f"{c.patch} on {c.surface}" for c in item.contacts))
    if item.add is not None:
        parts.append(f"add {item.add.patch} on {item.add.surface}")
    if item.remove is not None:
        parts.append(f"remove {item.remove}")
    if item.posture is not None:
        parts.append(f"posture {item.posture.name or 'of its own'}")
    if item.com is not None:
        parts.append("centre of mass at " + ", ".join(f"{value:g}" for value in item.com))
    return "; ".join(parts)
