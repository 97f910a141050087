"""What a plan may use of its contacts: less than they bear, so that there is room to carry it out."""

from collections.abc import Iterable

from mcplan.scene.contact import Contact


def cautious(contacts: Iterable[Contact], share: float) -> tuple[Contact, ...]:
    """Return the contacts with a share of their friction, and of the force and moment that they can bear."""
    return tuple(contact.spared(share) for contact in contacts)
