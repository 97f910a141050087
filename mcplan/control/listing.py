"""The machine of a plan in the words of the scenario file, to be read, copied and edited."""

from collections.abc import Sequence
from typing import Any

from mcplan.control.custom import Custom
from mcplan.control.machine import phases_of
from mcplan.control.program import State, following, program_of
from mcplan.document import dump_document
from mcplan.planning.plan import Plan
from mcplan.scene.settings import ControlSettings

DOES = {
    "stand": "holds the first posture",
    "shift": "moves centre of mass, posture and free limbs to those of the stance",
    "unload": "lets the contact's force sink to nothing; then opens it",
    "retract": "lifts the patch clear of its support",
    "lift": "takes the patch off, and the body along to the posture of the stance",
    "swing": "crosses over to the new place",
    "approach": "comes down along the normal; then closes the contact",
    "load": "lets the contact take its share",
    "settle": "comes to rest",
}
"""What the phases of a plan do, by their verbs."""


def machine_of(plan: Plan) -> list[State]:
    """Return the states that carry out a plan, the scenario's own included."""
    return program_of(phases_of(plan), plan.scenario, [contact.patch for contact in plan.stances[0].contacts])


def entries_of(states: Sequence[State], settings: ControlSettings) -> list[dict[str, Any]]:
    """Return the states as items of ``control.states``; ``next`` is what the machine would do, spelled out."""
    entries = []
    for k, state in enumerate(states):
        entry: dict[str, Any] = {"state": state.name, "stance": state.phase.stance}
        if isinstance(state.phase, Custom):
            entry["do"] = state.phase.deed.model_dump(mode="json", exclude_defaults=True)
        until = state.until or state.phase.until(settings)
        entry["until"] = until.model_dump(mode="json", exclude_none=True)
        if state.jumps:
            jumps = {label: jump.model_dump(mode="json", exclude_none=True) for label, jump in state.jumps.items()}
            always = jumps.get("", {})
            entry["next"] = always["state"] if len(jumps) == 1 and list(always) == ["state"] else jumps
        if state.gains:
            entry["gains"] = dict(state.gains)
        if isinstance(state.phase, Custom) and not state.aside:
            before = [s for s in states[:k] if not s.aside]
            entry |= {"after": before[-1].name} if before else {"before": states[k + 1].name}
        entries.append(entry)
    return entries


def listing(states: Sequence[State], settings: ControlSettings) -> str:
    """Return the machine as YAML: an item per state, what it does and what follows in comments."""
    lines = ["control:", "  states:"]
    for k, (state, entry) in enumerate(zip(states, entries_of(states, settings), strict=True)):
        does = DOES.get(getattr(state.phase, "verb", ""), "your own")
        after = following(states, k)
        onward = "end" if after == len(states) else states[after].name
        lines.append(f"  # {does}; then {onward}" + (", entered by a transition only" if state.aside else ""))
        text = dump_document([entry]).rstrip()
        lines += ["  " + line for line in text.splitlines()]
    return "\n".join(lines)
