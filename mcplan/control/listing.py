"""The machine of a plan in the words of the scenario file, to be read, copied and edited."""

from collections.abc import Sequence
from typing import Any

from mcplan.control.custom import Custom
from mcplan.control.machine import phases_of
from mcplan.control.program import State, following, program_of
from mcplan.document.document import dump_document
from mcplan.planning.plan import Plan
from mcplan.settings.settings import ControlSettings

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
    "take": "lifts objects off what bears them",
    "press": "presses against objects until they have been moved enough",
    "slide": "moves objects, and the body with them",
    "carry": "moves objects through the air, and the body with them",
    "put": "lets what is below bear objects",
}
"""What the phases of a plan do, by their verbs."""


def machine_of(plan: Plan) -> list[State]:
    """Return the states that carry out a plan, the scenario's own included."""
    return program_of(phases_of(plan), plan.scenario, [contact.patch for contact in plan.stances[0].contacts])


def entries_of(states: Sequence[State], settings: ControlSettings) -> list[dict[str, Any]]:
    """Return the states as items of ``control.states``; ``next`` is what the machine would do, spelled out."""
    entries = []
    for state in states:
        entry: dict[str, Any] = {"state": state.name} | ({} if state.anywhere else {"stance": state.phase.stance})
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
            here, beside = state.phase.stance, [s for s in states if not s.aside]
            i = next(i for i, other in enumerate(beside) if other is state)
            if i and beside[i - 1].phase.stance == here:
                entry["after"] = beside[i - 1].name
            else:
                plain = next((s for s in beside[i + 1 :] if not isinstance(s.phase, Custom)), None)
                entry |= {"before": plain.name} if plain is not None else {"after": beside[i - 1].name}
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
