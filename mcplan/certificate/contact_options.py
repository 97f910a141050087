"""What a scenario says of its contacts beside their places: friction, limits, freedoms. A plan may not make them up.

A plan's file repeats such options at each of its contacts, and the friction cones, limits and free directions of the
certificate follow from them. So each has to be one that the scenario gives to that patch on that support: at the start,
in an item of the goal, or in its hand-written sequence. And what the last item states has to hold at the end.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from mcplan.certificate.goal_checks import goal_items
from mcplan.planning.plan import Plan, PlannedStance
from mcplan.scene.spec import ContactSpec

OPTIONS = ("friction", "max_force", "slide", "hinge", "overhang")
"""Those that make a contact bear more, or hold it less; whether a hand grasps is the planner's own choice."""


def made_up(plan: Plan) -> Iterator[str]:
    """Say which options of a plan's contacts are not the scenario's; its first stance has those of the start.

    Nor may its last one be without those of the last item; what may overhang need not.
    """
    document = plan.scenario.document.data
    start, asked = _said((document.get("start") or {}).get("contacts")), _asked(document)
    for k, stance in enumerate(plan.stances):
        for contact in stance.contacts:
            place = contact.patch, contact.support
            here = {name: _plain(contact.options).get(name) for name in OPTIONS}
            if k == 0 and place in start:
                known = start[place]
                differ = {name: value for name, value in here.items() if value != known[0].get(name)}
            else:
                known = [*start.get(place, ()), *asked.get(place, ())]
                differ = {
                    name: value
                    for name, value in here.items()
                    if value is not None and value not in [options.get(name) for options in known]
                }
            for name, value in differ.items():
                said = ", ".join(sorted({str(options[name]) for options in known if name in options})) or "nothing"
                yield (
                    f"stance {k}: {contact.patch} on {contact.support} has "
                    f"{'no ' + name if value is None else f'{name} {value}'}, of which the scenario says {said}"
                )
    yield from _lacking(plan.stances[-1], document)


def _lacking(stance: PlannedStance, document: Mapping[str, Any]) -> Iterator[str]:
    """Say which options that the last item states of its contacts the last stance does not have."""
    stated = _said(_items(document)[-1].get("contacts")) if _items(document) else {}
    for contact in stance.contacts:
        for options in stated.get((contact.patch, contact.support), ()):
            for name, value in options.items():
                known = _plain(contact.options).get(name, getattr(contact, name, None))
                if name != "overhang" and known != value:
                    yield f"at the end {contact.patch} on {contact.support} is without {name} {value} of the last item"


def _items(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the items of goal or sequence."""
    try:
        return [item for _, item in goal_items(document)]
    except (TypeError, ValueError, KeyError, AttributeError):  # the lines of the goal say that it cannot be read
        return []


def _asked(document: Mapping[str, Any]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Return the options that goal or sequence give to contacts, by patch and support."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for item in _items(document):
        for place, options in _said(item.get("contacts")).items():
            found.setdefault(place, []).extend(options)
    return found


def _said(contacts: Any) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Return the options that a list of contacts gives, by patch and support; what is no contact gives none."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for said in contacts if isinstance(contacts, list | tuple) else ():
        try:
            spec = ContactSpec.model_validate(dict(said))
        except (ValidationError, TypeError, ValueError):
            continue
        found.setdefault((spec.patch, spec.surface), []).append(_plain(spec.options))
    return found


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with axes in one order."""
    return {name: sorted(value) if isinstance(value, list | tuple) else value for name, value in options.items()}
