"""What a search of the posture generator missed, in words that name the contact, the base or the centre of mass."""

from collections.abc import Sequence

from mcplan.core.posture.rows import ANGLE, DISTANCE, KIND, OF_POINT
from mcplan.planning.posture.freedom import ContactRows
from mcplan.planning.posture.task import Search
from mcplan.planning.posture.violation import Violation

OF_BASE = {DISTANCE: "place", ANGLE: "orientation"}
"""Rows of the base that say how far it is off, by their kind."""


def missed_rows(
    search: Search, rows: Sequence[ContactRows], patches: Sequence[str], further: Sequence[str], least: float
) -> list[Violation]:
    """Return the requirements that a search missed, the worst first.

    Parameters
    ----------
    rows : of the contacts, then of what is asked for further.
    patches : names of the contacts.
    further : ``base``, or the patch in the air that rows belong to.
    least : amounts (m, rad) up to this are none.
    """
    missed, at = search.missed, search.first_cell
    amounts: dict[tuple[str, str], float] = {}

    def note(kind: str, thing: str, amount: float) -> None:
        amounts[kind, thing] = max(amounts.get((kind, thing), 0.0), float(amount))

    for owner, amount in zip(search.contact_of, missed, strict=False):
        note("reach", patches[owner], amount)
    note("com", "com", missed[len(search.contact_of) : at].max(initial=0.0))
    for name, own in zip((*patches, *further), rows, strict=True):
        for kind in own.cell[:, KIND]:
            if name in patches:
                note("reach", name, missed[at])
            elif kind == OF_POINT:
                note("clearance", name, missed[at])
            elif kind in OF_BASE:
                note("base", OF_BASE[kind], missed[at])
            at += 1
    note("equilibrium", "com", missed[at:].max(initial=0.0))
    found = [Violation(kind, thing, amount) for (kind, thing), amount in amounts.items() if amount > least]
    return sorted(found, key=lambda violation: -violation.amount)
